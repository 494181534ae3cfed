package oidclogin

import (
	"cmp"
	"context"

	"github.com/durward-gateway/durward/internal/credential/oauth"
)

// exchange redeems a code. When the client is refused it tries once more with the client's secret in the other place:
// metadata lists both places where each client may use only one. Hydra's clients use the header, unless configured
// otherwise. The place that works is remembered.
func (p *Provider) exchange(ctx context.Context, r oauth.ExchangeRequest) (oauth.Tokens, error) {
	if !r.Client.Secret.Empty() {
		r.Client.Method = cmp.Or(p.proven(), r.Client.Method)
	}
	tokens, err := p.OAuth.Exchange(ctx, r)
	other, ok := r.Client.Otherwise()
	if !ok || !oauth.ClientRefused(err) {
		return tokens, err
	}
	r.Client = other
	again, errAgain := p.OAuth.Exchange(ctx, r)
	switch {
	case oauth.ProvesClient(errAgain):
		p.prove(other.Method)
		return again, errAgain
	case oauth.ClassOf(errAgain) == oauth.Later: // there was no answer: nothing is known yet
		return again, errAgain
	}
	return tokens, err // the provider's answer says where it looks for the secret
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
