package integration

import (
	"crypto"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestAttackTokens checks the ways in which a token may not come, and the effects that its header may not have on the
// gateway (rows J).
func TestAttackTokens(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{site: "log"})
	upstream := answering(t)
	s := g.createServer(upstream.url, nil)
	good := g.token(alice)
	var connections atomic.Int64
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connections.Add(1)
		writeJSON(w, http.StatusOK, map[string]any{"keys": []any{}})
	}))
	t.Cleanup(listener.Close)
	attacker := newECKey(t)
	forged := func(header map[string]any) string {
		input := encodeJSON(t, header) + "." + encodeJSON(t, g.identity.complete(alice, g.url))
		return "Bearer " + input + "." + base64url(signature(t, attacker, input))
	}
	signed := func(header map[string]any) string {
		header["alg"], header["kid"] = "ES256", kidES256
		return "Bearer " + g.identity.sign(g.identity.complete(alice, g.url), header)
	}
	for _, tc := range []struct {
		name, authorization, path string
		status                    int
	}{
		{"J01 none", "", "", 401},
		{"J01 scheme alone", "Bearer", "", 401},
		{"J01 two blanks", "Bearer  " + good, "", 401},
		{"J01 lower-case scheme", "bearer " + good, "", 200},
		{"J01 tab", "Bearer\t" + good, "", 401},
		{"J01 two tokens", "Bearer " + good + ", Bearer " + good, "", 401},
		{"J02 Basic", "Basic " + good, "", 401},
		{"J02 DPoP", "DPoP " + good, "", 401},
		{"J03 in the query", "", "?access_token=" + good, 401},
		{"J08 jwk", forged(map[string]any{"alg": "ES256", "kid": "attacker", "jwk": publicJWK("attacker", attacker)}), "", 401},
		{"J08 jku", forged(map[string]any{"alg": "ES256", "kid": kidES256, "jku": listener.URL}), "", 401},
		{"J08 x5u", forged(map[string]any{"alg": "ES256", "kid": kidES256, "x5u": listener.URL}), "", 401},
		{"J08 another's key under a known kid", forged(map[string]any{"alg": "ES256", "kid": kidES256}), "", 401},
		{"J09 kid of a path", forged(map[string]any{"alg": "ES256", "kid": "../../etc/passwd"}), "", 401},
		{"J09 kid of SQL", forged(map[string]any{"alg": "ES256", "kid": "' OR 1=1--"}), "", 401},
		{"J10 crit", signed(map[string]any{"crit": []string{"exp"}}), "", 401},
		{"J11 typ of a logout token", signed(map[string]any{"typ": "logout+jwt"}), "", 401},
		{"J22 64 KiB of dots", "Bearer " + strings.Repeat(".", 64<<10), "", 401},
		{"J32 garbage", "Bearer e30.e30.e30", "", 401},
		{"a good one", "Bearer " + good, "", 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			upstream.forget()
			a := g.send(http.MethodPost, s.path+tc.path, "", pingMessage, "Accept", bothKinds, "Authorization", tc.authorization)
			if a.status == http.StatusRequestHeaderFieldsTooLarge && len(tc.authorization) > 16<<10 {
				return
			}
			a.want(t, tc.status)
			if tc.status != http.StatusUnauthorized {
				return
			}
			a.wantError(t, tc.status, "Unauthorized")
			upstream.wantNothing(t)
			got, sent := a.header.Get("WWW-Authenticate"), strings.Count(tc.authorization, ".") == 2 && strings.HasPrefix(tc.authorization, "Bearer ey")
			if !strings.HasPrefix(got, "Bearer ") || !strings.Contains(got, "resource_metadata=") || (sent && !strings.Contains(got, "invalid_token")) ||
				(tc.authorization == "" && strings.Contains(got, "error")) {
				t.Errorf("challenged with %q", got)
			}
		})
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("J08 the token's header made the gateway ask %d times", n)
	}
	g.send(http.MethodPost, s.path, "", pingMessage, "Cookie", "access_token="+good).want(t, http.StatusUnauthorized)
	g.send(http.MethodPost, s.path, "", "access_token="+good, "Content-Type", "application/x-www-form-urlencoded").want(t, http.StatusUnauthorized)
	t.Run("L05 addresses in the access log", func(t *testing.T) {
		for _, name := range []string{"code", "state"} {
			g.send(http.MethodGet, "/api/oauth/callback?"+name+"=canary-of-the-address", "", nil)
		}
		g.send(http.MethodGet, "/api/servers?access_token="+url.QueryEscape(good), "", nil)
		g.stop(t)
		log := g.output.String()
		if strings.Contains(log, "canary-of-the-address") || strings.Contains(log, good) {
			t.Error("the access log holds a secret of an address")
		}
		if !strings.Contains(log, "/api/oauth/callback?code=REDACTED") {
			t.Error("the access log does not hold the callback at all")
		}
	})
}

// publish replaces the keys that are published and signed with.
func (p *identityProvider) publish(signers map[string]crypto.Signer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signers = signers
}

