package routes

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func nothing(*Request) (any, error) { return nil, nil }

var sample = func() Table[*Request] {
	var all []Route[*Request]
	for _, path := range []string{"/api/servers", "/api/servers/{server_id}", "/api/servers/{server_id}/connection", "/api/servers/by-slug/{slug}", "/api/servers/by-slug/{slug}/connection"} {
		all = append(all, At(http.MethodGet, path, User, OwnOrganization, AuditRead, nothing).Gives("Does nothing.", nil))
	}
	return MustTable(all...)
}()

func TestEveryRouteIsDeclared(t *testing.T) {
	full := At(http.MethodGet, "/x", User, OwnOrganization, AuditRead, nothing).Gives("Does nothing.", nil)
	for _, tt := range []struct {
		name  string
		spoil func(*Route[*Request])
	}{
		{"R07 method", func(r *Route[*Request]) { r.Method = "" }},
		{"R07 path", func(r *Route[*Request]) { r.Path = "" }},
		{"R07 role", func(r *Route[*Request]) { r.Role = "" }},
		{"R07 unknown role", func(r *Route[*Request]) { r.Role = "root" }},
		{"R07 organization", func(r *Route[*Request]) { r.Organization = "" }},
		{"R07 audit", func(r *Route[*Request]) { r.Audit = "" }},
		{"R07 function", func(r *Route[*Request]) { r.Serve = nil }},
		{"R07 a write of auditors", func(r *Route[*Request]) { r.Role, r.Audit = Auditor, AuditAdminWrite }},
		{"R07 a write that says it reads", func(r *Route[*Request]) { r.Method = http.MethodDelete }},
		{"R07 a secret from auditors", func(r *Route[*Request]) { r.Role = Admin }},
		{"without a meaning", func(r *Route[*Request]) { r.summary = "" }},
		{"without an answer", func(r *Route[*Request]) { r.status = 0 }},
		{"R07 public with an organization", func(r *Route[*Request]) { r.Role = Public }},
		{"R07 without an organization", func(r *Route[*Request]) { r.Organization = NoOrganization }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spoiled := full
			tt.spoil(&spoiled)
			if !panics(func() { MustTable(spoiled) }) {
				t.Error("the table took it")
			}
		})
	}
	if panics(func() { MustTable(full) }) {
		t.Error("a full declaration was refused")
	}
	if !panics(func() { MustTable(full, full) }) {
		t.Error("a route was declared twice")
	}
}

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}

// TestFind checks that the parameters of a found address, put back, give exactly the requested path. Fuzzing would
// build all of Caddy anew to find paths that segments drawn at random cover.
func TestFind(t *testing.T) {
	segment := rapid.OneOf(
		rapid.SampledFrom([]string{"api", "servers", "by-slug", "connection", "x", "", "API", "{slug}", "{server_id}", "..", "\x00", "%2F"}),
		rapid.String(),
	)
	rapid.Check(t, func(t *rapid.T) {
		path := strings.Join(rapid.SliceOfN(segment, 1, 6).Draw(t, "segments"), "/")
		if rapid.Bool().Draw(t, "rooted") {
			path = "/" + path
		}
		found, params := sample.Find(path)
		if found == nil {
			return
		}
		segments := slices.Clone(found.Segments)
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
		if found, _ := sample.Find("/api/servers/by-slug/tracker/connection"); found == nil {
			b.Fatal("not found")
		}
	}
}

func TestLiteralSegmentsComeFirst(t *testing.T) {
	paths := []string{"/a/{x}/c", "/a/b/{y}", "/a/{x}/{y}", "/a/b/c"}
	var routes []Route[*Request]
	for _, path := range paths {
		routes = append(routes, At(http.MethodGet, path, User, OwnOrganization, AuditRead, nothing).Gives("Does nothing.", nil))
	}
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}} {
		var shuffled []Route[*Request]
		for _, i := range order {
			shuffled = append(shuffled, routes[i])
		}
		all := MustTable(shuffled...)
		for path, want := range map[string]string{"/a/b/c": "/a/b/c", "/a/b/d": "/a/b/{y}", "/a/d/c": "/a/{x}/c", "/a/d/e": "/a/{x}/{y}"} {
			got, params := all.Find(path)
			if got == nil || strings.Join(got.Segments, "/") != want || len(params) != strings.Count(want, "{") {
				t.Errorf("%v: %s matched %v %v", order, path, got, params)
			}
		}
	}
}
