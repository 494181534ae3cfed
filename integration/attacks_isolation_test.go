package integration

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// TestAttackOrganizations checks O01, O06 and O15 on the proxies. Names belong to organizations, and another
// organization's server is answered like one that does not exist.
func TestAttackOrganizations(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	ours, theirs := answering(t), answering(t)
	make := func(caller claims, upstream *upstream, name string) server {
		token := g.token(caller)
		var entry, made struct{ ID string }
		g.api(token, http.MethodPost, "/api/server-directory", map[string]any{"name": name, "url": upstream.url, "provider": "bearer_token"}).decode(t, &entry)
		g.api(token, http.MethodPost, "/api/servers?test=false", map[string]any{"name": name, "mcp_server_directory_id": entry.ID}).decode(t, &made)
		var s server
		g.api(token, http.MethodGet, "/api/servers/"+made.ID, nil).decode(t, &s)
		g.api(token, http.MethodPost, "/api/policy", map[string]any{
			"name": "All of " + made.ID, "mcp_server_id": made.ID, "status": "ACTIVE", "rules": []any{map[string]any{"name": "all", "authorized": true}},
		})
		s.path = "/mcp/" + s.Slug
		return s
	}
	acme, rival := make(admin, ours, "Same name"), make(eve, theirs, "Same name")
	if acme.Slug != rival.Slug {
		t.Fatalf("slugs %s and %s", acme.Slug, rival.Slug)
	}
	g.connectBearer(g.token(alice), acme, "credential-of-alice")
	g.connectBearer(g.token(eve), rival, "credential-of-eve")
	call := func(caller claims, path string) answer {
		return g.send(http.MethodPost, path, g.token(caller), echoCall, "Accept", bothKinds)
	}
	for range 2 { // the second time from the caches
		call(alice, acme.path).want(t, http.StatusOK)
		call(eve, rival.path).want(t, http.StatusOK)
	}
	if got := ours.last(t).header.Get("Authorization"); got != "Bearer credential-of-alice" || strings.Contains(ours.bytes(), "credential-of-eve") {
		t.Errorf("O06 acme's upstream got %s", got)
	}
	if got := theirs.last(t).header.Get("Authorization"); got != "Bearer credential-of-eve" || strings.Contains(theirs.bytes(), "credential-of-alice") {
		t.Errorf("O06 rival's upstream got %s", got)
	}
	secret := make(admin, ours, "Only here")
	unknown := g.send(http.MethodPost, "/mcp/no-such-server", g.token(eve), echoCall, "Accept", bothKinds)
	for name, a := range map[string]answer{
		"O01 /mcp": call(eve, secret.path), "O01 /sse": g.send(http.MethodGet, "/sse/"+secret.Slug, g.token(eve), nil),
	} {
		if a.status != http.StatusNotFound || string(a.body) != string(unknown.body) {
			t.Errorf("%s: %d %s instead of %s", name, a.status, a.body, unknown.body)
		}
	}
	for _, path := range []string{"", "/connection", "/connect"} {
		method := http.MethodGet
		if path == "/connect" {
			method = http.MethodPost
		}
		foreign := g.send(method, "/api/servers/"+secret.ID+path, g.token(eve), nil)
		random := g.send(method, "/api/servers/0190cccc-0000-7000-8000-000000000001"+path, g.token(eve), nil)
		if foreign.status != http.StatusNotFound || string(foreign.body) != string(random.body) {
			t.Errorf("O01 %s: %d %s instead of %s", path, foreign.status, foreign.body, random.body)
		}
	}
	t.Run("O15 a server made anew under the same name", func(t *testing.T) {
		g.api(g.token(admin), http.MethodDelete, "/api/servers/"+acme.ID, nil)
		call(alice, acme.path).wantError(t, http.StatusNotFound, "ServerNotFound")
		again := make(admin, theirs, "Same name")
		if again.Slug != acme.Slug {
			t.Fatalf("slug %s", again.Slug)
		}
		before := theirs.bytes()
		call(alice, again.path).wantConnect(t)
		if theirs.bytes() != before {
			t.Error("an old credential went to the new server")
		}
	})
}

