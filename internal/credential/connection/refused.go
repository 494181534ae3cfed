package connection

import (
	"context"
	"errors"
	"fmt"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/storage"
)

// verdict tells whether a provider refuses our client, after a second request that concerns the client alone.
type verdict int

const (
	clientKnown     verdict = iota // the client is accepted: the provider refused this code or refresh token
	clientUnknown                  // the provider has not answered
	clientForgotten                // the provider has forgotten a client that we registered: the next connect registers another
	clientFailed                   // the provider refuses the client that an administrator configured: the server is in error
)

// public returns the text for the user who connects.
func (v verdict) public() string {
	switch v {
	case clientUnknown:
		return "The provider could not be reached. Please try again."
	case clientForgotten:
		return "The provider had forgotten this gateway. Please connect again."
	case clientFailed:
		return "The provider does not accept this gateway any more. An administrator must look at it."
	}
	return "The provider refused to connect. Please try again."
}

// clientRefused handles a refusal of the client in answer to one user's request. One answer proves nothing about the
// client: providers also give it for a grant of another client, and by accident. It is believed only if a second
// request, which contains nothing of a user, gets the same answer.
func (b *Broker) clientRefused(ctx context.Context, s storage.Server, a *asking, cause error) verdict {
	err := b.oauth.TryClient(ctx, a.client.Endpoints.TokenEndpoint, a.auth, b.app.RedirectURI)
	switch {
	case oauth.ClassOf(err) == oauth.Later:
		return clientUnknown
	case !oauth.ClientRefused(err):
		b.log.Warn("a provider refuses the OAuth client for one user only", "organization", s.OrganizationID, "server", s.Slug, "error", cause.Error())
		return clientKnown
	}
	a.client.Refused = true
	a.keep(ctx)
	if a.client.Kind == storage.ClientRegistered {
		b.log.Warn("a provider has forgotten the OAuth client that was registered", "organization", s.OrganizationID, "server", s.Slug, "error", err.Error())
		return clientForgotten
	}
	b.failServer(ctx, s, err)
	return clientFailed
}

// registered reports whether c is a client that we registered and that, as far as we know, the provider still knows.
func registered(c storage.OAuthClient) bool { return c.Kind == storage.ClientRegistered && !c.Refused }

// stillKnown reports whether the provider knows a client that we registered. It is called before a user is sent there.
// The user would otherwise see an error page that leads nowhere, and nobody would tell us. Without the client,
// everybody's connections are lost, so one refusal is not enough. The provider is asked twice, each time with the
// secret in both places.
func (b *Broker) stillKnown(ctx context.Context, s storage.Server, c storage.OAuthClient) bool {
	if c.Kind != storage.ClientRegistered || b.proofs.recent(serverKeyOf(s), c.ClientID, b.now()) {
		return true
	}
	a, err := b.asking(s, c)
	if err != nil {
		return true
	}
	for range 2 {
		_, err = a.eitherMethod(func() (oauth.Tokens, error) {
			return oauth.Tokens{}, b.oauth.TryClient(ctx, c.Endpoints.TokenEndpoint, a.auth, b.app.RedirectURI)
		})
		if !oauth.ClientRefused(err) {
			if oauth.ClassOf(err) != oauth.Later {
				b.proofs.note(serverKeyOf(s), c.ClientID, b.now())
			}
			return true
		}
	}
	b.log.Warn("a provider has forgotten the OAuth client that was registered", "organization", s.OrganizationID, "server", s.Slug, "error", err.Error())
	return false
}

// doubt makes the next connect check the client and the discovered data again.
func (b *Broker) doubt(s storage.Server) {
	b.sightings.forget(serverKeyOf(s))
	b.proofs.forget(serverKeyOf(s))
}

// ForgetClient forgets the client that was registered for a server, so that the next connect registers another. Tokens
// issued to the old client are used until they expire. It returns storage.ErrNotFound when no client was registered.
func (b *Broker) ForgetClient(ctx context.Context, s storage.Server) error {
	c, err := b.store.OAuthClient(ctx, s.OrganizationID, s.ID)
	if err != nil {
		return fmt.Errorf("reading OAuth client: %w", err)
	}
	if !registered(c) {
		return fmt.Errorf("reading OAuth client: %w", storage.ErrNotFound)
	}
	c.Refused = true // the discovered data stays: connections are bound to it
	if err := b.store.PutOAuthClient(ctx, c, c.ClientID); err != nil {
		return fmt.Errorf("forgetting OAuth client: %w", err)
	}
	b.doubt(s)
	if s.Status != storage.ServerError {
		return nil
	}
	if err := b.activate(ctx, s); !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	return nil // the server is gone too
}
