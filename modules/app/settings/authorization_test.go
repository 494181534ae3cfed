package settings

import (
	"slices"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/identity/authserver"
)

func TestAuthorizationServerCheck(t *testing.T) {
	back := []string{"https://editor.example.com/back"}
	for name, c := range map[string]struct {
		rules *AuthorizationServer
		good  bool
	}{
		"none":                      {nil, true},
		"empty":                     {new(AuthorizationServer), true},
		"a word":                    {&AuthorizationServer{Mode: "maybe"}, false},
		"negative":                  {&AuthorizationServer{Lifetime: -1}, false},
		"idle for longer than life": {&AuthorizationServer{Lifetime: caddy.Duration(time.Hour), Idle: caddy.Duration(2 * time.Hour)}, false},
		"short":                     {&AuthorizationServer{Lifetime: caddy.Duration(time.Hour)}, true},
		"any beside others":         {&AuthorizationServer{Clients: []string{"any", "claude.ai"}}, false},
		"known":                     {&AuthorizationServer{Clients: []string{"known"}}, true},
		"hosts":                     {&AuthorizationServer{Clients: []string{"claude.ai", "editor.example.com:8443"}}, true},
		"a host with a path":        {&AuthorizationServer{Clients: []string{"claude.ai/x"}}, false},
		"a pattern":                 {&AuthorizationServer{Clients: []string{"*.example.com"}}, false},
		"no host":                   {&AuthorizationServer{Clients: []string{""}}, false},
		"a client":                  {&AuthorizationServer{Known: []OAuthClient{{ID: "editor", RedirectURIs: back}}}, true},
		"a client without an id":    {&AuthorizationServer{Known: []OAuthClient{{RedirectURIs: back}}}, false},
		"a client with an address":  {&AuthorizationServer{Known: []OAuthClient{{ID: "https://a.test/id", RedirectURIs: back}}}, true},
		"an address with a secret":  {&AuthorizationServer{Known: []OAuthClient{{ID: "https://a.test/id", RedirectURIs: back, Secret: "{env.X}"}}}, false},
		"an address without a path": {&AuthorizationServer{Known: []OAuthClient{{ID: "https://a.test", RedirectURIs: back}}}, false},
		"a plain address":           {&AuthorizationServer{Known: []OAuthClient{{ID: "http://a.test/id", RedirectURIs: back}}}, false},
		"a client twice":            {&AuthorizationServer{Known: []OAuthClient{{ID: "editor", RedirectURIs: back}, {ID: "editor", RedirectURIs: back}}}, false},
		"a client without redirect": {&AuthorizationServer{Known: []OAuthClient{{ID: "editor"}}}, false},
		"plain http":                {&AuthorizationServer{Known: []OAuthClient{{ID: "editor", RedirectURIs: []string{"http://a.test"}}}}, false},
	} {
		if err := c.rules.Check(); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAuthorizationServerOn asks when the gateway is an authorization server.
func TestAuthorizationServerOn(t *testing.T) {
	for name, c := range map[string]struct {
		rules          *AuthorizationServer
		able, required bool
		want           bool
	}{
		"nothing said":              {nil, true, false, true},
		"nothing said, no login":    {nil, false, false, false},
		"a block without a word":    {&AuthorizationServer{Lifetime: 1}, true, false, true},
		"off":                       {&AuthorizationServer{Mode: "off"}, true, false, false},
		"on":                        {&AuthorizationServer{Mode: "on"}, true, true, true},
		"a block without, no login": {&AuthorizationServer{Lifetime: 1}, false, false, false},
	} {
		if got := c.rules.On(c.able); got != c.want || c.rules.Required() != c.required {
			t.Errorf("%s: on %v, required %v", name, got, c.rules.Required())
		}
	}
}

// TestAuthorizationServerAdmits asks which clients may log users in.
func TestAuthorizationServerAdmits(t *testing.T) {
	known := []OAuthClient{{ID: "editor"}}
	for name, c := range map[string]struct {
		rules               *AuthorizationServer
		registers, fetches  bool
		admitted, forbidden []string
	}{
		"none":  {nil, true, true, []string{"x", "https://a.test/id"}, nil},
		"any":   {&AuthorizationServer{Clients: []string{"any"}}, true, true, []string{"x", "https://a.test/id"}, nil},
		"known": {&AuthorizationServer{Clients: []string{"known"}, Known: known}, false, false, []string{"editor"}, []string{"x", "https://known/id", "https://any/id"}},
		"hosts": {
			&AuthorizationServer{Clients: []string{"Claude.ai"}, Known: known}, false, true, []string{"editor", "https://claude.ai/id", "https://CLAUDE.ai/id"},
			[]string{"x", "https://claude.ai.evil.test/id", "https://evil.test/claude.ai", "https://claude.ai:8443/id", "claude.ai"},
		},
	} {
		if c.rules.Registers() != c.registers || c.rules.FetchesDocuments() != c.fetches {
			t.Errorf("%s: registers %v, fetches %v", name, c.rules.Registers(), c.rules.FetchesDocuments())
		}
		for _, id := range c.admitted {
			if !c.rules.Admits(id) {
				t.Errorf("%s: %s is refused", name, id)
			}
		}
		for _, id := range c.forbidden {
			if c.rules.Admits(id) {
				t.Errorf("%s: %s is admitted", name, id)
			}
		}
	}
}

// TestKnownClients checks that only clients with a secret may present assertions: others prove nothing but a name.
// TestWith checks that clients are added but for those that the configuration has, and that it is left as it is.
func TestWith(t *testing.T) {
	more := []OAuthClient{{ID: "a", Name: "Added"}, {ID: "b"}}
	configured := &AuthorizationServer{Mode: AuthorizationOff, Known: make([]OAuthClient, 1, 5)}
	configured.Known[0] = OAuthClient{ID: "a", Name: "Mine"}
	got := configured.With(more)
	if diff := cmp.Diff(&AuthorizationServer{Mode: AuthorizationOff, Known: []OAuthClient{{ID: "a", Name: "Mine"}, {ID: "b"}}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(configured.Known) != 1 || configured.Known[:2][1].ID != "" {
		t.Errorf("the configuration became %+v", configured)
	}
	var none *AuthorizationServer
	if diff := cmp.Diff(&AuthorizationServer{Known: more}, none.With(more)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestKnownClients(t *testing.T) {
	t.Setenv("EDITOR_SECRET", "s3cret")
	rules := &AuthorizationServer{Known: []OAuthClient{{ID: "editor", Secret: "{env.EDITOR_SECRET}"}, {ID: "open"}}}
	clients, err := rules.KnownClients()
	if err != nil || len(clients) != 2 {
		t.Fatalf("%v, %v", clients, err)
	}
	for i, want := range []bool{true, false} {
		if c := &clients[i]; slices.Contains(c.GrantTypes, authserver.GrantAssertion) != want || c.Public() == want || !slices.Contains(c.GrantTypes, authserver.GrantCode) {
			t.Errorf("%s: %v", c.ID, c.GrantTypes)
		}
	}
}
