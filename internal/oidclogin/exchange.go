package oidclogin

import (
	"cmp"
	"context"

	"github.com/durward-gateway/durward/internal/oauthflow"
)

// exchange redeems a code, and once more with the client's secret in the other place when the client is refused: metadata lists
// both where each client may use one. Hydra's clients use the header, unless they say otherwise. The place that is proven is kept.
func (p *Provider) exchange(ctx context.Context, r oauthflow.ExchangeRequest) (oauthflow.Tokens, error) {
	if !r.Client.Secret.Empty() {
		r.Client.Method = cmp.Or(p.proven(), r.Client.Method)
	}
	tokens, err := p.OAuth.Exchange(ctx, r)
	other, ok := r.Client.Otherwise()
	if !ok || !oauthflow.ClientRefused(err) {
		return tokens, err
	}
	r.Client = other
	again, errAgain := p.OAuth.Exchange(ctx, r)
	switch {
	case oauthflow.ProvesClient(errAgain):
		p.prove(other.Method)
		return again, errAgain
	case oauthflow.ClassOf(errAgain) == oauthflow.Later: // nobody has answered: nothing is known yet
		return again, errAgain
	}
	return tokens, err // what the provider says where it looks for the secret
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
