package oidclogin

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

// places tells where the secret was in each token request.
func (p *idp) places() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []string
	for i, form := range p.forms {
		switch {
		case form.Has("client_secret") && p.auths[i] != "":
			found = append(found, "both")
		case form.Has("client_secret"):
			found = append(found, "body")
		case p.auths[i] != "":
			found = append(found, "header")
		default:
			found = append(found, "none")
		}
	}
	return strings.Join(found, " ")
}

// TestSecretInTheOtherPlace checks W15: metadata lists both places although the client at the provider may use only
// one.
func TestSecretInTheOtherPlace(t *testing.T) {
	const refused, failed = `400 {"error":"invalid_client"}`, "500 {}"
	both := map[string]any{"token_endpoint_auth_methods_supported": []string{"client_secret_post", "client_secret_basic"}}
	for name, c := range map[string]struct {
		metadata     map[string]any
		secret       string
		body, header string // answers to a secret there; "" is a login
		wants        error
		places       string // of two logins
	}{
		"the header alone":               {both, "s3cret", refused, "", nil, "body header header"},
		"the body alone":                 {both, "s3cret", "", refused, nil, "body body"},
		"the body alone, nothing listed": {nil, "s3cret", "", refused, nil, "header body body"},
		"neither":                        {both, "s3cret", refused, refused, ErrRefused, "body header body header"},
		"a code that is not good":        {both, "s3cret", refused, `400 {"error":"invalid_grant"}`, ErrAnswer, "body header header"},
		"the header is not looked at":    {both, "s3cret", refused, `400 {"error":"invalid_request"}`, ErrRefused, "body header body header"},
		"nobody answers the second":      {both, "s3cret", refused, failed, ErrProvider, "body header body header"},
		"nobody answers the first":       {both, "s3cret", failed, "", ErrProvider, "body body"},
		"refused for something else":     {both, "s3cret", `400 {"error":"invalid_request"}`, "", ErrRefused, "body body"},
		"a client without a secret":      {both, "", "", "", nil, "none none"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newIDP(t)
			o, _ := p.provider(t, c.secret)
			p.set(func() {
				p.metadata = c.metadata
				p.refuses = func(form url.Values, authorization string) string {
					switch {
					case form.Has("client_secret"):
						return c.body
					case authorization != "":
						return c.header
					}
					return ""
				}
			})
			for range 2 {
				a, answer := p.begin(t, o)
				p.set(func() { p.claims["org_id"], p.claims["email"] = "acme", "a@b" })
				if _, err := o.Finish(t.Context(), answer, a); !errors.Is(err, c.wants) {
					t.Errorf("the login: %v", err)
				}
			}
			if got := p.places(); got != c.places {
				t.Errorf("the secret went into %s, want %s", got, c.places)
			}
		})
	}
}