// TestAttackKeys checks that the identity provider is asked for keys seldom, whatever tokens come, and its absence
// refuses (J24 to J28).
func TestAttackKeys(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	s := g.createServer(answering(t).url, nil)
	ping := func(token string) int {
		return g.send(http.MethodPost, s.path, token, pingMessage, "Accept", bothKinds).status
	}
	before := g.identity.keyFetches()
	attacker := newECKey(t)
	t.Run("J24 1,000 unknown keys", func(t *testing.T) {
		var all sync.WaitGroup
		for worker := range 8 {
			all.Go(func() {
				for n := range 125 {
					input := encodeJSON(t, map[string]any{"alg": "ES256", "kid": fmt.Sprint("unknown-", worker, "-", n)}) + "." + encodeJSON(t, g.identity.complete(alice, g.url))
					if status := ping(input + "." + base64url(signature(t, attacker, input))); status != http.StatusUnauthorized && status != http.StatusTooManyRequests { // T12
						t.Errorf("answered %d", status)
						return
					}
				}
			})
		}
		all.Wait()
		if n := g.identity.keyFetches() - before; n > 3 {
			t.Errorf("the keys were fetched %d times", n)
		}
		if status := ping(g.token(alice)); status != http.StatusOK {
			t.Errorf("a good token is answered %d", status)
		}
	})
	t.Run("J28 the provider is away at the start", func(t *testing.T) {
		other := startGateway(t, settings{})
		other.identity.server.Close()
		a := other.send(http.MethodGet, "/api/servers", other.token(alice), nil)
		a.wantError(t, http.StatusServiceUnavailable, "Unavailable")
		if a.header.Get("Retry-After") == "" {
			t.Error("503 without Retry-After")
		}
	})
	t.Run("J25 a new key", func(t *testing.T) {
		other := startGateway(t, settings{})
		other.send(http.MethodGet, "/api/servers", other.token(alice), nil).want(t, http.StatusOK)
		other.identity.publish(map[string]crypto.Signer{"new": attacker})
		token := other.identity.sign(other.identity.complete(alice, other.url), map[string]any{"alg": "ES256", "kid": "new"})
		other.send(http.MethodGet, "/api/servers", token, nil).want(t, http.StatusOK)
	})
	t.Run("J27 the provider goes away later", func(t *testing.T) {
		g.identity.server.Close()
		if status := ping(g.token(bob)); status != http.StatusOK {
			t.Errorf("the last good keys do not serve: %d", status)
		}
	})
}

// TestAttackMetadata checks that the metadata document is the same whatever is asked (D09).
func TestAttackMetadata(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	for _, tc := range []struct {
		name, path string
		header     []string
		status     int
	}{
		{"D09 a name that nobody has", "/.well-known/oauth-protected-resource/mcp/nobody", nil, 200},
		{"D09 under a forwarded host", "/.well-known/oauth-protected-resource/mcp/nobody", []string{"X-Forwarded-Host", "evil.example", "X-Forwarded-Proto", "https"}, 200},
		{"D09 no name", "/.well-known/oauth-protected-resource", nil, 404},
		{"D09 a bad name", "/.well-known/oauth-protected-resource/mcp/A_B", nil, 404},
		{"D09 a slash at the end", "/.well-known/oauth-protected-resource/mcp/nobody/", nil, 404},
		{"D09 dot segments", "/.well-known/oauth-protected-resource/mcp/../../api/servers", nil, 404},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := g.send(http.MethodGet, tc.path, "", nil, tc.header...).want(t, tc.status)
			if tc.status != http.StatusOK {
				return
			}
			var document map[string]any
			a.decode(t, &document)
			if document["resource"] != g.url+"/mcp/nobody" || fmt.Sprint(document["authorization_servers"]) != "["+g.identity.issuer()+"]" {
				t.Errorf("the document is %s", a.body)
			}
		})
	}
}

// TestAttackUndecided checks that a call to a server that is there, by somebody who is connected and whom a policy
// lets, goes nowhere when a matcher keeps it from a step that has to come before: one that decides on it, or counts it
// (D07).
func TestAttackUndecided(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		site   string
		status int
	}{
		"D07 no policy":     {"durward_auth\n durward_limit\n durward_policy @elsewhere\n durward_credential\n durward_mcp\n durward_sse\n durward_platform", http.StatusInternalServerError},
		"D07 no limit":      {"durward_auth\n durward_limit @elsewhere\n durward_policy\n durward_credential\n durward_mcp\n durward_sse\n durward_platform", http.StatusInternalServerError},
		"D07 no limit here": {"durward_auth\n durward_limit llm\n durward_limit @elsewhere mcp\n durward_policy\n durward_credential\n durward_mcp\n durward_sse\n durward_platform", http.StatusInternalServerError},
		"D07 no credential": {"durward_auth\n durward_limit\n durward_policy\n durward_credential @elsewhere\n durward_mcp\n durward_sse\n durward_platform", http.StatusInternalServerError},
		"as it should be":   {"durward_auth\n durward_limit off\n durward_policy\n durward_credential\n durward_mcp\n durward_sse\n durward_platform", http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, settings{whole: true, site: "@elsewhere path /elsewhere\nroute {\n" + tc.site + "\n}"})
			party := newThirdParty(t)
			s := g.createServer(party.url()+"/open", members{"events_url": party.url() + "/open/events"})
			token := g.token(alice)
			ask := func(method, path string, body any) int {
				ctx, cancel := cancellable(t)
				defer cancel()
				response := g.open(ctx, method, path, token, body, "Accept", acceptBoth)
				defer response.Body.Close()
				return response.StatusCode
			}
			for what, status := range map[string]int{
				"call": ask(http.MethodPost, s.path, toolCall("echo")), "stream": ask(http.MethodGet, s.path, nil), "events": ask(http.MethodGet, "/sse/"+s.Slug, nil),
			} {
				if status != tc.status {
					t.Errorf("%s: %d", what, status)
				}
			}
			if n := reached(party); (n > 0) != (tc.status == http.StatusOK) {
				t.Errorf("%d requests reached the third party", n)
			}
		})
	}
}
