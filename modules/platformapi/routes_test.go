package platformapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// everyRoute calls f for each route of the table with its path, in which ids are those given.
func everyRoute(f func(r *routes.Route[*request], path string), server, entry string) {
	for _, a := range table {
		for _, r := range a.Methods {
			path := strings.NewReplacer("{server_id}", server, "{slug}", "tracker", "{id}", entry, "{agent_id}", entry, "{policy_id}", entry,
				"{user_id}", entry, "{organization_id}", entry, "{approval_id}", entry, "{session_id}", entry, "{credential_id}", entry, "{job_id}", entry).Replace(r.Path)
			f(r, path)
		}
	}
}

func TestWhoMayWrite(t *testing.T) {
	// A route that changes something is for administrators, or concerns the caller's own connection or call.
	everyRoute(func(r *routes.Route[*request], path string) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		if !reads && (r.Role == routes.User || r.Role == routes.Public) && r.Audit != routes.AuditConnection && r.Audit != routes.AuditApproval && r.Path != policiesPath+"/validate" && r.Path != policiesPath+"/explain" {
			t.Errorf("%s %s may be used by %s", r.Method, path, r.Role)
		}
	}, "x", "x")
}

func TestRoles(t *testing.T) {
	a := newAPI(t)
	entry := a.entry(a.adam, nil)
	server := a.server(a.adam, "Tracker", entry)
	before := a.do(a.adam, http.MethodGet, "/api/servers", nil).body
	everyRoute(func(r *routes.Route[*request], path string) {
		t.Run("R01 "+r.Method+" "+path, func(t *testing.T) {
			a.t = t
			if r.Role != routes.User && r.Role != routes.Public {
				a.do(a.alice, r.Method, path, `{broken`).wantError(http.StatusForbidden, gateway.Forbidden)
			}
			if r.Role != routes.Public {
				a.do(nil, r.Method, path, nil).wantError(http.StatusUnauthorized, gateway.Unauthorized)
			}
		})
	}, server, entry)
	a.t = t
	if after := a.do(a.adam, http.MethodGet, "/api/servers", nil).body; after != before {
		t.Errorf("state changed: %s", after)
	}
}

// TestPowers checks each route against each role beside users and administrators: auditors read everything and write
// nothing, policy editors have policies and tools, operators have servers, the directory and agents (R01).
func TestPowers(t *testing.T) {
	a := newAPI(t)
	as := func(powers caller.Powers) *authn.Caller {
		who := *a.alice
		who.Powers = powers
		return &who
	}
	auditor, editor, operator := as(caller.Powers{Auditor: true}), as(caller.Powers{PolicyEditor: true}), as(caller.Powers{Operator: true})
	duty := func(method, path string) *authn.Caller {
		switch {
		case method == http.MethodPost && path == credentialsPath: // a credential acts as its agent: administrators make them
			return nil
		case strings.HasPrefix(path, oldPolicyPath), strings.HasPrefix(path, policiesPath), strings.HasPrefix(path, toolsPath), strings.HasPrefix(path, allToolsPath), strings.HasPrefix(path, jobsPath):
			return editor
		case strings.HasPrefix(path, serversPath), strings.HasPrefix(path, directoryPath), strings.HasPrefix(path, agentsPath), path == healthDetailPath:
			return operator
		}
		return nil
	}
	everyRoute(func(r *routes.Route[*request], path string) {
		if r.Role == routes.Public || r.Role == routes.User {
			return
		}
		for name, who := range map[string]*authn.Caller{"auditor": auditor, "policy editor": editor, "operator": operator, "administrator": a.adam} {
			w := a.do(who, r.Method, path+"?misspelt=1", `{broken`) // of the wrong shape, and the roles come before it
			refused := w.status == http.StatusForbidden && strings.Contains(w.body, "This needs the role of an administrator")
			may := who == a.adam || who == duty(r.Method, r.Path) || who == auditor && r.Audit == routes.AuditRead
			if refused == may {
				t.Errorf("R01 %s %s for the %s: %d %s", r.Method, r.Path, name, w.status, w.body)
			}
			if who == auditor && !refused && r.Method != http.MethodGet {
				t.Errorf("R01 an auditor may %s %s", r.Method, r.Path)
			}
		}
	}, uuid.NewString(), uuid.NewString())
}

