package declare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/credential/entryedit"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

const (
	organization = "0190aaaa-0000-7000-8000-000000000001"
	issuer       = "https://id.example.com"
	client       = "geheim"
)

var start = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// newPlace returns the surroundings of an empty organization, with one directory entry.
func newPlace(t *testing.T) Options {
	t.Helper()
	store, ctx := sqlitetest.OpenAt(t, sqlitetest.Path(t), sqlite.Options{Timeout: time.Minute}), t.Context() // a busy machine
	master, err := seal.ParseMasterKey(seal.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return start }
	ring, err := seal.OpenKeyring(ctx, []seal.MasterKey{master}, store, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.ResolveOrganization(ctx, storage.OrganizationClaim{Issuer: issuer, ID: organization, Slug: "acme"}, start); err != nil {
		t.Fatal(err)
	}
	if err := store.SyncDirectory(ctx, storage.SourceConfig, []storage.DirectoryEntry{{
		ID: newID(), Name: "Tracker", Slug: "tracker", URL: "https://mcp.example.com", Protocol: storage.ProtocolMCP, Provider: storage.ProviderOAuth2, RequiresAuth: true,
	}}, start); err != nil {
		t.Fatal(err)
	}
	return Options{
		Store: store, Keyring: ring, Now: now, MaxMeta: 64 << 10, Models: newModels(t),
		Entries: entryedit.Rules{MaxMeta: 64 << 10, CheckURL: func(*url.URL) error { return nil }, Provider: func(name string) bool { return name == issuer }},
		Issuer:  func(named string) (string, bool) { return named, named != "" },
		Secret: func(reference string) (seal.Secret, error) {
			if reference != "{env.ISSUES_CLIENT_SECRET}" {
				return seal.Secret{}, errors.New("it is not set")
			}
			return seal.NewSecret(client), nil
		},
		Organization: func(_ context.Context, named string) (string, error) {
			if named != "acme" {
				return "", fmt.Errorf("there is no organization %q", named)
			}
			return organization, nil
		},
		Audit: func(ctx context.Context, organization string) (context.Context, error) {
			return storage.WithAudit(ctx, &storage.Audited{OrganizationID: organization, Node: "test", Entries: []storage.AuditEntry{
				{ID: newID(), At: start, Kind: storage.AuditAdmin, Event: "configuration.apply", Detail: map[string]any{}},
			}}), nil
		},
	}
}

const whole = `organization: acme
servers:
  - name: Issues
    slug: issues
    directory: tracker
    client_id: gate
    client_secret: '{env.ISSUES_CLIENT_SECRET}'
    meta:
      big: 9007199254740993
      text: "yes\nno"
agents:
  - name: robot
    issuer: https://id.example.com
    external_id: robot-1
    approval_channel: out_of_band
  - name: robot
    issuer: https://id.example.com
    external_id: robot-2
policies:
  - name: paused
    server: Issues
    agents:
      - robot-2
      - robot-1
    status: INACTIVE
    tags:
      - "true"
    rules:
      - name: reads
        active: true
        authorized: true
        actions:
          - tools/call:read_*
        roles_groups:
          - '*'
        condition:
          match:
            expr: R.attr.n < 9007199254740993 && R.attr.s == '<é>'
`

// run applies a text, or plans to, and returns the lines of the plan.
func run(t *testing.T, o Options, text string, dry bool) (lines []string, err error) {
	t.Helper()
	plans, err := Run(t.Context(), o, []File{{"a.yaml", text}}, dry)
	for _, p := range plans {
		for _, c := range p.Changes {
			line := fmt.Sprintf("%s %s %s", c.Action, c.Kind, c.Name)
			for _, f := range c.Fields {
				if c.Action == Update {
					line += " " + f.Field
				}
			}
			lines = append(lines, line)
		}
	}
	return lines, err
}

func export(t *testing.T, o Options) string {
	t.Helper()
	text, err := Export(t.Context(), o.Store, o.Models.ConfiguredModels(), organization, "acme", start)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func applied(t *testing.T, o Options, text string, want ...string) {
	t.Helper()
	planned, err := run(t, o, text, true)
	if err != nil {
		t.Fatal(err)
	}
	made, err := run(t, o, text, false)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, made); diff != "" || !slices.Equal(planned, made) {
		t.Errorf("planned %q\n%s", planned, diff)
	}
	if again, err := run(t, o, text, true); err != nil || again != nil {
		t.Errorf("applied twice it changes %q, %v", again, err)
	}
}

// TestRoundTrip checks that an export applied to an empty organization exports as the same bytes, without a secret.
func TestRoundTrip(t *testing.T) {
	first, second := newPlace(t), newPlace(t)
	applied(t, first, whole, "create server Issues", "create agent robot", "create agent robot", "create policy paused")
	text := export(t, first)
	if strings.Contains(text, client) {
		t.Errorf("it shows a secret:\n%s", text)
	}
	applied(t, second, text, "create server Issues", "create agent robot", "create agent robot", "create policy paused")
	if diff := cmp.Diff(text, export(t, second)); diff != "" {
		t.Error(diff)
	}
	s, err := second.Store.ServerBySlug(t.Context(), organization, "issues")
	if err != nil {
		t.Fatal(err)
	}
	if same, err := (&planner{Options: &second, state: &state{organization: organization}}).sameSecret(&s, seal.NewSecret(client)); !same || s.Status != storage.ServerActive {
		t.Errorf("the secret is another one, %v; %s", err, s.Status)
	}
	records, err := second.Store.AuditRecords(t.Context(), storage.AuditFilter{OrganizationID: organization})
	if err != nil || len(records) != 5 {
		t.Errorf("%d records, %v", len(records), err)
	}
	for _, r := range records {
		if bytes.Contains(r.Text, []byte(client)) {
			t.Errorf("a record shows a secret: %s", r.Text)
		}
	}
}

// TestChanges checks updates, and that a renamed object stays the same one.
func TestChanges(t *testing.T) {
	o := newPlace(t)
	applied(t, o, whole, "create server Issues", "create agent robot", "create agent robot", "create policy paused")
	before, err := o.Store.PolicyByName(t.Context(), organization, "paused")
	if err != nil {
		t.Fatal(err)
	}
	renamed := strings.NewReplacer("name: Issues", "name: Tickets\n    was: Issues", "server: Issues", "server: Tickets", "name: paused", "name: on\n    was: paused",
		"INACTIVE", "ACTIVE", "read_*", "list_*", "approval_channel: out_of_band", "description: reads").Replace(whole)
	applied(t, o, renamed, "update server Tickets name", "update agent robot description approval_channel", "update policy on name status rules")
	after, err := o.Store.PolicyByName(t.Context(), organization, "on")
	if err != nil || after.ID != before.ID || after.ServerID != before.ServerID || after.Revision != 2 {
		t.Errorf("%v: before %+v, after %+v", err, before.Policy, after.Policy)
	}
	applied(t, o, strings.Replace(renamed, "    status: ACTIVE\n", "", 1))
	applied(t, o, strings.Replace(renamed, "status: ACTIVE", "status: INACTIVE", 1), "update policy on status")
	applied(t, o, strings.Replace(renamed, "    status: ACTIVE\n", "", 1))
	applied(t, o, renamed, "update policy on status")
	without := strings.Replace(renamed, "    client_secret: '{env.ISSUES_CLIENT_SECRET}'\n", "", 1)
	applied(t, o, without, "update server Tickets client_secret")
	applied(t, o, renamed, "update server Tickets client_secret")
}

// TestEntries checks that servers are made of entries in the same file, and that an entry of the configuration stays as it is.
func TestEntries(t *testing.T) {
	first, second := newPlace(t), newPlace(t)
	const text = `organization: acme
directory:
  - name: Own
    slug: own
    url: https://own.example.com/mcp
    provider: oauth2
    authorization_params: {prompt: consent}
    resource: off
servers:
  - name: Ours
    directory: own
`
	applied(t, first, text, "create directory_entry own", "create server Ours")
	applied(t, second, export(t, first), "create directory_entry own", "create server Ours")
	if diff := cmp.Diff(export(t, first), export(t, second)); diff != "" {
		t.Error(diff)
	}
	before, err := first.Store.ServerBySlug(t.Context(), organization, "ours")
	if err != nil {
		t.Fatal(err)
	}
	applied(t, first, strings.NewReplacer("slug: own\n", "slug: mine\n    was: own\n", "directory: own", "directory: mine").Replace(text), "update directory_entry mine slug")
	if after, err := first.Store.ServerBySlug(t.Context(), organization, "ours"); err != nil || after.DirectoryID != before.DirectoryID || after.Entry.Slug != "mine" {
		t.Errorf("the server of a renamed entry has %+v, %v", after.Entry, err)
	}
	applied(t, first, strings.Replace(text, "slug: own\n", "slug: own\n    was: mine\n", 1), "update directory_entry own slug")
	applied(t, first, strings.Replace(text, "provider: oauth2", "provider: none", 1), "update directory_entry own provider requires_auth auth_params")
	if s, err := first.Store.ServerBySlug(t.Context(), organization, "ours"); err != nil || s.Status != storage.ServerActive {
		t.Errorf("a server that needs no client any more: %s, %v", s.Status, err)
	}
	for wrong, want := range map[string]string{
		strings.Replace(text, "slug: own", "slug: tracker", 1):                   "a.yaml:4:11: directory[0].slug: the entry \"tracker\" comes with the gateway or its configuration, and is not changed here",
		strings.Replace(text, "provider: oauth2", "provider: token_exchange", 1): "a.yaml:6:15: directory[0].provider: the OAuth clients of its servers would go to somebody else; create another entry",
	} {
		if _, err := run(t, first, wrong, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestOneHeir checks that two objects of a file do not become one: what was there keeps one of the names, and one of both would
// be missing, such as a policy that denies.
func TestOneHeir(t *testing.T) {
	const rule = ", server: Issues, rules: [{name: r, authorized: false}]}\n"
	const base = "organization: acme\nservers:\n  - {name: Issues, directory: tracker}\n"
	const own = ", url: 'https://own.example.com/mcp', provider: none}\n"
	policies := base + "policies:\n  - {name: guard" + rule
	entries := "organization: acme\ndirectory:\n  - {name: Own, slug: own" + own
	for name, test := range map[string]struct{ before, after, want string }{
		"a policy that stays":           {policies, policies + "  - {name: heir, was: guard" + rule, `a.yaml:6:12: policies[1].name: the policy "guard" is declared already, under another name`},
		"a policy that stays, later":    {policies, base + "policies:\n  - {name: heir, was: guard" + rule + "  - {name: guard" + rule, `a.yaml:6:12: policies[1].name: the policy "guard" is declared already`},
		"two heirs of a policy":         {policies, base + "policies:\n  - {name: one, was: guard" + rule + "  - {name: two, was: guard" + rule, `a.yaml:6:12: policies[1].name: the policy "guard" is declared already`},
		"an entry that stays":           {entries, entries + "  - {name: Heir, slug: heir, was: own" + own, `a.yaml:4:24: directory[1].slug: the entry "own" is declared already, under another slug`},
		"an entry that stays, later":    {entries, "organization: acme\ndirectory:\n  - {name: Heir, slug: heir, was: own" + own + "  - {name: Own, slug: own" + own, `a.yaml:4:23: directory[1].slug: an entry with the slug "own" is declared already, or gets another slug`},
		"an entry that becomes another": {entries, "organization: acme\ndirectory:\n  - {name: Heir, slug: heir, was: own" + own + "  - {name: Two, slug: two, was: heir" + own, `a.yaml:4:23: directory[1].slug: the entry "heir" is declared already, under another slug`},
	} {
		t.Run(name, func(t *testing.T) {
			o := newPlace(t)
			if _, err := run(t, o, test.before, false); err != nil {
				t.Fatal(err)
			}
			before := export(t, o)
			if got, err := run(t, o, test.after, false); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %q, %v\nwant %s", got, err, test.want)
			}
			if diff := cmp.Diff(before, export(t, o)); diff != "" {
				t.Errorf("something was changed (-before +after)\n%s", diff)
			}
		})
	}
}

// TestManyProblems checks that a small file does not have errors of many times its size: each has the path of its member.
func TestManyProblems(t *testing.T) {
	text := "organization: acme\n? " + strings.Repeat("x", 1<<16) + "\n: [" + strings.Repeat("0x1,", 5_000) + "]\n"
	if _, err := run(t, newPlace(t), text, true); err == nil || len(err.Error()) > 1<<20 {
		t.Errorf("errors of %d bytes", len(fmt.Sprint(err)))
	}
}

// TestDates checks that a name that YAML takes for a date is a name.
func TestDates(t *testing.T) {
	dated := strings.NewReplacer("Issues", "2026-01-31", "robot-1", "2026-02-01", "paused", "2026-02-02").Replace(whole)
	applied(t, newPlace(t), dated, "create server 2026-01-31", "create agent robot", "create agent robot", "create policy 2026-02-02")
}

// TestRefused checks that files with an error are refused whole, with the place of each error.
func TestRefused(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"no YAML":              {"organization: acme\nservers: [\n", "a.yaml:2: this is not YAML: did not find expected node content"},
		"an anchor":            {"organization: acme\nservers: &x []\n", "a.yaml:2:10: servers: anchors and aliases are not used here: write the value out"},
		"a tag":                {"organization: acme\nservers: !!set {}\n", "a.yaml:2:10: servers: tags are not used here: write the value without !!set"},
		"a disguised secret":   {strings.Replace(whole, "'{env.ISSUES_CLIENT_SECRET}'", `!!int '"sk-123"'`, 1), "a.yaml:7:20: servers[0].client_secret: tags are not used here: write the value without !!int"},
		"a disguised member":   {strings.Replace(whole, "slug: issues", `slug: !!bool '"issues","client_secret":"sk-123"'`, 1), "a.yaml:4:11: servers[0].slug: tags are not used here: write the value without !!bool"},
		"a secret of digits":   {strings.Replace(whole, "'{env.ISSUES_CLIENT_SECRET}'", "2026-01-31", 1), "a.yaml:7:20: servers[0].client_secret: a file holds no secret"},
		"a dated organization": {"organization: 2026-01-31\n", `a.yaml:1:15: organization: there is no organization "2026-01-31"`},
		"twice":                {"organization: acme\norganization: acme\n", "a.yaml:2:1: organization: this member is here twice"},
		"unknown word":         {"organization: acme\npolcies: []\n", "a.yaml:2:10: polcies: Extra inputs are not permitted"},
		"organization":         {"organization: other\n", `a.yaml:1:15: organization: there is no organization "other"`},
		"unknown entry":        {strings.Replace(whole, "directory: tracker", "directory: none", 1), `a.yaml:5:16: servers[0].directory: the server directory has no entry with the slug "none"`},
		"a secret":             {strings.Replace(whole, "'{env.ISSUES_CLIENT_SECRET}'", "sk-123", 1), "a.yaml:7:20: servers[0].client_secret: a file holds no secret: write a reference to it, {env.NAME} or {file./path}"},
		"a shown client":       {strings.Replace(whole, "client_id: gate", "client_id: ga...te", 1), "a.yaml:6:16: servers[0].client_id: give the actual value, not an obfuscated one"},
		"unset":                {strings.Replace(whole, "{env.ISSUES", "{env.OTHER", 1), "a.yaml:7:20: servers[0].client_secret: it is not set"},
		"ambiguous agent":      {strings.Replace(whole, "- robot-2", "- robot", 1), "a.yaml:23:9: policies[0].agents[0]: 2 agents have the name \"robot\": write the external_id of the one that is meant"},
		"unknown agent":        {strings.Replace(whole, "- robot-2", "- robot-3", 1), `a.yaml:23:9: policies[0].agents[0]: there is no agent of the name "robot-3"`},
		"unknown server":       {strings.Replace(whole, "server: Issues", "server: Isues", 1), `a.yaml:21:13: policies[0].server: there is no server of the name "Isues"`},
		"an id":                {strings.Replace(whole, "server: Issues", "mcp_server_id: Issues", 1), "a.yaml:21:5: policies[0].mcp_server_id: objects are named here, with server and agents: no member has an id"},
		"a wrong condition":    {strings.Replace(whole, "R.attr.n <", "R.attr.n ??", 1), "a.yaml:38:19: policies[0].rules[0].condition.match.expr: "},
		"a wrong type":         {strings.Replace(whole, "active: true", "active: sure", 1), "a.yaml:30:17: policies[0].rules[0].active: Input should be a valid boolean"},
		"missing":              {strings.Replace(whole, "    issuer: https://id.example.com\n    external_id: robot-2\n", "    issuer: https://id.example.com\n", 1), "a.yaml:16:5: agents[1].external_id: Field required"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newPlace(t)
			_, err := run(t, o, test.text, false)
			var problems Problems
			if !errors.As(err, &problems) || !strings.Contains("\n"+err.Error(), "\n"+test.want) {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "sk-123") {
				t.Errorf("it shows a secret: %v", err)
			}
			if got := export(t, o); got != "organization: acme\n" {
				t.Errorf("something was changed:\n%s", got)
			}
		})
	}
}

// TestAllOrNothing checks that a conflict, which only the store knows, leaves nothing of a file.
func TestAllOrNothing(t *testing.T) {
	o := newPlace(t)
	policy := "  - {name: NAME, server: Issues, status: ACTIVE, rules: [{name: r, authorized: true}]}\n"
	text := strings.Split(whole, "agents:\n")[0] + "policies:\n" + strings.Replace(policy, "NAME", "one", 1) + strings.Replace(policy, "NAME", "two", 1)
	_, err := run(t, o, text, false)
	var overlap *storage.OverlapError
	if !errors.As(err, &overlap) || !strings.Contains(err.Error(), `policy "two"`) {
		t.Errorf("got %v", err)
	}
	if got := export(t, o); got != "organization: acme\n" {
		t.Errorf("something was changed:\n%s", got)
	}
}

// TestTwoOrganizations checks that the error of a second organization does not say that nothing was changed.
func TestTwoOrganizations(t *testing.T) {
	const second = "0190aaaa-0000-7000-8000-000000000002"
	o := newPlace(t)
	if _, err := o.Store.ResolveOrganization(t.Context(), storage.OrganizationClaim{Issuer: issuer, ID: second, Slug: "bolt"}, start); err != nil {
		t.Fatal(err)
	}
	o.Organization = func(_ context.Context, named string) (string, error) {
		return map[string]string{"acme": organization, "bolt": second}[named], nil
	}
	policy := "  - {name: NAME, server: S, status: ACTIVE, rules: [{name: r, authorized: true}]}\n"
	conflicting := "servers: [{name: S, directory: tracker}]\npolicies:\n" + strings.Replace(policy, "NAME", "one", 1) + strings.Replace(policy, "NAME", "two", 1)
	both := "organization: acme\nservers: [{name: S, directory: tracker}]\n---\norganization: bolt\n" + conflicting
	_, err := run(t, o, both, false)
	if err == nil || !strings.HasPrefix(err.Error(), `changed: "acme"; nothing of the organization "bolt" was changed: policy "two"`) {
		t.Errorf("got %v", err)
	}
	if overlap := new(storage.OverlapError); !errors.As(err, &overlap) {
		t.Errorf("the cause is lost: %v", err)
	}
	if got := export(t, o); !strings.Contains(got, "name: S\n") {
		t.Errorf("the first organization has\n%s", got)
	}
	if _, err := run(t, o, "organization: bolt\n"+conflicting, false); err == nil || !strings.HasPrefix(err.Error(), `nothing of the organization "bolt" was changed: policy "two"`) {
		t.Errorf("alone: %v", err)
	}
}

// TestAudit checks that each change has the record that the API would have made of it, beside that of the whole, which names
// none of the objects.
func TestAudit(t *testing.T) {
	o := newPlace(t)
	o.Store = record.NewStore(o.Store, nil)
	applied(t, o, whole, "create server Issues", "create agent robot", "create agent robot", "create policy paused")
	applied(t, o, strings.Replace(whole, "status: INACTIVE", "status: ACTIVE", 1), "update policy paused status")
	records, err := o.Store.AuditRecords(t.Context(), storage.AuditFilter{OrganizationID: organization, To: start.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := readState(t.Context(), o.Store, o.Models.ConfiguredModels(), organization, start)
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{"server": s.servers[0].ID, "policy": s.policies[0].ID}
	events := make(map[string]int)
	for _, r := range records {
		var e storage.AuditEntry
		if err := json.Unmarshal(r.Text, &e); err != nil {
			t.Fatal(err)
		}
		events[e.Event]++
		kind, action, _ := strings.Cut(e.Event, ".")
		revision := map[string]int{"policy.create": 1, "policy.update": 2}[e.Event]
		switch {
		case kind == "configuration":
			if e.PolicyID != "" || e.ServerID != "" || len(e.Detail) > 0 {
				t.Errorf("the record of the whole: %s", r.Text)
			}
		case kind == "policy" && (e.PolicyID != ids[kind] || e.PolicyRevision != revision), kind == "server" && e.ServerID != ids[kind],
			ids[kind] != "" && e.Detail["id"] != ids[kind], e.Detail["id"] == "", e.Detail["declared"] != true:
			t.Errorf("%s: %s", action, r.Text)
		}
	}
	want := map[string]int{"configuration.apply": 2, "server.create": 1, "agent.create": 2, "policy.create": 1, "policy.update": 1}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestManyPolicies checks that 1,000 policies are applied in 5 seconds, with room for a busy machine.
func TestManyPolicies(t *testing.T) {
	o := newPlace(t)
	var text strings.Builder
	text.WriteString(strings.Split(whole, "policies:\n")[0] + "policies:\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "  - {name: policy %d, server: Issues, rules: [{name: r, authorized: true, condition: {match: {expr: 'R.attr.n < %d'}}}]}\n", i, i)
	}
	began := time.Now() //nolint:forbidigo // the promise is about real time
	plans, err := Run(t.Context(), o, []File{{"a.yaml", text.String()}}, false)
	took := time.Since(began)
	if err != nil || len(plans[0].Changes) != 1003 {
		t.Fatalf("%d plans, %v", len(plans), err)
	}
	t.Logf("1,000 policies took %s", took)
	if took > 50*time.Second {
		t.Errorf("1,000 policies took %s", took)
	}
}

// TestSchema checks that the schema has the members of files, in place of the API's, and no others.
func TestSchema(t *testing.T) {
	text, err := Schema(64<<10, newPlace(t).Models)
	if err != nil {
		t.Fatal(err)
	}
	type object struct {
		Properties map[string]struct{ Items *object }
		Required   []string
		Additional *bool `json:"additionalProperties"`
	}
	var described object
	if err := json.Unmarshal(text, &described); err != nil {
		t.Fatal(err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(whole), &root); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(root.Content[0].Content); i += 2 {
		list := root.Content[0].Content[i].Value
		known, ok := described.Properties[list]
		if !ok || described.Additional == nil || *described.Additional {
			t.Fatalf("the schema does not know %s alone", list)
		}
		for _, one := range root.Content[0].Content[i+1].Content {
			for j := 0; j < len(one.Content); j += 2 {
				if _, ok := known.Items.Properties[one.Content[j].Value]; !ok {
					t.Errorf("the schema does not know %s of %s", one.Content[j].Value, list)
				}
			}
		}
	}
	if diff := cmp.Diff([]string{"name", "server"}, described.Properties["policies"].Items.Required); diff != "" {
		t.Error(diff)
	}
	for _, id := range []string{"mcp_server_id", "application_ids", "policies"} {
		if _, ok := described.Properties["policies"].Items.Properties[id]; ok {
			t.Errorf("the schema has %s of policies", id)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(whole)
	f.Add("{\"organization\": \"acme\", \"policies\": [{\"name\": 1e3}]}")
	f.Add("a: !!binary x\n---\n- 0x1f\n---\nb: 0o7")
	f.Fuzz(func(t *testing.T, text string) {
		documents, problems := read([]File{{"a.yaml", text}})
		for _, d := range documents {
			if _, err := d.object(); err != nil && len(problems) == 0 && len(d.placed(err)) == 0 {
				t.Errorf("%q: a problem has no place: %v", text, err)
			}
		}
	})
}
