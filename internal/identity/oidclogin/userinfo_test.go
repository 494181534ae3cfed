package oidclogin

import (
	"errors"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/identity/token"
)

// TestUserinfo checks W23: claims that the ID token leaves out are taken from userinfo of the same user only.
func TestUserinfo(t *testing.T) {
	const other = `200 {"sub":"user-2","org_id":"evil"}`
	for name, c := range map[string]struct {
		idToken  map[string]any
		userinfo string
		want     map[string]string // claims of the result; nil: err
		err      error
	}{
		"an organization and an address":         {nil, `200 {"sub":"user-1","org_id":"acme","email":"a@b","deep":{"x":["y"]}}`, map[string]string{"org_id": `"acme"`, "email": `"a@b"`, "deep": `{"x":["y"]}`}, nil},
		"the ID token's word stays":              {map[string]any{"org_id": "acme"}, `200 {"sub":"user-1","org_id":"evil","email":"a@b"}`, map[string]string{"org_id": `"acme"`, "email": `"a@b"`}, nil},
		"null is a word":                         {map[string]any{"email": "", "groups": []string{}}, `200 {"sub":"user-1","org_id":"acme","email":"a@b","groups":["x"]}`, map[string]string{"email": `""`, "groups": "[]"}, nil},
		"nothing of the token itself":            {nil, `200 {"sub":"user-1","org_id":"acme","azp":"evil","gty":"client-credentials","acr":"9"}`, map[string]string{"org_id": `"acme"`, "azp": "", "gty": "", "acr": ""}, nil},
		"nothing more":                           {nil, `200 {"sub":"user-1"}`, map[string]string{"org_id": ""}, nil},
		"another user":                           {nil, other, nil, ErrAnswer},
		"another user, for a detail":             {map[string]any{"org_id": "acme"}, other, nil, ErrAnswer},
		"another user in other case":             {nil, `200 {"sub":"USER-1","org_id":"evil"}`, nil, ErrAnswer},
		"no user":                                {nil, `200 {"org_id":"evil"}`, nil, ErrAnswer},
		"a user that is no string":               {nil, `200 {"sub":["user-1"],"org_id":"evil"}`, nil, ErrAnswer},
		"two users":                              {nil, `200 {"sub":"user-1","sub":"user-2","org_id":"evil"}`, nil, ErrProvider},
		"it fails":                               {nil, "500 {}", nil, ErrProvider},
		"it refuses":                             {nil, "401 {}", nil, ErrProvider},
		"it leads elsewhere":                     {nil, "302 {}", nil, ErrProvider},
		"it is signed":                           {nil, "200 eyJhbGciOiJub25lIn0.e30.", nil, ErrProvider},
		"it is endless":                          {nil, `200 {"sub":"user-1","x":"` + strings.Repeat("a", 1<<20) + `"}`, nil, ErrProvider},
		"it is much":                             {nil, `200 {"sub":"user-1","x":"` + strings.Repeat("a", maxClaims) + `"}`, nil, ErrProvider},
		"it fails, and only a detail is missing": {map[string]any{"org_id": "acme"}, "500 {}", map[string]string{"org_id": `"acme"`, "email": ""}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := newIDP(t)
			o, _ := p.provider(t, "")
			a, answer := p.begin(t, o)
			p.set(func() {
				p.userinfo = c.userinfo
				for name, value := range c.idToken {
					p.claims[name] = value
				}
			})
			finished, err := o.Finish(t.Context(), answer, a)
			claims := finished.Claims
			if c.want == nil {
				if !errors.Is(err, c.err) || claims != nil || errors.Is(err, token.ErrInvalid) {
					t.Fatalf("%v, %v", claims, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(p.asked) != 1 || p.asked[0] != "Bearer a" {
				t.Errorf("asked %q", p.asked)
			}
			for name, want := range c.want {
				got, _ := claims.Object.Get(name)
				if text := string(got.Raw()); text != want && (want != "" || text != "") {
					t.Errorf("%s is %s, want %s", name, text, want)
				}
			}
			if claims.Subject != "user-1" || claims.Issuer != p.URL || claims.ExpiresAt.IsZero() {
				t.Errorf("%+v", claims)
			}
		})
	}
}

// TestUserinfoElsewhere checks that the endpoint is judged like every other address, and a provider without one is
// not asked.
func TestUserinfoElsewhere(t *testing.T) {
	p := newIDP(t)
	o, _ := p.provider(t, "")
	p.set(func() { p.metadata = map[string]any{"userinfo_endpoint": "http://169.254.169.254/userinfo"} })
	if _, _, err := o.Begin(t.Context(), Purpose{Return: "/"}); !errors.Is(err, ErrProvider) {
		t.Errorf("S01 an internal address: %v", err)
	}
	p.set(func() { p.metadata = map[string]any{"userinfo_endpoint": nil} })
	a, answer := p.begin(t, o)
	finished, err := o.Finish(t.Context(), answer, a)
	if err != nil || len(p.asked) != 0 {
		t.Fatalf("%v, asked %d times", err, len(p.asked))
	}
	if _, ok := finished.Claims.Object.Get("org_id"); ok {
		t.Error("an organization came from nowhere")
	}
}
