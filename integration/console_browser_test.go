package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
)

// consoleRoutes are the console's screens, and their parts.
var consoleRoutes = []string{
	"/console", "/console/servers", "/console/servers/demo", "/console/servers/demo?tab=tools", "/console/servers/demo?tab=use", "/console/servers/demo?tab=calls",
	"/console/approvals", "/console/approvals?tab=others", "/console/approvals?tab=decided", "/console/activity", "/console/activity?decision=deny", "/console/activity?decision=ask", "/console/keys", "/console/clients", "/console/settings",
	"/console/again", "/console/nothing/here",
}

// organizationRoutes are the screens of those who look after an organization.
var organizationRoutes = []string{
	"/console/organization", "/console/organization/tools", "/console/organization/servers", "/console/organization/servers/new", "/console/organization/servers/new?by=address",
	"/console/organization/servers/demo", "/console/organization/servers/demo?tab=tools", "/console/organization/servers/demo?tab=connections",
	"/console/organization/servers/demo?tab=policies", "/console/organization/policies", "/console/organization/policies/new",
	"/console/organization/agents", "/console/organization/people", "/console/organization/audit", "/console/organization/audit?decision=deny",
	"/console/organization/models", "/console/organization/models?tab=smart", "/console/organization/models?tab=providers",
	"/console/organization/limits", "/console/organization/budgets", "/console/organization/usage", "/console/organization/keys", "/console/organization/refused", "/console/settings",
}

// hostileName is a name that would run as a script, shows nothing in a part, and turns the direction of what follows.
const hostileName = "\"><img src=x onerror=ran(1)><script>ran(2)</script>\u202Eevil\u200B"

// TestConsoleScreens has every screen looked at in Chromium: by axe, for stored or shown secrets, forbidden scripts, errors,
// hidden characters, and at a width of 320 pixels. Each screen has one of the looks. DURWARD_CONSOLE=all looks at all in each,
// for each kind of user.
func TestConsoleScreens(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	d.fillConsole(t)
	l := startLooker(t, d.url)

	type visit struct {
		user, as string
		routes   []string
	}
	visits := []visit{{clientUser, "user", consoleRoutes}, {"admin@example.test", "admin", slices.Concat(organizationRoutes, d.policyRoutes(t), d.personRoutes(t), []string{d.smartRoute(t)})}}
	if os.Getenv("DURWARD_CONSOLE") == "all" {
		visits[1].routes = append(visits[1].routes, consoleRoutes...)
		visits = append(visits, visit{"eve@rival.test", "empty", slices.Concat(consoleRoutes, organizationRoutes)})
	}
	for _, visit := range visits {
		t.Run(visit.as, func(t *testing.T) {
			l.t = t
			l.do("login", "user", visit.user, "path", "/console/keys")
			for i, path := range visit.routes {
				looks := []struct {
					scheme string
					width  int
				}{{"light", 0}, {"dark", 320}}
				if os.Getenv("DURWARD_CONSOLE") == "all" {
					looks = append(looks, looks[0], looks[1])
					looks[2].scheme, looks[3].scheme = "dark", "light"
				}
				if os.Getenv("DURWARD_CONSOLE") != "all" {
					looks = looks[i%2 : i%2+1]
				}
				for _, look := range looks {
					l.do("screen", "path", path, "scheme", look.scheme, "width", look.width,
						"picture", l.picture(fmt.Sprintf("%s-%02d-%s-%d", visit.as, i, look.scheme, look.width)))
				}
			}
		})
	}
	d.process.stop(t)
	d.process.checkLog(t)
}

// policyRoutes returns the editors of the organization's policies.
func (d *dev) policyRoutes(t *testing.T) []string {
	t.Helper()
	return d.routesOf(t, "/api/v2/policies", "/console/organization/policies/")
}

// smartRoute returns the screen of the smart model that development mode begins with.
func (d *dev) smartRoute(t *testing.T) string {
	t.Helper()
	var all []struct{ ID string }
	status, body := d.api(t, d.tokenOf(t, "admin@example.test"), http.MethodGet, "/api/llm-gateway/admin/smart-models")
	if err := json.Unmarshal([]byte(body), &all); err != nil || status != http.StatusOK || len(all) != 1 {
		t.Fatalf("smart models: %d %s: %v", status, body, err)
	}
	return "/console/organization/models/" + all[0].ID
}

// personRoutes returns the screens of the people whom the gateway has seen.
func (d *dev) personRoutes(t *testing.T) []string {
	t.Helper()
	return d.routesOf(t, "/api/users", "/console/organization/people/")
}