// TestMisspelt checks that no route beside those for every user ignores an unknown parameter, whatever its method.
func TestMisspelt(t *testing.T) {
	a := newAPI(t)
	everyRoute(func(r *routes.Route[*request], path string) {
		if r.Role == routes.Public || r.Role == routes.User {
			return
		}
		var body any
		if r.Method != http.MethodGet && r.Method != http.MethodDelete {
			body = object{}
		}
		w := a.do(a.adam, r.Method, path+"?misspelt=1", body)
		if w.status != http.StatusUnprocessableEntity || !strings.Contains(w.body, `"loc":["query","misspelt"]`) {
			t.Errorf("%s %s for the %s: %d %s", r.Method, r.Path, r.Role, w.status, w.body)
		}
	}, uuid.NewString(), uuid.NewString())
}

// TestMoreForSome checks the routes for every user that show or do more for callers with powers.
func TestMoreForSome(t *testing.T) {
	a := newAPI(t)
	server := a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	if err := a.store.NoteServer(t.Context(), a.adam.OrganizationID, server, start, "dial tcp 10.0.0.7"); err != nil {
		t.Fatal(err)
	}
	login := storage.Login{
		ID: uuid.NewString(), OrganizationID: a.adam.OrganizationID, UserID: a.adam.UserID, Issuer: issuer, Audience: "durward", Subject: "adam",
		CreatedAt: start, UsedAt: start, ExpiresAt: start.Add(time.Hour), EndsAt: start.Add(time.Hour), FactsAt: start,
	}
	if err := a.store.CreateLogin(t.Context(), login); err != nil {
		t.Fatal(err)
	}
	sessions := "/api/sessions?user_id=" + a.adam.UserID
	question := object{"server": "tracker", "action": "tools/call:x", "user": a.adam.UserID}
	for name, c := range map[string]struct {
		powers                      caller.Powers
		problem, sessions, explains bool
	}{
		"user":          {},
		"auditor":       {caller.Powers{Auditor: true}, true, true, true},
		"policy editor": {caller.Powers{PolicyEditor: true}, false, false, true},
		"operator":      {caller.Powers{Operator: true}, true, false, false},
		"administrator": {caller.Powers{Admin: true}, true, true, true},
	} {
		who := *a.alice
		who.Powers = c.powers
		if got := a.do(&who, http.MethodGet, "/api/servers/"+server, nil).want(200)["last_error"]; (got != nil) != c.problem {
			t.Errorf("%s: last_error is %v", name, got)
		}
		if w := a.do(&who, http.MethodGet, sessions, nil); (w.status == 200) != c.sessions {
			t.Errorf("%s: sessions of another user: %d %s", name, w.status, w.body)
		}
		if w := a.do(&who, http.MethodPost, policiesPath+"/explain", question); (w.status == 200) != c.explains {
			t.Errorf("%s: explaining another user's call: %d %s", name, w.status, w.body)
		}
		if !c.powers.Admin { // nobody else ends what is another user's
			a.do(&who, http.MethodDelete, "/api/sessions/"+login.ID, nil).wantError(404, gateway.NotFound)
		}
	}
}

func TestNoCall(t *testing.T) {
	a := newAPI(t)
	everyRoute(func(r *routes.Route[*request], path string) {
		w := httptest.NewRecorder()
		if err := a.handler.ServeHTTP(w, httptest.NewRequest(r.Method, path, nil), nil); err != nil || w.Code != http.StatusUnauthorized {
			t.Errorf("%s %s without durward_auth: %d %v", r.Method, path, w.Code, err)
		}
	}, uuid.NewString(), uuid.NewString())
}

