package oidclogin

import (
	"cmp"

	"github.com/durward-gateway/durward/internal/credential/oauth"
)

// inEitherPlace sends a request to the token endpoint, see oauth.InEitherPlace. The place that works is remembered.
func (p *Provider) inEitherPlace(client oauth.ClientAuth, send func(oauth.ClientAuth) (oauth.Tokens, error)) (oauth.Tokens, error) {
	if !client.Secret.Empty() {
		client.Method = cmp.Or(p.proven(), client.Method)
	}
	return oauth.InEitherPlace(client, send, p.prove)
}

func (p *Provider) proven() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.place
}

func (p *Provider) prove(place string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.place = place
}