// routesOf returns the screens of the objects of a list.
func (d *dev) routesOf(t *testing.T, list, below string) (routes []string) {
	t.Helper()
	var page struct{ Data []struct{ ID string } }
	status, body := d.api(t, d.tokenOf(t, "admin@example.test"), http.MethodGet, list)
	if err := json.Unmarshal([]byte(body), &page); err != nil || status != http.StatusOK || len(page.Data) == 0 {
		t.Fatalf("%s: %d %s: %v", list, status, body, err)
	}
	for _, object := range page.Data {
		routes = append(routes, below+object.ID)
	}
	return routes
}

// TestConsoleByKeyboard makes and revokes a key by keyboard alone. The key's name is hostile, and its secret is shown once.
func TestConsoleByKeyboard(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	l := startLooker(t, d.url)
	l.do("login", "user", clientUser, "path", "/console/keys")
	l.do("screen", "path", "/console/keys", "scheme", "light")
	l.do("keyboard", "to", "New key", "key", "Enter")
	l.do("until", "text", "It expires after")
	l.do("inspect")
	l.do("keyboard", "to", "Name", "text", `"><img src=x onerror=ran(1)>`)
	l.do("keyboard", "to", "Make the key", "key", "Enter")
	l.do("until", "text", "It is shown this once")
	l.do("inspect")
	l.do("picture", "path", l.picture("key"))
	l.do("keyboard", "to", "Copy the key", "key", "Enter")
	l.do("until", "text", "Copied")
	l.do("keyboard", "to", "I have copied it", "key", "Enter")
	l.do("gone", "text", "It is shown this once")
	l.do("keyboard", "to", `Revoke "><img src=x onerror=ran(1)>`, "key", "Enter")
	l.do("until", "text", "It cannot be brought back")
	l.do("inspect")
	l.do("keyboard", "to", "Revoke", "key", "Enter")
	l.do("until", "text", "is revoked.")
	l.do("gone", "text", "It cannot be brought back")
	l.do("inspect")
	status, body := d.api(t, d.token(t), http.MethodGet, "/api/llm-gateway/user/api-keys")
	if status != http.StatusOK || strings.Count(body, `"revoked_at":"`) != 1 {
		t.Errorf("the key was not revoked: %d %s", status, body)
	}
	l.do("forget")
	l.do("until", "text", "Log in as one of these users")
	d.process.stop(t)
	d.process.checkLog(t)
}

// TestConsoleFollows checks that held calls and the progress of jobs come by one stream each, without the page asking again.
func TestConsoleFollows(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	d.connect(t, d.token(t), clientAccount)
	l := startLooker(t, d.url)
	l.do("login", "user", clientUser, "path", "/console/approvals")
	for i := range 2 {
		held := approvalPage.FindStringSubmatch(d.callTool(t, "delete_issue", fmt.Sprintf(`{"id":%d}`, i+1)))
		if held == nil {
			t.Fatal("the call was not held")
		}
		l.do("until", "text", "Look and decide")
		l.do("until", "text", "held call")
		if status, body := d.asked(t, d.consoleToken(t), http.MethodPost, "/api/approvals/"+held[2]+"/deny", ""); status != http.StatusOK {
			t.Fatalf("deciding: %d %s", status, body)
		}
		l.do("gone", "text", "Look and decide")
	}
	l.do("asked", "path", "/api/approvals", "times", 1)
	policy := d.policyRoutes(t)[0]
	l.do("login", "user", "admin@example.test", "path", policy)
	l.do("keyboard", "to", "Replay", "key", "Enter")
	l.do("until", "text", "newly refused")
	l.do("asked", "path", "/api/jobs/", "times", 1)
	l.do("inspect")
	d.process.stop(t)
	d.process.checkLog(t)
}