// O01: an object of another organization is answered exactly like one that does not exist, and stays as it is.
func TestForeignOrganization(t *testing.T) {
	a := newAPI(t)
	entry := a.entry(a.adam, nil)
	server := a.server(a.adam, "Tracker", entry)
	bodies := []any{nil, object{}, object{"name": "Stolen", "url": "https://evil.example/"}, object{"client_id": "ab...yz"}, object{"return_url": 1}}
	everyRoute(func(r *routes.Route[*request], path string) {
		if !strings.Contains(r.Path, "{") {
			return
		}
		if strings.Contains(path, "{") {
			t.Errorf("%s has a parameter for which everyRoute has no value", r.Path)
			return
		}
		random := path
		for _, id := range []string{server, entry} {
			random = strings.ReplaceAll(random, id, uuid.NewString())
		}
		random = strings.ReplaceAll(random, "/tracker", "/unknown")
		t.Run("O01 "+r.Method+" "+r.Path, func(t *testing.T) {
			a.t = t
			for _, body := range bodies {
				foreign, unknown := a.do(a.eve, r.Method, path, body), a.do(a.eve, r.Method, random, body)
				if foreign.status != unknown.status || foreign.body != unknown.body {
					t.Errorf("foreign %d %s\nunknown %d %s", foreign.status, foreign.body, unknown.status, unknown.body)
				}
				if foreign.status < 400 {
					t.Errorf("%d %s", foreign.status, foreign.body)
				}
			}
			sound := object{}
			if r.Path == toolsPath+"/accept" {
				sound = object{"name": "search", "hash": "x"}
			}
			if w := a.do(a.eve, r.Method, path, sound); w.status != http.StatusNotFound {
				t.Errorf("%d %s", w.status, w.body)
			}
		})
	}, server, entry)
	a.t = t
	if got := a.do(a.adam, http.MethodGet, "/api/servers/"+server, nil).want(200); got["name"] != "Tracker" {
		t.Errorf("changed: %v", got)
	}
	for _, path := range []string{"/api/servers", "/api/server-directory"} {
		for _, query := range []string{"", "?search=" + server, "?search=tracker"} {
			got := a.do(a.eve, http.MethodGet, path+query, nil).want(200)
			if total := got["pagination"].(object)["total"]; total != 0.0 {
				t.Errorf("O04, O05 %s%s: %v of another organization", path, query, total)
			}
		}
	}
	// O02: neither is a foreign template one to make servers of.
	w := a.do(a.eve, http.MethodPost, "/api/servers?test=false", object{"name": "x", "mcp_server_directory_id": entry})
	if got := w.wantError(http.StatusNotFound, gateway.ServerNotFound); got["message"] != "Server directory template not found" {
		t.Error(w.body)
	}
}

func TestVerbs(t *testing.T) {
	a := newAPI(t)
	verbs := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "QUERY", "PROPFIND"}
	for _, address := range table {
		path := strings.NewReplacer("{server_id}", "tracker", "{slug}", "tracker", "{id}", uuid.NewString()).Replace(strings.Join(address.Segments, "/"))
		for _, verb := range verbs {
			if address.Methods[verb] != nil {
				continue
			}
			t.Run("R02 "+verb+" "+path, func(t *testing.T) {
				a.t = t
				w := a.do(a.adam, verb, path, nil)
				w.wantError(http.StatusMethodNotAllowed, gateway.MethodNotAllowed)
				for allowed := range strings.SplitSeq(w.header.Get("Allow"), ", ") {
					if address.Methods[allowed] == nil {
						t.Errorf("Allow: %s", w.header.Get("Allow"))
					}
				}
			})
		}
	}
	a.t = t
	w := a.do(a.adam, "HEAD", "/api/servers", nil)
	if got := w.header.Get("Allow"); got != "GET, POST" {
		t.Errorf("Allow: %q", got)
	}
}

func TestPaths(t *testing.T) {
	a := newAPI(t)
	server := a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	for _, path := range []string{
		"", "/", "/api", "/api/", "/API/servers", "/api/Servers", "/api/servers/", "//api/servers", "/api//servers", "/api/servers//connect",
		"/api/servers/" + server + "/", "/api/servers/" + server + "/Connect", "/api/servers/" + server + "/connect/", "/api/servers/./x/connect/y",
		"/api/servers;x", "/api/servers%20", "/healthz/", "/Healthz", "/api/server-directory/", "/api/servers/by-slug/", "/api/servers/by-slug/a/b",
		"/api/llm-gateway/admin/api-keys", "/mcp/tracker", "/sse/tracker", "/metrics", "/debug/pprof", "/api/oauth/callback", "/{env.HOME}",
	} {
		t.Run("P01 P02 "+path, func(t *testing.T) {
			a.t = t
			for _, method := range []string{"GET", "POST", "OPTIONS"} {
				a.do(a.adam, method, path, nil).wantError(http.StatusNotFound, gateway.NotFound)
			}
		})
	}
}

