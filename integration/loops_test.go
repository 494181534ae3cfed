package integration

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// TestLoops checks that the gateway's own address is no server's, and a call that comes back to it by others ends there
// (W9).
func TestLoops(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	boss := g.token(admin)
	for _, address := range []string{g.url + "/mcp/demo", g.url + "/sse/demo", strings.Replace(g.url, "127.0.0.1", "localhost", 1) + "/mcp/demo"} {
		a := g.send(http.MethodPost, "/api/server-directory", boss, members{"name": "Own", "url": address}).want(t, http.StatusUnprocessableEntity)
		if !strings.Contains(string(a.body), "own address") {
			t.Errorf("%s is refused with %s", address, a.body)
		}
	}

	own, err := url.Parse(g.url)
	if err != nil {
		t.Fatal(err)
	}
	var passed atomic.Int64
	token := g.token(alice)
	relay := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			passed.Add(1)
			r.SetURL(own)
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
	})
	t.Cleanup(relay.Close)
	for _, path := range []string{"/mcp/", "/sse/"} {
		t.Run(path, func(t *testing.T) {
			entry := members{"provider": "none", "requires_auth": false}
			if path == "/sse/" {
				entry["events_url"] = relay.URL + "/sse/back"
			}
			s := g.createServer(relay.URL+"/mcp/back", entry)
			before := passed.Load()
			if path == "/sse/" {
				g.send(http.MethodGet, path+s.Slug, token, nil, "Accept", "text/event-stream").want(t, http.StatusBadGateway)
			} else {
				g.send(http.MethodPost, path+s.Slug, token, echoCall, "Accept", bothKinds).wantError(t, http.StatusLoopDetected, "LoopDetected")
			}
			if n := passed.Load() - before; n != 1 {
				t.Errorf("it went round %d times", n)
			}
		})
	}
	if log := g.output.String(); !strings.Contains(log, "came back") {
		t.Errorf("the log does not tell of it: %s", log)
	}
}