// TestConsolePolicyOfCalls makes a policy of recorded calls, has it watch, changes it and brings its first state back, by keyboard
// alone.
func TestConsolePolicyOfCalls(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	admin := d.tokenOf(t, "admin@example.test")
	d.connect(t, d.token(t), clientAccount)
	d.callTool(t, "create_issue", `{"title":"First"}`)
	var server struct{ ID string }
	if _, body := d.api(t, admin, http.MethodGet, "/api/servers/by-slug/demo"); json.Unmarshal([]byte(body), &server) != nil {
		t.Fatal(body)
	}
	l := startLooker(t, d.url)
	l.do("login", "user", "admin@example.test", "path", "/console/organization/audit?kind=call&server="+server.ID)
	l.do("keyboard", "to", "A policy from these calls", "key", "Enter")
	l.do("until", "text", "This allows exactly 1 recorded call")
	l.do("inspect")
	l.do("keyboard", "to", "Save as a draft", "key", "Enter")
	l.do("until", "text", "What would it change, from now on?")
	l.do("keyboard", "to", "Watch calls", "key", "Enter")
	l.do("until", "text", "would be decided otherwise")
	d.callTool(t, "list_issues", `{}`)
	var all struct {
		Data []struct{ ID, Status string }
	}
	if _, body := d.api(t, admin, http.MethodGet, "/api/v2/policies?status=DRAFT"); json.Unmarshal([]byte(body), &all) != nil || len(all.Data) != 1 {
		t.Fatalf("the draft is not there: %s", body)
	}
	id := all.Data[0].ID
	_, first := d.api(t, admin, http.MethodGet, "/api/v2/policies/"+id)
	if !strings.Contains(first, "create_issue") {
		t.Errorf("the policy does not name the call: %s", first)
	}
	if status, body := d.asked(t, admin, http.MethodPatch, "/api/v2/policies/"+id, `{"rules":[{"name":"nothing","authorized":false}]}`); status != http.StatusOK {
		t.Fatalf("changing: %d %s", status, body)
	}
	l.do("screen", "path", "/console/organization/policies/"+id, "scheme", "dark")
	l.do("keyboard", "to", "Revision 2: shadow", "key", "Enter")
	l.do("keyboard", "to", "Revision 3: rules", "key", "Enter")
	l.do("inspect")
	l.do("picture", "path", l.picture("history"))
	l.do("keyboard", "to", "Back to revision 2", "key", "Enter")
	l.do("until", "text", "This brings back rules, as a new revision.")
	l.do("inspect")
	l.do("keyboard", "to", "Bring it back", "key", "Enter")
	l.do("until", "text", "is as it was at revision 2")
	if _, now := d.api(t, admin, http.MethodGet, "/api/v2/policies/"+id); !strings.Contains(now, "create_issue") || !strings.Contains(now, `"revision":4`) {
		t.Errorf("the former rules are not back: %s", now)
	}
	d.process.stop(t)
	d.process.checkLog(t)
}

// TestConsoleUsage checks that the chart shows what the API counts, and that administrators make keys for others.
func TestConsoleUsage(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	l := startLooker(t, d.url)
	l.do("login", "user", "admin@example.test", "path", "/console/organization/keys")
	l.do("keyboard", "to", "New key", "key", "Enter")
	l.do("keyboard", "to", "Name", "text", "for a group")
	l.do("keyboard", "to", "For", "key", "ArrowDown")
	l.do("keyboard", "to", "Name of the group", "text", "support")
	l.do("inspect")
	l.do("keyboard", "to", "Make the key", "key", "Enter")
	l.do("until", "text", "It is shown this once")
	l.do("keyboard", "to", "I have copied it", "key", "Enter")
	l.do("until", "text", "group support")
	var made struct{ Key string }
	if _, body := d.asked(t, d.consoleToken(t), http.MethodPost, "/api/llm-gateway/user/api-keys", `{"name":"caller","scopes":["llm"]}`); json.Unmarshal([]byte(body), &made) != nil {
		t.Fatal(body)
	}
	for range 3 {
		if status, body := d.asked(t, made.Key, http.MethodPost, "/api/llm-gateway/v1/chat/completions", `{"model":"small","messages":[{"role":"user","content":"Hello?"}]}`); status != http.StatusOK {
			t.Fatalf("calling a model: %d %s", status, body)
		}
	}
	for _, look := range []string{"light", "dark"} {
		l.do("screen", "path", "/console/organization/usage?of=requests&days=1", "scheme", look)
		l.do("labelled", "text", "Requests: 3 in all")
		l.do("inspect")
		l.do("picture", "path", l.picture("usage-"+look))
	}
	l.do("screen", "path", "/console/organization/usage?of=requests&days=7", "scheme", "light", "width", 320)
	l.do("labelled", "text", "Requests: 3 in all")
	d.process.stop(t)
	d.process.checkLog(t)
}

// TestConsoleBegins checks that an organization without calls is told its first steps, until one was allowed, and that a refused
// token is shown with what it claims, never as more than text.
func TestConsoleBegins(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	l := startLooker(t, d.url)
	l.do("login", "user", "admin@example.test", "path", "/console/organization")
	l.do("until", "text", "First steps")
	l.do("inspect")
	l.do("picture", "path", l.picture("begins"))
	d.connect(t, d.token(t), clientAccount)
	d.callTool(t, "create_issue", `{"title":"First"}`)
	l.do("gone", "text", "First steps")
	// Nobody sees refused tokens of several organizations, as development mode has them. Those of one look like this.
	l.do("answer", "path", "/api/refused-tokens", "body", `{"tokens":[{"at":"2026-03-01T12:00:00Z","from":"192.0.2.1","path":"/mcp/demo","status":401,
		"signature_verified":false,"claims":{"sub":"<img src=x onerror=ran(3)>"},"reason":"the issuer is unknown","refused_by":"identity",
		"accepted_by":"identity oidc https://other.example\u202e","advice":"Add the identity."}]}`)
	l.do("screen", "path", "/console/organization/refused", "scheme", "light")
	l.do("until", "text", "May be made up")
	l.do("keyboard", "to", "What the token says", "key", "Enter")
	l.do("until", "text", "<img src=x onerror=ran(3)>")
	l.do("until", "text", "identity oidc https://other.example⟨U+202E⟩")
	l.do("inspect")
	l.do("picture", "path", l.picture("refused"))
	d.process.stop(t)
	d.process.checkLog(t)
}