func TestServerIDs(t *testing.T) {
	a := newAPI(t)
	a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	for _, id := range []string{
		"FOO", "a_b", "a.b", "aé", "ａ", "а", "a\n", " a", "a\u200b", "\u212a", "{env.SECRET}", "{file.secret}", "..", ".", "a%0a",
		"' OR 1=1 --", strings.Repeat("a", 64), strings.Repeat("a", 1<<16), "a\x00", "\r\nX-Injected: 1", "0190b6c2-7f3a-7d3e-8f00-0123456789AG",
	} {
		t.Run("P03 H08 H17 "+strings.ToValidUTF8(id[:min(20, len(id))], ""), func(t *testing.T) {
			a.t = t
			for _, rest := range []string{"", "/connection"} {
				r := httptest.NewRequest(http.MethodGet, publicURL, nil)
				r.URL.Path = "/api/servers/" + id + rest
				a.send(a.alice, r).wantProblems("path.server_id uuid_parsing")
				r.URL.Path = "/api/servers/by-slug/" + id + rest
				a.send(a.alice, r).wantProblems("path.slug string_pattern_mismatch")
				r.Method, r.URL.Path = http.MethodDelete, "/api/servers/"+id
				a.send(a.adam, r).wantProblems("path.server_id uuid_parsing")
				r.URL.Path = "/api/server-directory/" + id
				a.send(a.adam, r).wantProblems("path.id uuid_parsing")
			}
		})
	}
	a.t = t
	a.do(a.adam, http.MethodDelete, "/api/servers/tracker", nil).wantProblems("path.server_id uuid_parsing")
	a.do(a.adam, http.MethodPut, "/api/servers/tracker", object{"name": 1}).wantProblems("path.server_id uuid_parsing", "body.name string_type")
	for _, path := range []string{"/api/servers/tracker", "/api/servers/by-slug/tracker"} {
		if got := a.do(a.alice, http.MethodGet, path, nil).want(200); got["slug"] != "tracker" {
			t.Errorf("%s: %v", path, got)
		}
	}
	// Literal segments come first: this is the server with the slug `connect`, not a connection of `by-slug`.
	a.do(a.alice, http.MethodGet, "/api/servers/by-slug/connect", nil).wantError(404, gateway.ServerNotFound)
	// SQL in a search is text (attack Q01).
	for _, text := range []string{"%27", "%27%20OR%201%3D1--", "%25", "_", "%5C", "%22%3BDROP%20TABLE%20servers", "%27%20UNION%20SELECT%20*%20FROM%20users"} {
		got := a.do(a.alice, http.MethodGet, "/api/servers?search="+text, nil).want(200)
		if total := got["pagination"].(object)["total"]; total != 0.0 {
			t.Errorf("Q01 search %s found %v", text, total)
		}
	}
	a.do(a.alice, http.MethodGet, "/api/servers?search="+strings.Repeat("(a%2B)%2B", 2000), nil).wantProblems("query.search string_too_long")
}

func TestHealth(t *testing.T) {
	a := newAPI(t)
	for path, status := range map[string]string{"/healthz": "ok", "/readyz": "ready"} {
		if got := a.do(nil, http.MethodGet, path, nil).want(200); got["status"] != status {
			t.Errorf("%s: %v", path, got)
		}
		if w := a.do(nil, http.MethodHead, path, nil); w.status != 200 {
			t.Errorf("HEAD %s: %d", path, w.status)
		}
	}
	a.store.err = storage.ErrUnavailable
	a.do(nil, http.MethodGet, "/healthz", nil).want(200)
	w := a.do(nil, http.MethodGet, "/readyz", nil)
	w.wantError(503, gateway.Unavailable)
	w = a.do(a.alice, http.MethodGet, "/api/servers", nil)
	w.wantError(503, gateway.Unavailable)
	if w.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

func TestUnknownErrorsAreNotShown(t *testing.T) {
	a := newAPI(t)
	a.store.err = errSecretCause{}
	w := a.do(a.alice, http.MethodGet, "/api/servers", nil)
	w.wantError(500, gateway.InternalServerError)
	if strings.Contains(w.body, "SELECT") {
		t.Error(w.body)
	}
	if !strings.Contains(a.log.String(), "SELECT") {
		t.Errorf("the log does not say why: %s", a.log)
	}
}

type errSecretCause struct{}

func (errSecretCause) Error() string { return "near SELECT: syntax error" }

func TestCaddyfile(t *testing.T) {
	for text, ok := range map[string]bool{"durward_platform": true, "durward_platform x": false, "durward_platform {\n x y\n}": false} {
		if err := new(Handler).UnmarshalCaddyfile(caddyfile.NewTestDispenser(text)); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	if id := (Handler{}).CaddyModule().ID; id != "http.handlers.durward_platform" {
		t.Error(id)
	}
}
