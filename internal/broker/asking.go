package broker

import (
	"context"

	"github.com/durward-gateway/durward/internal/oauthflow"
	"github.com/durward-gateway/durward/storage"
)

// asking is a conversation with a token endpoint. Providers differ from their metadata: what is refused for the way in which
// it was asked is asked once more in another way, and the way that works is remembered.
type asking struct {
	b      *Broker
	server storage.Server
	was    storage.OAuthClient
	client storage.OAuthClient // was, and what has been learned
	auth   oauthflow.ClientAuth
}

func (b *Broker) asking(s storage.Server, c storage.OAuthClient) (*asking, error) {
	auth, err := b.auth(s, c)
	return &asking{b: b, server: s, was: c, client: c, auth: auth}, err
}

func (a *asking) exchange(ctx context.Context, r oauthflow.ExchangeRequest) (oauthflow.Tokens, error) {
	return a.eitherMethod(func() (oauthflow.Tokens, error) {
		r.Client = a.auth
		return a.b.oauth.Exchange(ctx, r)
	})
}

// refresh redeems a refresh token. A provider that has taken the parameter resource before, with the code, may refuse it here.
func (a *asking) refresh(ctx context.Context, r oauthflow.RefreshRequest) (oauthflow.Tokens, error) {
	if a.client.RefreshResourceOff {
		r.Resource = ""
	}
	ask := func() (oauthflow.Tokens, error) {
		r.Client = a.auth
		return a.b.oauth.Refresh(ctx, r)
	}
	t, err := a.eitherMethod(ask)
	if r.Resource == "" || !oauthflow.ResourceRefused(err) {
		return t, err
	}
	r.Resource = ""
	t, err = a.eitherMethod(ask)
	a.client.RefreshResourceOff = err == nil
	return t, err
}

// eitherMethod asks, and once more with the client's secret in the other place when the client is refused: metadata lists both
// where one works, or nothing. The other place is kept when it is proven, for it is everybody's. A provider that does not look
// for a secret there answers anything (invalid_request, a bare 403): what counts then is that it refuses the client.
func (a *asking) eitherMethod(ask func() (oauthflow.Tokens, error)) (oauthflow.Tokens, error) {
	t, err := ask()
	if other, ok := a.otherMethod(); ok && oauthflow.ClientRefused(err) {
		first := a.auth
		a.auth = other
		again, errAgain := ask()
		switch {
		case oauthflow.ProvesClient(errAgain):
			t, err, a.client.AuthMethod = again, errAgain, other.Method
		case oauthflow.ClassOf(errAgain) == oauthflow.Later: // nobody has answered: nothing is known yet
			t, err, a.auth = again, errAgain, first
		default:
			a.auth = first
		}
	}
	if err == nil {
		a.client.Refused = false
		a.b.proofs.note(a.server.ID, a.client.ClientID, a.b.now())
	}
	return t, err
}

// otherMethod is the client with its secret in the other place, unless the entry says where it goes.
func (a *asking) otherMethod() (oauthflow.ClientAuth, bool) {
	if a.server.Entry.Options.AuthMethod != "" {
		return a.auth, false
	}
	return a.auth.Otherwise()
}

// keep stores what was learned. It is learned anew when that fails.
func (a *asking) keep(ctx context.Context) {
	if sameRecord(a.client, a.was) {
		return
	}
	if err := a.b.store.PutOAuthClient(ctx, a.client, a.client.ClientID); err != nil {
		a.b.log.Warn("noting how a provider wants to be asked", "organization", a.server.OrganizationID, "server", a.server.Slug, "error", err.Error())
	}
	a.was = a.client
}
