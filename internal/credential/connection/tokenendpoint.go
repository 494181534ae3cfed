package connection

import (
	"context"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/storage"
)

// asking is a conversation with a token endpoint. Providers do not always follow their metadata. If a provider refuses
// the form of a request, the request is sent once more in another form. The form that works is remembered.
type asking struct {
	b      *Broker
	server storage.Server
	was    storage.OAuthClient
	client storage.OAuthClient // starts as was; collects the facts learned by asking
	auth   oauth.ClientAuth
}

func (b *Broker) asking(s storage.Server, c storage.OAuthClient) (*asking, error) {
	auth, err := b.auth(s, c)
	return &asking{b: b, server: s, was: c, client: c, auth: auth}, err
}

func (a *asking) exchange(ctx context.Context, r oauth.ExchangeRequest) (oauth.Tokens, error) {
	return a.eitherMethod(func() (oauth.Tokens, error) {
		r.Client = a.auth
		return a.b.oauth.Exchange(ctx, r)
	})
}

// refresh redeems a refresh token. A provider that accepted the parameter resource with the code may refuse it here.
func (a *asking) refresh(ctx context.Context, r oauth.RefreshRequest) (oauth.Tokens, error) {
	if a.client.RefreshResourceOff {
		r.Resource = ""
	}
	ask := func() (oauth.Tokens, error) {
		r.Client = a.auth
		return a.b.oauth.Refresh(ctx, r)
	}
	t, err := a.eitherMethod(ask)
	if r.Resource == "" || !oauth.ResourceRefused(err) {
		return t, err
	}
	r.Resource = ""
	t, err = a.eitherMethod(ask)
	a.client.RefreshResourceOff = err == nil
	return t, err
}

// eitherMethod sends a request. If the client is refused, it sends the request once more with the client's secret in
// the other place, because metadata may list both places where only one works, or list nothing. The other place is kept
// only when it is proven, because it applies to everybody. A provider that does not look for a secret there may give
// any answer (invalid_request, a bare 403). Then only the fact counts that it refuses the client.
func (a *asking) eitherMethod(ask func() (oauth.Tokens, error)) (oauth.Tokens, error) {
	t, err := ask()
	if other, ok := a.otherMethod(); ok && oauth.ClientRefused(err) {
		first := a.auth
		a.auth = other
		again, errAgain := ask()
		switch {
		case oauth.ProvesClient(errAgain):
			t, err, a.client.AuthMethod = again, errAgain, other.Method
		case oauth.ClassOf(errAgain) == oauth.Later: // no answer: nothing is known yet
			t, err, a.auth = again, errAgain, first
		default:
			a.auth = first
		}
	}
	if err == nil {
		a.client.Refused = false
		a.b.proofs.note(serverKeyOf(a.server), a.client.ClientID, a.b.now())
	}
	return t, err
}

// otherMethod returns the client with its secret in the other place, unless the entry says where the secret goes.
func (a *asking) otherMethod() (oauth.ClientAuth, bool) {
	if a.server.Entry.Options.AuthMethod != "" {
		return a.auth, false
	}
	return a.auth.Otherwise()
}

// keep stores the facts that were learned. If that fails, they are learned again.
func (a *asking) keep(ctx context.Context) {
	if sameRecord(a.client, a.was) {
		return
	}
	if err := a.b.store.PutOAuthClient(ctx, a.client, a.client.ClientID); err != nil {
		a.b.log.Warn("noting how a provider wants to be asked", "organization", a.server.OrganizationID, "server", a.server.Slug, "error", err.Error())
	}
	a.was = a.client
}