// TestAttackSessions checks that a session is its user's, agent's and server's, and an id is nothing else than it was
// (O13, M25).
func TestAttackSessions(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := initializing(t, "2025-11-25")
	s, other := g.createServer(upstream.url, nil), g.createServer(upstream.url, nil)
	session := g.attackSession(g.token(alice), s, "2025-11-25", "{}")
	g.send(http.MethodPost, s.path, g.token(alice), pingMessage, "Accept", bothKinds, "Mcp-Session-Id", session).want(t, http.StatusOK)
	if got := upstream.last(t).header.Get("Mcp-Session-Id"); got != "upstream-session" {
		t.Errorf("the upstream got session %q", got)
	}
	flipped := []byte(session)
	flipped[len(flipped)/2] ^= 1
	for _, tc := range []struct {
		name, session, path string
		caller              claims
	}{
		{"O13 another user", session, s.path, bob},
		{"O13 the administrator", session, s.path, admin},
		{"O13 another agent of the same user", session, s.path, alice.with(claims{"azp": "other", "client_id": "other"})},
		{"O13 no agent", session, s.path, alice.with(claims{"azp": nil, "client_id": nil})},
		{"O13 another server", session, other.path, alice},
		{"the upstream's own id", "upstream-session", s.path, alice},
		{"one bit", string(flipped), s.path, alice},
		{"cut off", session[:len(session)-1], s.path, alice},
		{"longer", session + "A", s.path, alice},
		{"twice in one", session + "," + session, s.path, alice},
		{"empty", "", s.path, alice},
		{"8 KiB", strings.Repeat("a", 8<<10), s.path, alice},
	} {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
			t.Run(tc.name+" "+method, func(t *testing.T) {
				upstream.forget()
				var body any
				if method == http.MethodPost {
					body = pingMessage
				}
				a := g.send(method, tc.path, g.token(tc.caller), body, "Accept", bothKinds, "Mcp-Session-Id", tc.session, "Last-Event-ID", "event-1")
				a.wantError(t, http.StatusNotFound, "NotFound")
				upstream.wantNothing(t)
			})
		}
	}
	t.Run("O13 another organization", func(t *testing.T) {
		upstream.forget()
		g.send(http.MethodPost, s.path, g.token(eve), pingMessage, "Accept", bothKinds, "Mcp-Session-Id", session).wantError(t, http.StatusNotFound, "ServerNotFound")
		upstream.wantNothing(t)
	})
	t.Run("M25 the GET stream passes as it is, and DELETE ends the session", func(t *testing.T) {
		a := g.send(http.MethodGet, s.path, g.token(alice), nil, "Accept", "text/event-stream", "Mcp-Session-Id", session, "Last-Event-ID", "event-0").want(t, http.StatusOK)
		if got := upstream.last(t); got.header.Get("Last-Event-Id") != "event-0" || got.header.Get("Mcp-Session-Id") != "upstream-session" {
			t.Errorf("the upstream got %v", got.header)
		}
		if want := "id: event-1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n"; string(a.body) != want {
			t.Errorf("got %q", a.body)
		}
		// Without a session nothing binds an event to who may have it.
		g.send(http.MethodGet, s.path, g.token(alice), nil, "Accept", "text/event-stream", "Last-Event-ID", "event-0")
		if got := upstream.last(t); got.header.Get("Last-Event-Id") != "" {
			t.Errorf("M25 without a session the upstream got %v", got.header)
		}
		g.send(http.MethodDelete, s.path, g.token(alice), nil, "Mcp-Session-Id", session).want(t, http.StatusNoContent)
		if got := upstream.last(t); got.method != http.MethodDelete || got.header.Get("Mcp-Session-Id") != "upstream-session" {
			t.Errorf("the upstream got %v", got)
		}
	})
}

// TestAttackInterleaving checks that users share connections to an upstream, and never each other's answers, also when
// some of them leave early (O12).
func TestAttackInterleaving(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		who := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if strings.Contains(string(body), "leave") {
			beginEvents(w) // its client is about to go
			_, _ = io.WriteString(w, "data: "+news(who)+"\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Mcp-Param-Who", who)
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":{"who":%q}}`, who)
	})
	s := g.createServer(upstream.url, bearerEntry())
	users := make([]string, 8)
	for i := range users {
		users[i] = g.token(alice.with(claims{"sub": fmt.Sprintf("0190bbbb-0000-7000-8000-0000000001%02d", i)}))
		g.connectBearer(users[i], s, fmt.Sprintf("credential-%d", i))
	}
	var all sync.WaitGroup
	for i, token := range users {
		all.Go(func() {
			want := fmt.Sprintf("credential-%d", i)
			for n := range 100 {
				if n%10 == 9 {
					response := g.open(t.Context(), http.MethodPost, s.path, token, strings.Replace(pingMessage, `"ping"`, `"ping","params":{"leave":true}`, 1), "Accept", bothKinds)
					first := make([]byte, len("data: ")+len(news(want)))
					if _, err := io.ReadFull(response.Body, first); err != nil || string(first) != "data: "+news(want) {
						t.Errorf("O12 %s got %q, %v", want, first, err)
					}
					_ = response.Body.Close()
					continue
				}
				a := g.send(http.MethodPost, s.path, token, pingMessage, "Accept", bothKinds)
				if a.status != http.StatusOK || !strings.Contains(string(a.body), `"`+want+`"`) || a.header.Get("Mcp-Param-Who") != want {
					t.Errorf("O12 %s got %d %s", want, a.status, a.body)
					return
				}
			}
		})
	}
	all.Wait()
}
