package integration

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// tried holds the answer of a server's test.
type tried struct {
	Reachable      bool     `json:"reachable"`
	Transport      string   `json:"transport"`
	Revisions      []string `json:"revisions"`
	Authentication string   `json:"authentication"`
	Tools          *int     `json:"tools"`
	Error          string   `json:"error"`
	Message        string   `json:"message"`
}

// sighting holds the members of a server that tell when it was seen.
type sighting struct {
	LastSeenAt *time.Time `json:"last_seen_at"`
	LastError  string     `json:"last_error"`
}

// TestServerIsTried checks that the gateway tries a go-sdk server, and addresses without one, at creation and on
// demand. A server that does not answer does not hold its creation up; what real calls meet is kept, too.
func TestServerIsTried(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	boss := g.token(admin)
	create := func(name, url string) (id string, test tried) {
		t.Helper()
		var directory struct{ ID string }
		g.api(boss, http.MethodPost, "/api/server-directory", members{"name": name, "url": url, "provider": "none", "requires_auth": false}).decode(t, &directory)
		var made struct {
			ID   string
			Test tried
		}
		g.api(boss, http.MethodPost, "/api/servers", members{"name": name, "mcp_server_directory_id": directory.ID}).decode(t, &made)
		return made.ID, made.Test
	}
	seen := func(id string) (s sighting) {
		t.Helper()
		g.api(boss, http.MethodGet, "/api/servers/"+id, nil).decode(t, &s)
		return s
	}

	upstream := newMCPServer(t, nil)
	id, test := create("go-sdk", upstream.url)
	if !test.Reachable || test.Error != "" || test.Transport != "streamable_http" || test.Authentication != "none" || test.Tools == nil || *test.Tools != 3 {
		t.Errorf("at creation: %+v", test)
	}
	if s := seen(id); s.LastSeenAt == nil || s.LastError != "" {
		t.Errorf("kept is %+v", s)
	}
	var again tried
	g.api(boss, http.MethodPost, "/api/servers/"+id+"/test", nil).decode(t, &again)
	if again.Tools == nil || *again.Tools != 3 || !slices.Equal(again.Revisions, test.Revisions) || len(again.Revisions) == 0 {
		t.Errorf("on demand: %+v", again)
	}
	g.send(http.MethodPost, "/api/servers/"+id+"/test", g.token(alice), nil).want(t, http.StatusForbidden)

	elsewhere := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(elsewhere.Close)
	if _, test := create("Wrong path", elsewhere.URL+"/nothing"); test.Error != "not_found" || !test.Reachable {
		t.Errorf("another path: %+v", test)
	}
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	_, test = create("Closed", closed.URL+"/mcp")
	if test.Error != "refused" || test.Reachable {
		t.Errorf("a closed port: %+v", test)
	}
	var silent atomic.Bool
	hung := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then is the client's going away seen
		if silent.Load() {
			<-r.Context().Done()
			return
		}
		answerJSON(w, http.StatusOK, `{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`)
	}))
	t.Cleanup(func() { hung.CloseClientConnections(); hung.Close() })
	silent.Store(true)
	hungID, test := create("Silent", hung.URL+"/mcp")
	if test.Error != "timeout" {
		t.Errorf("a silent one: %+v", test)
	}

	// A call notes that the server answers again.
	g.allowAll(boss, hungID)
	silent.Store(false)
	var made server
	g.api(boss, http.MethodGet, "/api/servers/"+hungID, nil).decode(t, &made)
	made.path = "/mcp/" + made.Slug
	g.eventually("the call to be noted", func() bool {
		g.callTool(g.token(alice), made, "", "echo").want(t, http.StatusOK)
		s := seen(hungID)
		return s.LastSeenAt != nil && s.LastError == ""
	})
	// And one that fails says so.
	hung.CloseClientConnections()
	hung.Close()
	g.eventually("the failure to be noted", func() bool {
		g.callTool(g.token(alice), made, "", "echo").want(t, http.StatusBadGateway)
		return strings.Contains(seen(hungID).LastError, "Nothing listens on")
	})
	export := g.send(http.MethodGet, "/api/audit/export", boss, nil).want(t, http.StatusOK)
	if !strings.Contains(string(export.body), `"server.test"`) {
		t.Error("the test on demand is not in the audit log")
	}
}

// TestServerWithoutOAuthMetadata checks that a server that demands a token and tells nobody where to get one is not one
// that lacks an account only: the test says what is missing, and what an administrator can do.
func TestServerWithoutOAuthMetadata(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	boss := g.token(admin)
	demanding := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/mcp" {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(demanding.Close)
	var directory struct{ ID string }
	g.api(boss, http.MethodPost, "/api/server-directory", members{"name": "silent", "url": demanding.URL + "/mcp", "provider": "oauth2", "requires_auth": true}).decode(t, &directory)
	var created struct {
		ID   string
		Test tried
	}
	g.api(boss, http.MethodPost, "/api/servers", members{"name": "silent", "mcp_server_directory_id": directory.ID}).decode(t, &created)
	var again tried
	g.api(boss, http.MethodPost, "/api/servers/"+created.ID+"/test", nil).decode(t, &again)
	for _, test := range []tried{created.Test, again} {
		if test.Error != "no_oauth_metadata" || !strings.Contains(test.Message, "RFC 9728") || !strings.Contains(test.Message, "authorization_endpoint and token_endpoint") || strings.Contains(test.Message, "Connect an account") {
			t.Errorf("%+v", test)
		}
	}
}
