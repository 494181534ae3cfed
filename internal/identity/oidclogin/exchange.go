package oidclogin

import (
	"cmp"

	"github.com/durward-gateway/durward/internal/credential/oauth"
)

// inEitherPlace sends a request to the token endpoint. When the client is refused it tries once more with the client's
// secret in the other place: metadata lists both places where each client may use only one. Hydra's clients use the header,
// unless configured otherwise. The place that works is remembered.
func (p *Provider) inEitherPlace(client oauth.ClientAuth, send func(oauth.ClientAuth) (oauth.Tokens, error)) (oauth.Tokens, error) {
	if !client.Secret.Empty() {
		client.Method = cmp.Or(p.proven(), client.Method)
	}
	tokens, err := send(client)
	other, ok := client.Otherwise()
	if !ok || !oauth.ClientRefused(err) {
		return tokens, err
	}
	again, errAgain := send(other)
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
