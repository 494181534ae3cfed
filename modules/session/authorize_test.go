package session_test

import (
	"strings"
	"testing"

	"github.com/durward-gateway/durward/modules/caddytest"
)

// TestWhoAuthorizes checks where clients are sent to log their users in: to the gateway where its pages can do that, else to
// the identity provider.
func TestWhoAuthorizes(t *testing.T) {
	issuer := caddytest.NewIssuer(t)
	pages, auth := caddytest.Named("durward_session"), caddytest.Named("durward_auth")
	apart := object{"handler": "subroute", "routes": []any{
		object{"group": "g", "match": []any{object{"path": []string{"/login*", "/logout", "/approvals*", "/connect*"}}}, "handle": []any{pages}},
		object{"group": "g", "handle": []any{auth}},
	}}
	login := object{"kind": "oidc", "issuer": issuer.URL, "login_client": client}
	for name, c := range map[string]struct {
		identity object
		mode     string
		handlers []any
		named    string // the authorization server; "": the configuration is refused
	}{
		"a login client":                {login, "", []any{pages, auth}, public},
		"a login client, off":           {login, "off", []any{pages, auth}, issuer.URL},
		"a login client without pages":  {login, "", []any{auth}, issuer.URL},
		"pages at some addresses":       {login, "", []any{apart}, issuer.URL},
		"on without pages":              {login, "on", []any{auth}, ""},
		"on without a login client":     {object{"kind": "oidc", "issuer": issuer.URL}, "on", []any{pages, auth}, ""},
		"neither on nor a login client": {object{"kind": "oidc", "issuer": issuer.URL}, "", []any{pages, auth}, issuer.URL},
	} {
		t.Run(name, func(t *testing.T) {
			g := &gateway{t: t, address: caddytest.Address(t), issuer: issuer}
			config := configOf(t, c.identity)
			config["authorization_server"] = object{"mode": c.mode}
			err := caddytest.Load(t, caddytest.Config(config, g.address, append(c.handlers, caddytest.Handle(t, g.pass))...))
			if c.named == "" {
				if err == nil || !strings.Contains(err.Error(), "authorization_server on needs") {
					t.Errorf("it loads: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if a := g.send("GET /.well-known/oauth-protected-resource/mcp/notes HTTP/1.1"); !strings.Contains(a.body, `"authorization_servers":["`+c.named+`"]`) {
				t.Errorf("clients are sent elsewhere: %d %s", a.status, a.body)
			}
		})
	}
}
