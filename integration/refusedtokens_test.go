package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestRefusedTokens checks that the operator sees which line of the Caddyfile refused a token and which would accept
// it, the administrator the same by API, and nobody the token (W26).
func TestRefusedTokens(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	root := g.token(admin)
	refused := g.identity.sign(g.identity.complete(alice.with(claims{"nickname": "\u202eevil\u001b[31m", "upstream_token": "s3cret"}), "api://default"), map[string]any{"alg": "ES256", "typ": "at+jwt", "kid": kidES256})
	if a := g.send(http.MethodGet, "/api/servers", refused, nil); a.status != http.StatusUnauthorized {
		t.Fatalf("%d %s", a.status, a.body)
	}
	line := 1 + strings.Count(strings.SplitN(g.written(), "audience", 2)[0], "\n")
	output, err := g.run("doctor", "tokens", "--config", g.config, "--adapter", "caddyfile")
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	for _, want := range []string{
		"aud does not name the gateway", fmt.Sprintf("Caddyfile:%d", line), "accepted  audience api://default", `"email":"alice@acme.test"`, "⟨U+202E⟩",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("%q is missing in:\n%s", want, output)
		}
	}
	a := g.send(http.MethodGet, "/api/refused-tokens", root, nil)
	var view struct {
		Tokens []struct {
			Verified   bool   `json:"signature_verified"`
			AcceptedBy string `json:"accepted_by"`
			Claims     map[string]any
		}
	}
	if err := json.Unmarshal(a.body, &view); err != nil || a.status != http.StatusOK || len(view.Tokens) != 1 || !view.Tokens[0].Verified || view.Tokens[0].AcceptedBy != "audience api://default" {
		t.Errorf("%d %s", a.status, a.body)
	}
	signature := refused[strings.LastIndexByte(refused, '.')+1:]
	for name, text := range map[string]string{"command": output, "API": string(a.body)} {
		if strings.Contains(text, signature) || strings.Contains(text, "s3cret") || strings.Contains(text, "\x1b") {
			t.Errorf("the %s shows what nobody may have: %s", name, text)
		}
	}
	if a := g.send(http.MethodGet, "/api/refused-tokens", g.token(alice), nil); a.status != http.StatusForbidden {
		t.Errorf("a user: %d %s", a.status, a.body)
	}
	if a := g.send(http.MethodGet, "/api/refused-tokens", g.token(eve), nil); a.status != http.StatusOK || strings.Contains(string(a.body), "alice") {
		t.Errorf("another organization's administrator: %d %s", a.status, a.body)
	}
}