// TestConsoleModels makes an alias and deletes it, and has a smart model choose, by keyboard alone.
func TestConsoleModels(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	l := startLooker(t, d.url)
	l.do("login", "user", "admin@example.test", "path", "/console/organization/models")
	l.do("keyboard", "to", "New alias", "key", "Enter")
	l.do("keyboard", "to", "Alias", "text", "another")
	l.do("keyboard", "to", "Model", "text", "demo-small")
	l.do("inspect")
	l.do("keyboard", "to", "Make the alias", "key", "Enter")
	l.do("until", "text", "Make the alias: done.")
	const mappings = "/api/llm-gateway/admin/model-mappings"
	if status, body := d.api(t, d.tokenOf(t, "admin@example.test"), http.MethodGet, mappings); status != http.StatusOK || !strings.Contains(body, `"model_alias":"another"`) {
		t.Errorf("the alias was not made: %d %s", status, body)
	}
	l.do("keyboard", "to", "Delete another", "key", "Enter")
	l.do("keyboard", "to", "Delete it", "key", "Enter")
	l.do("until", "text", "another is deleted.")
	d.changesModels(t, l)
	if status, body := d.api(t, d.tokenOf(t, "admin@example.test"), http.MethodGet, mappings); status != http.StatusOK || strings.Contains(body, `"model_alias":"another"`) {
		t.Errorf("the alias was not deleted: %d %s", status, body)
	}
	const file = `{"files":[{"name":"a.yaml","text":"model_mappings: [{model_alias: filed, targets: [{provider: demo-openai, model: demo-small}]}]"}]}`
	if status, body := d.asked(t, d.tokenOf(t, "admin@example.test"), http.MethodPost, "/api/configuration/apply", file); status != http.StatusOK {
		t.Fatalf("applying a file: %d %s", status, body)
	}
	l.do("login", "user", "admin@example.test", "path", "/console/organization/models")
	l.do("until", "text", "Managed by file")
	l.do("inspect")
	d.changesSmart(t, l)
	l.do("login", "user", "admin@example.test", "path", d.smartRoute(t))
	l.do("keyboard", "to", "What somebody asks", "text", "Good morning!")
	l.do("keyboard", "to", "Choose", "key", "Enter")
	l.do("until", "text", "It would go to small, slot 0")
	l.do("keyboard", "to", "Examples", "text", "0: Good morning!\n2: Prove that there are infinitely many primes.\n0: Prove: a\n")
	l.do("keyboard", "to", "Evaluate", "key", "Enter")
	l.do("until", "text", "2 examples went to the right slot, 0 too low, 1 too high.")
	l.do("inspect")
	l.do("picture", "path", l.picture("smart"))
	d.process.stop(t)
	d.process.checkLog(t)
}

