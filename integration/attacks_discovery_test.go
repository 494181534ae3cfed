package integration

import (
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestAttackDiscovery checks that statements of an upstream and its authorization server about themselves are believed
// only when they are right; connecting then fails in one way, whatever was wrong (A05, S05, S06, S07, S09).
func TestAttackDiscovery(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	token := g.token(alice)
	inside := newGrantor(t) // another server, to which the upstream would send us
	metadata := func(changes map[string]any) func(p *grantor) { return func(p *grantor) { p.metadata = changes } }
	resource := func(changes map[string]any) func(p *grantor) { return func(p *grantor) { p.resource = changes } }
	document := func(write func(w http.ResponseWriter, r *http.Request)) func(p *grantor) {
		return func(p *grantor) {
			p.document = func(w http.ResponseWriter, r *http.Request) bool { write(w, r); return true }
		}
	}
	for _, tc := range []struct {
		name   string
		change func(p *grantor)
	}{
		{"A05 no code_challenge_methods_supported", metadata(map[string]any{"code_challenge_methods_supported": nil})},
		{"A05 only plain", metadata(map[string]any{"code_challenge_methods_supported": []string{"plain"}})},
		{"A05 S256 in other case", metadata(map[string]any{"code_challenge_methods_supported": []string{"s256"}})},
		{"S07 another issuer", metadata(map[string]any{"issuer": "https://evil.example"})},
		{"S07 no issuer", metadata(map[string]any{"issuer": nil})},
		{"S06 javascript", metadata(map[string]any{"authorization_endpoint": "javascript:alert(1)"})},
		{"S06 file", metadata(map[string]any{"token_endpoint": "file:///etc/passwd"})},
		{"S06 gopher", metadata(map[string]any{"token_endpoint": "gopher://127.0.0.1:1/"})},
		{"S06 data", metadata(map[string]any{"authorization_endpoint": "data:text/html,x"})},
		{"S06 user information", metadata(map[string]any{"authorization_endpoint": "https://a:b@idp.example.test/authorize"})},
		{"S06 line end", metadata(map[string]any{"authorization_endpoint": "https://idp.example.test/\r\nX: y"})},
		{"S06 shell", metadata(map[string]any{"authorization_endpoint": "https://$(calc.exe)/"})},
		{"S06 relative", metadata(map[string]any{"authorization_endpoint": "/authorize"})},
		{"S06 a number", metadata(map[string]any{"authorization_endpoint": 1})},
		{"S06 no endpoint", metadata(map[string]any{"authorization_endpoint": nil})},
		{"S01 token endpoint at the cloud's metadata", metadata(map[string]any{"registration_endpoint": "http://169.254.169.254/latest/meta-data/"})},
		{"S05 resource_metadata elsewhere", func(p *grantor) {
			p.challenge = `Bearer resource_metadata="` + inside.server.URL + `/.well-known/oauth-protected-resource/mcp"`
		}},
		{"resource of another", resource(map[string]any{"resource": "https://other.example/mcp"})},
		{"no authorization server", resource(map[string]any{"authorization_servers": []string{}})},
		{"authorization server inside", resource(map[string]any{"authorization_servers": []string{"http://10.0.0.1/"}})},
		{"authorization server of a file", resource(map[string]any{"authorization_servers": []string{"file:///etc/passwd"}})},
		{"S09 1 GiB", document(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for chunk := []byte(strings.Repeat(" ", 64<<10)); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		})},
		{"S09 gzip bomb", document(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, `{"x":"`+strings.Repeat("a", 64<<20))
			_ = z.Close()
		})},
		{"S09 depth of 100,000", document(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"x":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+"}")
		})},
		{"S09 a member twice", document(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"resource":"a","resource":"b"}`)
		})},
		{"registration refused", func(p *grantor) {
			p.register = func(map[string]any) (int, map[string]any) { return 403, map[string]any{"error": "access_denied"} }
		}},
		{"registration without client_id", func(p *grantor) {
			p.register = func(map[string]any) (int, map[string]any) { return 201, map[string]any{} }
		}},
		{"registration with another redirect_uri", func(p *grantor) {
			p.register = func(asked map[string]any) (int, map[string]any) {
				asked["client_id"], asked["redirect_uris"] = "c", []string{"https://evil.example/"}
				return 201, asked
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newGrantor(t)
			tc.change(p)
			s := g.createServer(p.mcpURL(), p.entry())
			a := g.send(http.MethodPost, "/api/servers/"+s.ID+"/connect", token, map[string]any{})
			a.wantError(t, http.StatusInternalServerError, "OAuthConfigurationError")
			if body := string(a.body); !strings.Contains(body, "OAuth server configuration not found") || strings.Contains(body, "169.254") || strings.Contains(body, "evil") {
				t.Errorf("the answer says %s", body)
			}
			if p.asked("/token") != 0 {
				t.Error("the token endpoint was asked")
			}
		})
	}
	// Metadata that points elsewhere is passed over, and the upstream's own addresses are tried.
	for _, tc := range []struct {
		name   string
		change func(p *grantor)
	}{
		{"S05 resource_metadata at the cloud's metadata", func(p *grantor) {
			p.challenge = `Bearer resource_metadata="http://169.254.169.254/latest/meta-data/"`
		}},
		{"S05 resource_metadata of a file", func(p *grantor) { p.challenge = `Bearer resource_metadata="file:///etc/passwd"` }},
		{"S05 resource_metadata twice", func(p *grantor) {
			p.challenge = `Bearer resource_metadata="http://10.0.0.1/a", resource_metadata="http://10.0.0.1/b"`
		}},
		{"S09 documents that redirect", document(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", inside.server.URL+r.URL.Path)
			w.WriteHeader(http.StatusFound)
		})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inside.set(func() { inside.paths = nil })
			p := newGrantor(t)
			tc.change(p)
			s := g.createServer(p.mcpURL(), p.entry())
			if address := g.beginConnect(token, s); !strings.HasPrefix(address, p.server.URL+"/authorize?") {
				t.Errorf("the browser is sent to %s", address)
			}
			inside.mu.Lock()
			defer inside.mu.Unlock()
			if len(inside.paths) != 0 {
				t.Errorf("%v was fetched", inside.paths)
			}
		})
	}
}

// TestAttackPortScan checks that a closed port, one that something else listens on, and an address that may not be
// dialled look alike (S10).
func TestAttackPortScan(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	token := g.token(alice)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(connection, "SSH-2.0-OpenSSH_9.9\r\n")
			_ = connection.Close()
		}
	}()
	var bodies [3]string
	for i, address := range []string{"http://127.0.0.1:" + freePort(t) + "/mcp", "http://" + listener.Addr().String() + "/mcp"} {
		s := g.createServer(address, map[string]any{"events_url": address})
		mcp := g.send(http.MethodPost, s.path, token, pingMessage, "Accept", bothKinds)
		sse := g.send(http.MethodGet, "/sse/"+s.Slug, token, nil)
		bodies[i] = fmt.Sprint(mcp.status, string(mcp.body), sse.status, string(sse.body))
		oauth := g.createServer(address, map[string]any{"provider": "oauth2", "requires_auth": true})
		a := g.send(http.MethodPost, "/api/servers/"+oauth.ID+"/connect", token, map[string]any{})
		bodies[i] += fmt.Sprint(a.status, string(a.body))
	}
	if bodies[0] != bodies[1] {
		t.Errorf("S10 a closed port: %s\nan open one: %s", bodies[0], bodies[1])
	}
	for _, address := range []string{
		"http://169.254.169.254/latest", "https://10.0.0.1/mcp", "https://[::ffff:10.0.0.1]/mcp", "https://2130706433/mcp", "https://[64:ff9b::a00:1]/",
		"https://metadata.google.internal/", "https://0x7f.1/", "https://127.1/",
	} {
		a := g.send(http.MethodPost, "/api/server-directory", g.token(admin), map[string]any{"name": "Inside " + address, "url": address, "provider": "none", "requires_auth": false})
		if a.status == http.StatusUnprocessableEntity {
			continue // refused when it is entered
		}
		var entry struct{ ID string }
		a.want(t, http.StatusOK).decode(t, &entry)
		var made struct{ ID string }
		g.api(g.token(admin), http.MethodPost, "/api/servers?test=false", map[string]any{"name": "Inside " + address, "mcp_server_directory_id": entry.ID}).decode(t, &made)
		var s server
		g.api(token, http.MethodGet, "/api/servers/"+made.ID, nil).decode(t, &s)
		mcp := g.send(http.MethodPost, "/mcp/"+s.Slug, token, pingMessage, "Accept", bothKinds)
		if got := fmt.Sprint(mcp.status, string(mcp.body)); !strings.HasPrefix(bodies[0], got) {
			t.Errorf("S01 S10 %s is answered %s, a closed port %s", address, got, bodies[0])
		}
	}
}
