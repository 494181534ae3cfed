package declare

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/storage"
)

// ends lists what a plan would end, with what goes with it.
func ends(t *testing.T, o Options, text string) (lines []string) {
	t.Helper()
	o.Prune = true
	plans, err := Run(t.Context(), o, []File{{"a.yaml", text}}, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range plans[0].Changes {
		if c.Action != Delete {
			t.Errorf("it would %s %s %q", c.Action, c.Kind, c.Name)
		}
		line := c.Kind + " " + c.Name
		if c.Ends != nil {
			line += strings.Repeat(" connection", c.Ends.Connections) + strings.Repeat(" key", c.Ends.Keys)
		}
		lines = append(lines, line)
	}
	return lines
}

// connected adds a user with a connection to a server, whose tokens are those of a third party.
func connected(t *testing.T, o Options, server string) {
	t.Helper()
	u, err := o.Store.ResolveUser(t.Context(), storage.UserClaim{Issuer: issuer, OrganizationID: organization, Subject: "ann", DerivedID: newID(), Kind: storage.UserPerson}, start)
	if err != nil {
		t.Fatal(err)
	}
	s, err := o.Store.ServerBySlug(t.Context(), organization, server)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Store.CreateConnection(t.Context(), storage.Connection{
		ConnectionKey: storage.ConnectionKey{OrganizationID: organization, UserID: u.ID, ServerID: s.ID}, Kind: storage.ProviderOAuth2,
		ID: newID(), Status: storage.ConnectionConnected, SealedCredential: []byte("x"), CreatedAt: start, UpdatedAt: start,
	}); err != nil {
		t.Fatal(err)
	}
}

// TestPrune checks that exactly that ends which a former file made or took over, also objects that name each other, and that
// the plan counts what goes with it.
func TestPrune(t *testing.T) {
	o := newModelPlace(t)
	const policy = "policies:\n  - {name: reads, server: Issues, agents: [robot], rules: [{name: r, authorized: true}]}\n"
	const entry = "directory:\n  - {name: Own, slug: own, url: 'https://own.example.com/mcp', provider: none}\n"
	text := models + policy + entry + "---\norganization: acme\nservers:\n  - {name: Ours, directory: own}\n"
	if _, err := run(t, o, text, false); err != nil {
		t.Fatal(err)
	}
	byHand := storage.RateLimit{ID: newID(), OrganizationID: organization, Name: "by hand", Scope: storage.Scope{Type: storage.ScopeOrganization}, Traffic: storage.TrafficMCP, Enabled: true, CreatedAt: start, UpdatedAt: start}
	byHand.RequestsPerMinute = new(int64)
	if err := o.Store.CreateRateLimit(t.Context(), byHand); err != nil {
		t.Fatal(err)
	}
	connected(t, o, "issues")
	agents, err := o.Store.Agents(t.Context(), storage.AgentFilter{OrganizationID: organization})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.Store.CreateAPIKey(t.Context(), storage.APIKey{
		ID: newID(), OrganizationID: organization, Name: "k", HMAC: []byte(strings.Repeat("x", storage.APIKeyHMACSize)), Scopes: []string{"llm"}, AgentID: agents.Items[0].ID, CreatedAt: start,
	}); err != nil {
		t.Fatal(err)
	}

	const nothing = "organization: acme\n"
	if planned, err := run(t, o, nothing, true); err != nil || planned != nil {
		t.Errorf("without prune it would change %q, %v", planned, err)
	}
	want := []string{
		"policy reads", "budget all", "budget own", "rate_limit everybody", "rate_limit everybody", "rate_limit the robot", "rate_limit the tracker", "smart_model auto",
		"model_mapping judge", "model_mapping large", "llm_provider Own Models", "llm_provider open", "agent robot key", "server Issues connection", "server Ours", "directory_entry own",
	}
	if diff := cmp.Diff(want, ends(t, o, nothing)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got := ends(t, o, text); got != nil {
		t.Errorf("the same files end %q", got)
	}

	const referring = "organization: acme\npolicies:\n  - {name: reads, server: Issues, agents: [robot]}\nmodel_mappings:\n  - {model_alias: mine, targets: [{provider: open, model: m}], fallbacks: [judge]}\n"
	o.Prune = true
	kept, err := run(t, o, referring, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{"server Issues", "agent robot", "llm_provider open", "model_mapping judge"} {
		if slices.Contains(kept, "delete "+of) {
			t.Errorf("the %s ends, to which the files refer", of)
		}
	}
	before := export(t, o)
	if _, err := run(t, o, nothing, false); err == nil || !strings.Contains(err.Error(), `server "Issues": users are connected to it, and only a running gateway can tell the third party`) {
		t.Errorf("without anybody who tells the third party: %v", err)
	}
	if diff := cmp.Diff(before, export(t, o)); diff != "" {
		t.Errorf("something has ended:\n%s", diff)
	}
	var told []storage.DeletedServer
	o.Ending = func(ctx context.Context) (context.Context, func(context.Context, []storage.DeletedServer)) {
		return storage.WithEnding(ctx, func(context.Context, storage.Ended) ([]storage.Revocation, error) { return nil, nil }),
			func(_ context.Context, deleted []storage.DeletedServer) { told = append(told, deleted...) }
	}
	if _, err := run(t, o, nothing, false); err != nil {
		t.Fatal(err)
	}
	if got := export(t, o); !strings.HasPrefix(got, "organization: acme\nrate_limits:\n  - name: by hand\n") || strings.Count(got, "name:") != 1 {
		t.Errorf("left is:\n%s", got)
	}
	if len(told) != 2 {
		t.Errorf("told of %d servers", len(told))
	}
	if marks, err := o.Store.Declared(t.Context(), organization); err != nil || len(marks) != 0 {
		t.Errorf("marks of what has ended: %v, %v", marks, err)
	}
	if archived, err := o.Store.PolicyByName(t.Context(), organization, "reads"); !errors.Is(err, storage.ErrNotFound) && (err != nil || archived.Status != storage.PolicyArchived) {
		t.Errorf("the policy is %s, %v", archived.Status, err)
	}
}

// TestTakenOver checks that what was made by hand is managed by files once one says the same, and that its entry of the
// directory outlives its last server while files have it.
func TestTakenOver(t *testing.T) {
	o := newPlace(t)
	const text = "organization: acme\ndirectory:\n  - {name: Own, slug: own, url: 'https://own.example.com/mcp', provider: none}\n"
	const server = "servers:\n  - {name: Ours, directory: own}\n"
	if planned, err := Run(t.Context(), o, []File{{"a.yaml", text + server}}, true); err != nil || planned[0].Taken != 0 {
		t.Errorf("what is new is taken over: %+v, %v", planned, err)
	}
	applied(t, o, text+server, "create directory_entry own", "create server Ours")
	marks, err := o.Store.Declared(t.Context(), organization)
	if err != nil || len(marks) != 2 {
		t.Fatalf("marks: %v, %v", marks, err)
	}
	if err := o.Store.SetDeclared(t.Context(), organization, nil, marks); err != nil { // as if made by hand
		t.Fatal(err)
	}
	o.Prune = true
	if planned, err := run(t, o, text, true); err != nil || planned != nil {
		t.Errorf("what was made by hand ends: %q, %v", planned, err)
	}
	used, err := run(t, o, "organization: acme\n"+server, true)
	if err != nil || used != nil {
		t.Errorf("an entry ends that a server of the files has: %q, %v", used, err)
	}
	plans, err := Run(t.Context(), o, []File{{"a.yaml", text + server}}, false)
	if err != nil || plans[0].Taken != 2 || len(plans[0].Changes) != 0 {
		t.Fatalf("%+v, %v", plans, err)
	}
	if plans, err := Run(t.Context(), o, []File{{"a.yaml", text + server}}, true); err != nil || plans[0].Taken != 0 {
		t.Errorf("taken over twice: %+v, %v", plans, err)
	}
	if got, err := run(t, o, text, false); err != nil || strings.Join(got, ";") != "delete server Ours" {
		t.Errorf("got %q, %v", got, err)
	}
	if got := export(t, o); !strings.Contains(got, "slug: own\n") || strings.Contains(got, "Ours") {
		t.Errorf("left is:\n%s", got)
	}
}

// TestPruneOfNothing checks that files that declare nothing end what is managed only when they name the organization.
func TestPruneOfNothing(t *testing.T) {
	o := newPlace(t)
	byToken := o.Organization
	o.Organization = func(ctx context.Context, named string) (string, error) {
		if named == "" {
			return organization, nil // that of a token
		}
		return byToken(ctx, named)
	}
	o.Prune = true
	if got, err := run(t, o, "{}\n", false); err != nil || got != nil {
		t.Errorf("where nothing is managed: %q, %v", got, err)
	}
	if _, err := run(t, o, whole, false); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t, o, "{}\n", true); err == nil || !strings.Contains(err.Error(), "a.yaml:1:1: these files declare nothing, so that all that files manage would end") {
		t.Errorf("without a name: %v", err)
	}
	if got, err := run(t, o, "organization: acme\n", false); err != nil || len(got) != 4 {
		t.Errorf("with its name: %q, %v", got, err)
	}
}

// TestPruneAudit checks that the record of the whole says that it was a prune, and that of a policy that it was archived.
func TestPruneAudit(t *testing.T) {
	o := newPlace(t)
	o.Store = record.NewStore(o.Store, nil)
	if _, err := run(t, o, whole, false); err != nil {
		t.Fatal(err)
	}
	o.Prune = true
	if _, err := run(t, o, strings.Split(whole, "policies:")[0], false); err != nil {
		t.Fatal(err)
	}
	records, err := o.Store.AuditRecords(t.Context(), storage.AuditFilter{OrganizationID: organization, To: start.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	var prunes, archived int
	for _, r := range records {
		text := string(r.Text)
		if strings.Contains(text, `"configuration.apply"`) && strings.Contains(text, `"prune":true`) {
			prunes++
		}
		if strings.Contains(text, `"policy.update"`) && strings.Contains(text, `"fields":["status"]`) {
			archived++
		}
	}
	if prunes != 1 || archived != 1 {
		t.Errorf("%d prunes, %d archived", prunes, archived)
	}
}
