package platformapi

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

// everyRoute calls f for each route of the table with its path, in which ids are those given.
func everyRoute(f func(r *route, path string), server, entry string) {
	for _, a := range table {
		for _, r := range a.methods {
			path := strings.NewReplacer("{server_id}", server, "{slug}", "tracker", "{id}", entry, "{agent_id}", entry, "{policy_id}", entry,
				"{user_id}", entry, "{approval_id}", entry).Replace(r.path)
			f(r, path)
		}
	}
}

func TestEveryRouteIsDeclared(t *testing.T) {
	full := route{http.MethodGet, "/x", user, ownOrganization, auditRead, health}
	for _, tt := range []struct {
		name  string
		spoil func(*route)
	}{
		{"R07 method", func(r *route) { r.method = "" }},
		{"R07 path", func(r *route) { r.path = "" }},
		{"R07 role", func(r *route) { r.role = "" }},
		{"R07 unknown role", func(r *route) { r.role = "root" }},
		{"R07 organization", func(r *route) { r.organization = "" }},
		{"R07 audit", func(r *route) { r.audit = "" }},
		{"R07 function", func(r *route) { r.serve = nil }},
		{"R07 public with an organization", func(r *route) { r.role = public }},
		{"R07 without an organization", func(r *route) { r.organization = noOrganization }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spoiled := full
			tt.spoil(&spoiled)
			if !panics(func() { mustTable([]route{spoiled}) }) {
				t.Error("the table took it")
			}
		})
	}
	if panics(func() { mustTable([]route{full}) }) {
		t.Error("a full declaration was refused")
	}
	if !panics(func() { mustTable([]route{full, full}) }) {
		t.Error("a route was declared twice")
	}
	// What changes something is for administrators or concerns the caller's own connection or call.
	everyRoute(func(r *route, path string) {
		reads := r.method == http.MethodGet || r.method == http.MethodHead
		if !reads && r.role != admin && r.audit != auditConnection && r.audit != auditApproval && r.path != policiesPath+"/validate" && r.path != policiesPath+"/explain" {
			t.Errorf("%s %s may be used by %s", r.method, path, r.role)
		}
	}, "x", "x")
}

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}

func TestRoles(t *testing.T) {
	a := newAPI(t)
	entry := a.entry(a.adam, nil)
	server := a.server(a.adam, "Tracker", entry)
	before := a.do(a.adam, http.MethodGet, "/api/servers", nil).body
	everyRoute(func(r *route, path string) {
		t.Run("R01 "+r.method+" "+path, func(t *testing.T) {
			a.t = t
			if r.role == admin {
				a.do(a.alice, r.method, path, `{broken`).wantError(http.StatusForbidden, app.Forbidden)
			}
			if r.role != public {
				a.do(nil, r.method, path, nil).wantError(http.StatusUnauthorized, app.Unauthorized)
			}
		})
	}, server, entry)
	a.t = t
	if after := a.do(a.adam, http.MethodGet, "/api/servers", nil).body; after != before {
		t.Errorf("state changed: %s", after)
	}
}

func TestNoCall(t *testing.T) {
	a := newAPI(t)
	everyRoute(func(r *route, path string) {
		w := httptest.NewRecorder()
		if err := a.handler.ServeHTTP(w, httptest.NewRequest(r.method, path, nil), nil); err != nil || w.Code != http.StatusUnauthorized {
			t.Errorf("%s %s without durward_auth: %d %v", r.method, path, w.Code, err)
		}
	}, uuid.NewString(), uuid.NewString())
}

