package oidclogin

import (
	"errors"
	"testing"

	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/seal"
)

// TestRenew checks what a refresh of a login tells of its user.
func TestRenew(t *testing.T) {
	said := func(r Renewal, name string) string {
		if r.Claims == nil {
			return ""
		}
		v, _ := r.Claims.Lookup(name)
		return v.Str()
	}
	for name, c := range map[string]struct {
		change func(p *idp)
		err    error
		next   string // the next refresh token
		claims bool
	}{
		"an ID token": {func(p *idp) { p.claims = map[string]any{"org_id": "acme", "email": "a@b.test"} }, nil, "", true},
		"an ID token with a nonce": {func(p *idp) {
			p.claims = map[string]any{"org_id": "acme", "email": "a@b.test", "nonce": "that of the login"}
		}, nil, "", true},
		"an ID token without details":  {func(p *idp) { p.userinfo = `200 {"sub":"user-1","org_id":"acme"}` }, nil, "", true},
		"another user's ID token":      {func(p *idp) { p.claims = map[string]any{"sub": "user-2"} }, ErrEnded, "", false},
		"another client's ID token":    {func(p *idp) { p.claims = map[string]any{"aud": "other"} }, token.ErrInvalid, "", false},
		"an ID token that has expired": {func(p *idp) { p.claims = map[string]any{"exp": 1} }, token.ErrInvalid, "", false},
		"no ID token": {func(p *idp) {
			p.answer, p.userinfo = `200 {"access_token":"a","token_type":"Bearer","refresh_token":"r-2"}`, `200 {"sub":"user-1","org_id":"acme"}`
		}, nil, "r-2", true},
		"another user's userinfo": {func(p *idp) {
			p.answer, p.userinfo = `200 {"access_token":"a","token_type":"Bearer","refresh_token":"r-2"}`, `200 {"sub":"user-2","org_id":"acme"}`
		}, ErrEnded, "r-2", false},
		"userinfo that fails": {func(p *idp) {
			p.answer, p.userinfo = `200 {"access_token":"a","token_type":"Bearer","refresh_token":"r-2"}`, "500 "
		}, ErrProvider, "r-2", false},
		"neither": {func(p *idp) {
			p.answer, p.metadata = `200 {"access_token":"a","token_type":"Bearer"}`, map[string]any{"userinfo_endpoint": nil}
		}, nil, "", false},
		"a grant that is gone":         {func(p *idp) { p.answer = `400 {"error":"invalid_grant"}` }, ErrEnded, "", false},
		"another word for it":          {func(p *idp) { p.answer = `400 {"error":"invalid_request"}` }, ErrEnded, "", false},
		"a client that is refused":     {func(p *idp) { p.answer = `400 {"error":"invalid_client"}` }, ErrProvider, "", false},
		"a provider that fails":        {func(p *idp) { p.answer = "500 " }, ErrProvider, "", false},
		"a refresh token and no other": {func(p *idp) { p.answer = `200 {"refresh_token":"r-2","token_type":"Bearer"}` }, ErrProvider, "r-2", false},
		"no provider":                  {func(p *idp) { p.Close() }, ErrProvider, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newIDP(t)
			o, _ := p.provider(t, "s")
			p.set(func() { c.change(p) })
			r, err := o.Renew(t.Context(), "user-1", seal.NewSecret("r-1"))
			if !errors.Is(err, c.err) || r.Refresh.Reveal() != c.next || (r.Claims != nil) != c.claims || c.claims && said(r, "org_id") != "acme" || !r.IDToken.Empty() != (c.claims && !r.Partial) {
				t.Errorf("claims %v, next %q, error %v", r.Claims, r.Refresh.Reveal(), err)
			}
			if c.err != nil {
				for _, other := range []error{ErrEnded, ErrProvider, token.ErrInvalid} {
					if !errors.Is(c.err, other) && errors.Is(err, other) {
						t.Errorf("%v is %v, too", err, other)
					}
				}
			}
			p.set(func() {
				for _, form := range p.forms {
					if form.Get("grant_type") != "refresh_token" || form.Get("refresh_token") != "r-1" {
						t.Errorf("sent %v", form)
					}
				}
			})
		})
	}
}