// changesSmart makes a smart model, changes it after a trial of what is typed, and deletes it, by keyboard alone where it decides.
func (d *dev) changesSmart(t *testing.T, l *looker) {
	t.Helper()
	const smart = "/api/llm-gateway/admin/smart-models"
	boss := d.tokenOf(t, "admin@example.test")
	l.do("login", "user", "admin@example.test", "path", "/console/organization/models?tab=smart")
	l.do("keyboard", "to", "New smart model", "key", "Enter")
	l.do("fill", "label", "Alias", "text", "mine")
	l.do("keyboard", "to", "Alias of slot 0", "text", "small")
	l.do("keyboard", "to", "Make the smart model", "key", "Enter")
	l.do("until", "text", "Make the smart model: done.")
	l.do("keyboard", "to", "Change mine", "key", "Enter")
	l.do("keyboard", "to", "One more slot", "key", "Enter")
	l.do("fill", "label", "Alias of slot 1", "text", "large")
	l.do("fill", "label", "Requests that slot 1 is for", "text", "proofs, planning")
	l.do("fill", "label", "Tokens from which the next slot is the lowest", "text", "9000")
	l.do("keyboard", "to", "Try it before it is kept", "key", "Enter")
	l.do("keyboard", "to", "What somebody asks", "text", "Prove that there are infinitely many primes.")
	l.do("fill", "label", "Alias that reads the request and chooses", "text", "small")
	l.do("keyboard", "to", "Choose", "key", "Enter")
	l.do("until", "text", "It would go to large, slot 1")
	l.do("inspect")
	l.do("picture", "path", l.picture("smartform"))
	if _, body := d.api(t, boss, http.MethodGet, smart); strings.Contains(body, "proofs, planning\"}],\"context_breakpoints\":[9000]") {
		t.Errorf("a trial was kept: %s", body)
	}
	l.do("choose", "label", "A conversation stays where it began")
	l.do("keyboard", "to", "Keep the changes", "key", "Enter")
	l.do("until", "text", "mine is changed.")
	l.do("inspect")
	var all []struct {
		Alias       string `json:"model_alias"`
		Enabled     bool
		Sticky      bool
		Determiner  string `json:"determiner_model_alias"`
		Slots       []struct{ Label string }
		Breakpoints []int `json:"context_breakpoints"`
	}
	_, body := d.api(t, boss, http.MethodGet, smart)
	if err := json.Unmarshal([]byte(body), &all); err != nil || len(all) != 2 {
		t.Fatalf("the smart models are %s: %v", body, err)
	}
	if m := all[1]; m.Alias != "mine" || !m.Enabled || !m.Sticky || m.Determiner != "small" || len(m.Slots) != 2 || m.Slots[1].Label != "proofs, planning" || !slices.Equal(m.Breakpoints, []int{9000}) {
		t.Errorf("the smart model is %+v", m)
	}
	l.do("screen", "path", "/console/organization/models?tab=smart", "scheme", "dark", "width", 320)
	l.do("keyboard", "to", "Change mine", "key", "Enter")
	l.do("until", "text", "Calls that come from then on go by the changes.")
	l.do("inspect")
	l.do("picture", "path", l.picture("smartform-320"))
	l.do("keyboard", "to", "Cancel", "key", "Enter")
	l.do("keyboard", "to", "Delete mine", "key", "Enter")
	l.do("keyboard", "to", "Delete it", "key", "Enter")
	l.do("until", "text", "mine is deleted.")
}

