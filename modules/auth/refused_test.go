package auth_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/refused"
	"github.com/durward-gateway/durward/modules/app"
)

// remember makes the gateway remember a refused token of a path of its own, each from an address of its own.
func remember(t *testing.T, core *app.Core, path, address, raw string) {
	t.Helper()
	_, err := core.Authenticator.Token(t.Context(), raw, "")
	if err == nil {
		t.Fatalf("%s: the token is good", path)
	}
	core.Refused.Remember(t.Context(), raw, address+":1000", path, http.StatusUnauthorized, err)
}

func pathsOf(entries []refused.Entry) (found []string) {
	for _, e := range entries {
		found = append(found, e.Path)
	}
	slices.Sort(found)
	return found
}

// TestWhoSeesRefusedTokens checks that an administrator sees no tokens that have nothing to do with their organization,
// unless there is no other organization (W26).
func TestWhoSeesRefusedTokens(t *testing.T) {
	core := func(g *gateway, claims object) (*app.Core, *authn.Caller) {
		t.Helper()
		if got := g.get("/api/servers", "Authorization: Bearer "+g.issuer.Token(public, claims)); got.status != http.StatusAccepted {
			t.Fatalf("%d %s", got.status, got.body)
		}
		call := g.calls()[0]
		return call.Core, call.Caller
	}
	forged := func(raw string) string { return raw[:len(raw)-8] + "AAAAAAAA" }
	g := newGateway(t, nil)
	many, who := core(g, object{"org_id": "acme"})
	_, other := core(g, object{"org_id": "beta", "sub": "eve"})
	remember(t, many, "/own", "192.0.2.1", g.issuer.Token("https://elsewhere.example.com", object{"org_id": "acme"}))
	remember(t, many, "/none", "192.0.2.2", g.issuer.Token(public, object{"org_id": nil}))
	remember(t, many, "/other", "192.0.2.3", g.issuer.Token("https://elsewhere.example.com", object{"org_id": "beta"}))
	remember(t, many, "/forged", "192.0.2.4", forged(g.issuer.Token(public, object{"org_id": "acme"})))
	remember(t, many, "/foreign", "192.0.2.5", g.issuer.Token(public, object{"org_id": "acme", "iss": "https://evil.example.com"}))
	remember(t, many, "/opaque", "192.0.2.6", "ya29.opaque")
	only := func(entries []refused.Entry) []refused.Entry { // others are of the tests before
		return slices.DeleteFunc(entries, func(e refused.Entry) bool {
			return !slices.Contains([]string{"/own", "/none", "/other", "/forged", "/foreign", "/opaque"}, e.Path)
		})
	}
	if got := pathsOf(only(many.Refused.SeenBy(who))); !slices.Equal(got, []string{"/own"}) {
		t.Errorf("of several organizations one sees %v", got)
	}
	if got := pathsOf(only(many.Refused.SeenBy(other))); !slices.Equal(got, []string{"/other"}) {
		t.Errorf("of several organizations the other sees %v", got)
	}
	g = newGatewayOf(t, nil, object{"organization": "acme"})
	one, who := core(g, object{"org_id": nil})
	entries := only(one.Refused.SeenBy(who))
	if got := pathsOf(entries); !slices.Equal(got, []string{"/foreign", "/forged", "/none", "/opaque", "/other", "/own"}) {
		t.Errorf("where there is one organization its administrator sees %v", got)
	}
	for _, e := range entries {
		if signed := e.Path == "/own" || e.Path == "/none" || e.Path == "/other"; e.Verified != signed {
			t.Errorf("%s: signed is %v", e.Path, e.Verified)
		}
	}
	if got := one.Refused.SeenBy(other); len(got) != 0 && slices.ContainsFunc(got, func(e refused.Entry) bool { return e.Path != "/other" }) {
		t.Errorf("whoever is of another organization sees %v", pathsOf(got))
	}
}
