package authorization

import (
	"testing"

	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// TestComplete renews claims with those of userinfo alone.
func TestComplete(t *testing.T) {
	for name, c := range map[string]struct{ former, said, want string }{
		"userinfo lacks the organization": {`{"org_id":"acme","email":"old@acme.test"}`, `{"sub":"a","email":"new@acme.test"}`, `{"email":"new@acme.test","org_id":"acme","sub":"a"}`},
		"groups were taken away":          {`{"groups":["sales","leads"]}`, `{"groups":["sales"]}`, `{"groups":["sales"]}`},
		"nothing before":                  {``, `{"sub":"a"}`, `{"sub":"a"}`},
	} {
		said, err := strictjson.Parse([]byte(c.said), strictjson.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		claims := &token.Claims{Object: said}
		if err := complete(claims, c.former); err != nil {
			t.Fatal(err)
		}
		if got := string(claims.Object.AppendWithout(nil, func([]byte) bool { return false })); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	claims := new(token.Claims)
	if err := complete(claims, "["); err == nil {
		t.Error("former claims that cannot be read are taken")
	}
}

// TestResource asks which resources tokens are issued for.
func TestResource(t *testing.T) {
	s := &Server{options: Options{PublicURL: "https://gate.test"}}
	for resource, want := range map[string]string{
		"https://gate.test": "", "https://gate.test/": "", "https://gate.test/mcp/notes": "notes",
	} {
		audience, server, ok := s.Resource([]string{resource})
		if !s.Target(resource) || !ok || server != want || audience != "https://gate.test"+map[bool]string{true: "/mcp/" + want}[want != ""] {
			t.Errorf("%s: %q %q %v", resource, audience, server, ok)
		}
	}
	for _, resource := range []string{"", "https://gate.test/mcp/", "https://gate.test/mcp/a/b", "https://gate.test/mcp/../x", "https://gate.test.evil/mcp/a", "http://gate.test/mcp/a", "https://gate.test/api", "https://gate.test/mcp/a?x"} {
		if s.Target(resource) {
			t.Errorf("%q is one", resource)
		}
	}
	if audience, _, ok := s.Resource(nil); !ok || audience != "https://gate.test" {
		t.Errorf("none: %q %v", audience, ok)
	}
	if _, _, ok := s.Resource([]string{"https://gate.test", "https://gate.test/mcp/a"}); ok {
		t.Error("a token for two resources")
	}
}