// TestConsoleRotates gives a key a new secret by keyboard alone: both work until the former one is ended at once.
func TestConsoleRotates(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	l := startLooker(t, d.url)
	const keys = "/api/llm-gateway/admin/api-keys"
	boss := d.logsInAs(t, "admin@example.test", "/console").mustToken(t)
	status, body := d.asked(t, boss, http.MethodPost, keys, `{"name":"nightly","scopes":["llm"]}`)
	var former struct{ ID, Key string }
	if err := json.Unmarshal([]byte(body), &former); err != nil || status != http.StatusOK {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	works := func(key string) bool {
		t.Helper()
		status, _ := d.asked(t, key, http.MethodPost, "/api/llm-gateway/v1/chat/completions", `{"model":"small","messages":[{"role":"user","content":"Hello?"}]}`)
		return status == http.StatusOK
	}
	l.do("login", "user", "admin@example.test", "path", "/console/organization/keys")
	l.do("keyboard", "to", "Rotate nightly", "key", "Enter")
	l.do("inspect")
	l.do("picture", "path", l.picture("rotate"))
	l.do("keyboard", "to", "Make the new secret", "key", "Enter")
	l.do("until", "text", "works until it ends in a day")
	l.do("inspect")
	l.do("picture", "path", l.picture("rotated"))
	l.do("keyboard", "to", "I have copied it", "key", "Enter")
	var all []struct {
		ID      string
		Expires *string `json:"expires_at"`
	}
	if _, body := d.api(t, boss, http.MethodGet, keys); json.Unmarshal([]byte(body), &all) != nil || len(all) != 2 {
		t.Fatalf("the keys are %s", body)
	}
	for _, k := range all {
		if (k.ID == former.ID) != (k.Expires != nil) {
			t.Errorf("the ends of the keys: %+v", all)
		}
	}
	if !works(former.Key) {
		t.Error("the former key ended at once")
	}
	_, body = d.asked(t, boss, http.MethodPost, keys, `{"name":"monthly","scopes":["llm"]}`)
	if err := json.Unmarshal([]byte(body), &former); err != nil || !works(former.Key) {
		t.Fatalf("%s: %v", body, err)
	}
	l.do("login", "user", "admin@example.test", "path", "/console/organization/keys")
	l.do("keyboard", "to", "Rotate monthly", "key", "Enter")
	l.do("keyboard", "to", "The former one ends", "key", "Home")
	l.do("until", "text", "stops working at once")
	l.do("keyboard", "to", "Make the new secret", "key", "Enter")
	l.do("until", "text", "has ended")
	l.do("keyboard", "to", "I have copied it", "key", "Enter")
	if works(former.Key) {
		t.Error("the former key still works")
	}
	d.process.stop(t)
}

// changesModels changes a provider and an alias by keyboard alone. What the forms do not show stays as it is: the key of the
// provider, the timeouts of a target.
func (d *dev) changesModels(t *testing.T, l *looker) {
	t.Helper()
	const models = "/api/llm-gateway/admin/"
	boss := d.tokenOf(t, "admin@example.test")
	make := func(kind, body string) string {
		var made struct{ ID string }
		status, answer := d.asked(t, boss, http.MethodPost, models+kind, body)
		if err := json.Unmarshal([]byte(answer), &made); err != nil || status != http.StatusOK {
			t.Fatalf("%d %s: %v", status, answer, err)
		}
		return models + kind + "/" + made.ID
	}
	provider := make("providers", `{"name":"mine","kind":"openai","base_url":"https://models.example.com/v1","api_key":"canary-of-the-provider"}`)
	id := provider[strings.LastIndex(provider, "/")+1:]
	target := func(model, timeouts string, weight int) string {
		return fmt.Sprintf(`{"provider_id":%q,"model":%q,"weight":%d,"timeouts":%s}`, id, model, weight, timeouts)
	}
	const long = `{"connect_ms":null,"response_ms":61000,"idle_ms":null}`
	alias := make("model-mappings", `{"model_alias":"mixed","targets":[`+target("first", long, 3)+","+target("second", `null`, 1)+`]}`)
	l.do("screen", "path", "/console/organization/models", "scheme", "light")
	l.do("keyboard", "to", "Change mixed", "key", "Enter")
	l.do("keyboard", "to", "Remove model 2", "key", "Enter")
	l.do("keyboard", "to", "One more model", "key", "Enter")
	l.do("fill", "label", "Model", "nth", 1, "text", "third")
	l.do("keyboard", "to", "What it is for", "text", "everything")
	l.do("inspect")
	l.do("picture", "path", l.picture("alias"))
	l.do("keyboard", "to", "Keep the changes", "key", "Enter")
	l.do("until", "text", "mixed is changed.")
	var changed struct {
		Description string
		Targets     []struct {
			ID       string `json:"provider_id"`
			Model    string
			Weight   int
			Timeouts struct {
				Response *int `json:"response_ms"`
			}
		}
	}
	_, body := d.api(t, boss, http.MethodGet, alias)
	if err := json.Unmarshal([]byte(body), &changed); err != nil || changed.Description != "everything" || len(changed.Targets) != 2 ||
		changed.Targets[0].Model != "first" || changed.Targets[0].Weight != 3 || changed.Targets[0].Timeouts.Response == nil || *changed.Targets[0].Timeouts.Response != 61000 ||
		changed.Targets[1].Model != "third" || changed.Targets[1].Timeouts.Response != nil {
		t.Errorf("the alias is %s: %v", body, err)
	}
	l.do("screen", "path", "/console/organization/models?tab=providers", "scheme", "dark", "width", 390)
	l.do("keyboard", "to", "Change mine", "key", "Enter")
	l.do("until", "text", "Calls by mixed go there from then on.")
	l.do("fill", "label", "Name", "text", "ours")
	l.do("inspect")
	l.do("picture", "path", l.picture("provider"))
	l.do("keyboard", "to", "Keep the changes", "key", "Enter")
	l.do("until", "text", "mine is changed.")
	if _, body := d.api(t, boss, http.MethodGet, provider); !strings.Contains(body, `"name":"ours"`) || !strings.Contains(body, `"has_api_key":true`) || strings.Contains(body, "canary") {
		t.Errorf("the provider is %s", body)
	}
	l.do("keyboard", "to", "Change ours", "key", "Enter")
	l.do("choose", "label", "Forget the key that it has")
	l.do("keyboard", "to", "Keep the changes", "key", "Enter")
	l.do("until", "text", "ours is changed.")
	if _, body := d.api(t, boss, http.MethodGet, provider); !strings.Contains(body, `"has_api_key":false`) {
		t.Errorf("the provider without its key is %s", body)
	}
	l.do("keyboard", "to", "Delete ours", "key", "Enter")
	l.do("until", "text", "It stays as long as an alias uses it: mixed.")
	l.do("keyboard", "to", "Keep it", "key", "Enter")
}

// TestConsoleFiles checks that a table's file has all of its rows, also those that the screen has not loaded, that no name
// becomes a formula in it, and that the request of a screen is shown without a token.
func TestConsoleFiles(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	const keys = "/api/llm-gateway/user/api-keys"
	token := d.consoleToken(t)
	for range 60 {
		status, body := d.asked(t, token, http.MethodPost, keys, `{"name":"=1+1,\"x\"","scopes":["llm"]}`)
		var made struct{ ID string }
		if err := json.Unmarshal([]byte(body), &made); err != nil || status != http.StatusOK {
			t.Fatalf("making a key: %d %s", status, body)
		}
		if status, body = d.asked(t, token, http.MethodDelete, keys+"/"+made.ID, ""); status != http.StatusOK {
			t.Fatalf("revoking a key: %d %s", status, body)
		}
	}
	l := startLooker(t, d.url)
	l.do("login", "user", clientUser, "path", "/console/keys")
	l.do("download", "to", "CSV of Your API keys", "has", []string{"id,", `"'=1+1,""x"""`}, "lines", 60)
	l.do("keyboard", "to", "As API request for Your API keys", "key", "Enter")
	l.do("until", "text", `curl -H "Authorization: Bearer $TOKEN" '`+d.url+keys+"'")
	l.do("inspect")
	l.do("login", "user", "admin@example.test", "path", "/console/organization/audit?kind=credential")
	l.do("download", "to", "CSV of Records", "has", []string{"id,"}, "lines", 120)
	l.do("until", "text", "rows.")
	l.do("picture", "path", l.picture("source"))
	l.do("keyboard", "to", "As API request for Records", "key", "Enter")
	l.do("until", "text", "/api/audit?kind=credential&limit=50&cursor='")
	l.do("inspect")
	d.process.stop(t)
	d.process.checkLog(t)
}

// TestConsolePalette goes to a screen, a server, an agent and a person by keyboard alone. Who looks after nothing finds no screens
// of those who do.
func TestConsolePalette(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	d.fillConsole(t)
	l := startLooker(t, d.url)
	l.do("login", "user", "admin@example.test", "path", "/console/keys")
	for i, c := range []struct{ text, found, at string }{
		{"budg", "Budgets", "/console/organization/budgets"},
		{"server demo", "Server demo", "/console/organization/servers/demo"},
		{"onerror", "⟨U+202E⟩", "/console/organization/servers/more-0"},
		{"agent dev-agent", "Agent dev-agent", "/console/organization/agents"},
		{clientUser, "Person", "/console/organization/people/"},
	} {
		l.do("press", "key", "Control+k")
		l.do("option", "text", "Home")
		l.do("press", "text", c.text)
		l.do("option", "text", c.found)
		if i == 2 {
			l.do("inspect")
			l.do("picture", "path", l.picture("palette"))
		}
		l.do("press", "key", "Enter")
		l.do("at", "path", c.at)
	}
	l.do("login", "user", clientUser, "path", "/console/keys")
	l.do("press", "key", "Control+k")
	l.do("option", "text", "Home")
	l.do("press", "text", "budgets")
	l.do("until", "text", "Nothing has this name.")
	l.do("press", "key", "Escape")
	l.do("keyboard", "to", "Go toCtrl K", "key", "Enter")
	l.do("option", "text", "Home")
	l.do("press", "key", "ArrowDown")
	l.do("option", "text", "My servers")
	l.do("press", "key", "Enter")
	l.do("at", "path", "/console/servers")
	d.process.stop(t)
	d.process.checkLog(t)
}

// TestConsoleFreshLogin logs in anew, by keyboard alone, where making a key needs that. What was typed before stays.
func TestConsoleFreshLogin(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	l := startLooker(t, d.url)
	l.do("login", "user", clientUser, "path", "/console/keys")
	l.do("stale", "path", "/api/llm-gateway/user/api-keys")
	l.do("keyboard", "to", "New key", "key", "Enter")
	l.do("keyboard", "to", "Name", "text", "typed before")
	l.do("keyboard", "to", "Make the key", "key", "Enter")
	l.do("until", "text", "Log in again for this")
	l.do("inspect")
	l.do("picture", "path", l.picture("fresh"))
	l.do("relogin", "to", "Log in in a new tab", "user", clientUser)
	l.do("until", "text", "It is shown this once")
	l.do("inspect")
	if status, body := d.api(t, d.token(t), http.MethodGet, "/api/llm-gateway/user/api-keys"); status != http.StatusOK || strings.Count(body, `"name":"typed before"`) != 1 {
		t.Errorf("the key was not made once: %d %s", status, body)
	}
	d.process.stop(t)
	d.process.checkLog(t)
}

// fillConsole lets something be on every screen of alice's: a connection, calls that were done, held, decided and refused, a key,
// and servers with a hostile name.
func (d *dev) fillConsole(t *testing.T) {
	t.Helper()
	alice, admin := d.token(t), d.tokenOf(t, "admin@example.test")
	d.connect(t, alice, clientAccount)
	for _, arguments := range []string{`{"title":"First"}`, `{"title":"Second"}`, `{"title":"Third"}`} {
		d.callTool(t, "create_issue", arguments)
	}
	d.callTool(t, "no_such_tool", `{}`)
	for i := range 2 {
		held := approvalPage.FindStringSubmatch(d.callTool(t, "delete_issue", fmt.Sprintf(`{"id":%d,"note":%q}`, i+1, "a\u202eb")))
		if held == nil {
			t.Fatal("the call was not held")
		}
		if i > 0 {
			continue
		}
		if status, body := d.asked(t, d.consoleToken(t), http.MethodPost, "/api/approvals/"+held[2]+"/approve", ""); status != http.StatusOK {
			t.Fatalf("deciding: %d %s", status, body)
		}
	}
	if status, body := d.asked(t, d.consoleToken(t), http.MethodPost, "/api/llm-gateway/user/api-keys",
		`{"name":"nightly report","scopes":["llm"],"expires_at":"`+time.Now().Add(72*time.Hour).UTC().Format(time.RFC3339)+`"}`); status != http.StatusOK {
		t.Fatalf("making a key: %d %s", status, body)
	}
	var entries struct {
		Data []struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"data"`
	}
	_, body := d.api(t, admin, http.MethodGet, "/api/server-directory?limit=100")
	if err := json.Unmarshal([]byte(body), &entries); err != nil || len(entries.Data) == 0 {
		t.Fatalf("the directory: %v: %s", err, body)
	}
	for i, entry := range entries.Data[:min(3, len(entries.Data))] {
		name := entry.Name
		if i == 0 {
			name = hostileName
		}
		made, err := json.Marshal(map[string]string{"name": name, "slug": fmt.Sprintf("more-%d", i), "mcp_server_directory_id": entry.ID})
		if err != nil {
			t.Fatal(err)
		}
		if status, body := d.asked(t, admin, http.MethodPost, "/api/servers?test=false", string(made)); status != http.StatusOK && status != http.StatusCreated {
			t.Logf("making a server of %s: %d %s", entry.Name, status, body)
		}
	}
}

// looker is a Chromium that looks at the console.
type looker struct {
	t       testing.TB // the test that looks at present
	input   io.Writer
	answers chan string
}

func startLooker(t *testing.T, gateway string) *looker {
	t.Helper()
	home, err := os.MkdirTemp("", "console-") //nolint:usetesting // the browser may still write to it while it ends
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("node", "console/look.mjs", rig.Tools(t, "console"), rig.Chromium(t), filepath.Join(home, "profile"), gateway)
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "XDG_RUNTIME_DIR=" + home}
	var complaint rig.Transcript
	command.Stderr, command.WaitDelay = &complaint, rig.StopTimeout
	input, output := rig.Pipes(t, command)
	l := &looker{t: t, input: input, answers: make(chan string)}
	go func() {
		defer close(l.answers)
		lines := bufio.NewScanner(output)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			l.answers <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = input.Close()
		timer := time.AfterFunc(rig.StopTimeout, func() { _ = command.Process.Kill() })
		err := command.Wait()
		timer.Stop()
		if err != nil {
			t.Errorf("the browser's driver: %v\n%s", err, complaint.String())
		}
		_ = os.RemoveAll(home)
	})
	return l
}

// do gives the browser a command with its members. What it finds wrong fails the test.
func (l *looker) do(what string, members ...any) {
	l.t.Helper()
	command := map[string]any{"do": what}
	for i := 0; i < len(members); i += 2 {
		command[members[i].(string)] = members[i+1]
	}
	encoded, err := json.Marshal(command)
	if err != nil {
		l.t.Fatal(err)
	}
	if _, err := l.input.Write(append(encoded, '\n')); err != nil {
		l.t.Fatal(err)
	}
	select {
	case line, ok := <-l.answers:
		var answer struct {
			Wrong []string `json:"wrong"`
		}
		if err := json.Unmarshal([]byte(line), &answer); err != nil || !ok {
			l.t.Fatalf("%s: the browser's driver answers %q", encoded, line)
		}
		for _, wrong := range answer.Wrong {
			l.t.Errorf("%s: %s", what, wrong)
		}
	case <-time.After(2 * callTimeout):
		l.t.Fatalf("%s: the browser does not answer", encoded)
	}
}

// picture returns the file for a picture in the directory BROWSER_PICTURES, for people; "" for none.
func (l *looker) picture(name string) string {
	if directory := os.Getenv("BROWSER_PICTURES"); directory != "" {
		return filepath.Join(directory, "console-"+name+".png")
	}
	return ""
}