// O01: an object of another organization is answered exactly like one that does not exist, and stays as it is.
func TestForeignOrganization(t *testing.T) {
	a := newAPI(t)
	entry := a.entry(a.adam, nil)
	server := a.server(a.adam, "Tracker", entry)
	bodies := []any{nil, object{}, object{"name": "Stolen", "url": "https://evil.example/"}, object{"client_id": "ab...yz"}, object{"return_url": 1}}
	everyRoute(func(r *route, path string) {
		if !strings.Contains(r.path, "{") {
			return
		}
		random := path
		for _, id := range []string{server, entry} {
			random = strings.ReplaceAll(random, id, uuid.NewString())
		}
		random = strings.ReplaceAll(random, "/tracker", "/unknown")
		t.Run("O01 "+r.method+" "+r.path, func(t *testing.T) {
			a.t = t
			for _, body := range bodies {
				foreign, unknown := a.do(a.eve, r.method, path, body), a.do(a.eve, r.method, random, body)
				if foreign.status != unknown.status || foreign.body != unknown.body {
					t.Errorf("foreign %d %s\nunknown %d %s", foreign.status, foreign.body, unknown.status, unknown.body)
				}
				if foreign.status < 400 {
					t.Errorf("%d %s", foreign.status, foreign.body)
				}
			}
			if w := a.do(a.eve, r.method, path, object{}); w.status != http.StatusNotFound {
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
	w := a.do(a.eve, http.MethodPost, "/api/servers", object{"name": "x", "mcp_server_directory_id": entry})
	if got := w.wantError(http.StatusNotFound, app.ServerNotFound); got["message"] != "Server directory template not found" {
		t.Error(w.body)
	}
}

func TestVerbs(t *testing.T) {
	a := newAPI(t)
	verbs := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "get", "QUERY", "PROPFIND"}
	for _, address := range table {
		path := strings.NewReplacer("{server_id}", "tracker", "{slug}", "tracker", "{id}", uuid.NewString()).Replace(strings.Join(address.segments, "/"))
		for _, verb := range verbs {
			if address.methods[verb] != nil {
				continue
			}
			t.Run("R02 "+verb+" "+path, func(t *testing.T) {
				a.t = t
				w := a.do(a.adam, verb, path, nil)
				w.wantError(http.StatusMethodNotAllowed, app.MethodNotAllowed)
				for allowed := range strings.SplitSeq(w.header.Get("Allow"), ", ") {
					if address.methods[allowed] == nil {
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
				a.do(a.adam, method, path, nil).wantError(http.StatusNotFound, app.NotFound)
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
	a.do(a.alice, http.MethodGet, "/api/servers/by-slug/connect", nil).wantError(404, app.ServerNotFound)
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
	w.wantError(503, app.Unavailable)
	w = a.do(a.alice, http.MethodGet, "/api/servers", nil)
	w.wantError(503, app.Unavailable)
	if w.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

func TestUnknownErrorsAreNotShown(t *testing.T) {
	a := newAPI(t)
	a.store.err = errSecretCause{}
	w := a.do(a.alice, http.MethodGet, "/api/servers", nil)
	w.wantError(500, app.InternalServerError)
	if strings.Contains(w.body, "SELECT") {
		t.Error(w.body)
	}
	if !strings.Contains(a.log.String(), "SELECT") {
		t.Errorf("the log does not say why: %s", a.log)
	}
}

type errSecretCause struct{}

func (errSecretCause) Error() string { return "near SELECT: syntax error" }

func FuzzFind(f *testing.F) {
	for _, seed := range []string{"/api/servers", "/api/servers/x/connect", "/api/servers/by-slug/x", "//", "", "/api/servers/\x00", "/api/servers/{server_id}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		found, params := table.find(path)
		if found == nil {
			return
		}
		// The parameters put back give the path that was asked for, and nothing else.
		segments := slices.Clone(found.segments)
		for i, segment := range segments {
			if isParameter(segment) {
				value := params[strings.Trim(segment, "{}")]
				if value == "" || strings.Contains(value, "/") {
					t.Errorf("%q: parameter %q", path, value)
				}
				segments[i] = value
			}
		}
		if got := strings.Join(segments, "/"); got != path {
			t.Errorf("%q matched as %q", path, got)
		}
	})
}

func BenchmarkFind(b *testing.B) {
	for b.Loop() {
		if found, _ := table.find("/api/servers/by-slug/tracker/connection"); found == nil {
			b.Fatal("not found")
		}
	}
}

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

func TestLiteralSegmentsComeFirst(t *testing.T) {
	paths := []string{"/a/{x}/c", "/a/b/{y}", "/a/{x}/{y}", "/a/b/c"}
	var routes []route
	for _, path := range paths {
		routes = append(routes, route{http.MethodGet, path, user, ownOrganization, auditRead, health})
	}
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}} {
		var shuffled []route
		for _, i := range order {
			shuffled = append(shuffled, routes[i])
		}
		all := mustTable(shuffled)
		for path, want := range map[string]string{"/a/b/c": "/a/b/c", "/a/b/d": "/a/b/{y}", "/a/d/c": "/a/{x}/c", "/a/d/e": "/a/{x}/{y}"} {
			got, params := all.find(path)
			if got == nil || strings.Join(got.segments, "/") != want || len(params) != strings.Count(want, "{") {
				t.Errorf("%v: %s matched %v %v", order, path, got, params)
			}
		}
	}
	if !slices.IsSortedFunc(table, func(a, b *address) int { return slices.CompareFunc(a.segments, b.segments, literalFirst) }) {
		t.Error("the table is not sorted")
	}
}
