package exchange

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"strings"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// ask gets a token.
func (e *Exchanger) ask(ctx context.Context, a *Asking) (oauth.Tokens, error) {
	entry := &a.Server.Entry
	switch kind := connection.KindOf(entry); {
	case kind == storage.ProviderClientCredentials:
		return e.asClient(ctx, a)
	case kind == storage.ProviderWorkloadIdentity:
		return e.asWorkload(ctx, a)
	case entry.Asserts():
		return e.byAssertion(ctx, a)
	}
	return e.byExchange(ctx, a)
}

// byExchange exchanges the proof of a user for a token.
func (e *Exchanger) byExchange(ctx context.Context, a *Asking) (oauth.Tokens, error) {
	entry := &a.Server.Entry
	subjectType, err := a.subjectType()
	if err != nil {
		return oauth.Tokens{}, err
	}
	where, roots, err := e.provider(ctx, a)
	if err != nil {
		return oauth.Tokens{}, err
	}
	client, err := e.client(ctx, a.Server, where)
	if err != nil {
		return oauth.Tokens{}, err
	}
	client.Roots = roots
	proof, err := a.Subject.Proof(ctx)
	if err != nil {
		return oauth.Tokens{}, err
	}
	return e.inEitherPlace(entry.Options.AuthMethod, where.Endpoints.TokenEndpoint, client, func(client oauth.ClientAuth) (oauth.Tokens, error) {
		return e.OAuth.ExchangeToken(ctx, oauth.TokenExchangeRequest{
			Endpoint: where.Endpoints.TokenEndpoint, Client: client, Subject: proof, SubjectType: subjectType,
			RequestedType: cmp.Or(entry.Options.RequestedTokenType, AccessToken), Audience: entry.Options.Audience, Resource: entry.OAuth.Resource,
			Scope: strings.Join(entry.Scopes, " "),
		})
	})
}

// provider returns the token endpoint to which the proof may go. That is one of the identity provider that gave it: a proof
// opens the gateway, and whoever gets it can act as its user. Only the operator's configuration may name another, and not
// that of another identity provider, whose users are others.
func (e *Exchanger) provider(ctx context.Context, a *Asking) (oauth.Discovery, *x509.CertPool, error) {
	entry := &a.Server.Entry
	operators := entry.Source != storage.SourceCustom
	issuer := cmp.Or(entry.OAuth.Issuer, a.Subject.Issuer)
	switch {
	case issuer != a.Subject.Issuer && (!operators || e.Known(issuer)):
		return oauth.Discovery{}, nil, refused("this server takes users of another identity provider than the one that you log in at")
	case entry.OAuth.TokenEndpoint == "":
		found, err := e.metadata(ctx, issuer)
		return found, nil, err
	case !operators:
		return oauth.Discovery{}, nil, refused("its directory entry names a token endpoint, which only the gateway's configuration may")
	}
	// The certificate authorities of an entry are for what the entry names. An administrator's could not be trusted with the
	// identity provider: they could stand between it and the gateway.
	roots, err := directory.TrustedRoots(entry.Options.TrustedCA)
	return oauth.Discovery{Endpoints: entry.OAuth}, roots, err
}

// metadata returns the endpoints of an identity provider.
func (e *Exchanger) metadata(ctx context.Context, issuer string) (oauth.Discovery, error) {
	now := e.Now()
	if known, ok := e.Memory.providers.Get(issuer, now); ok {
		return known, nil
	}
	found, err := e.OAuth.FetchProvider(ctx, issuer)
	if err != nil {
		return oauth.Discovery{}, err
	}
	e.Memory.providers.Set(issuer, found, now.Add(metadataLifetime), now)
	return found, nil
}

// client returns the OAuth client that an administrator gave the server.
func (e *Exchanger) client(ctx context.Context, s *storage.Server, at oauth.Discovery) (oauth.ClientAuth, error) {
	if s.ClientID == "" {
		return oauth.ClientAuth{}, refused("it has no OAuth client at the identity provider. An administrator must give it one")
	}
	// An issuer that an entry names beside an endpoint need not be the endpoint's.
	client := oauth.ClientAuth{ID: s.ClientID, Audience: cmp.Or(s.Entry.OAuth.TokenEndpoint, at.Endpoints.Issuer)}
	method := s.Entry.Options.AuthMethod
	if s.SealedClientSecret != nil && method != oauth.AuthNone {
		plain, err := e.Keyring.Open(s.SealedClientSecret, connection.ClientSecretAD(s.OrganizationID, s.ID))
		if err != nil {
			return oauth.ClientAuth{}, fmt.Errorf("opening client secret: %w", err)
		}
		defer clear(plain)
		if err := client.SetCredential(seal.NewSecret(string(plain))); err != nil {
			return oauth.ClientAuth{}, err
		}
	}
	made, err := e.OAuth.ObtainClient(ctx, at, oauth.Application{ConfiguredID: s.ClientID, ConfiguredSecret: client.Secret, ConfiguredKey: client.Key})
	if err != nil {
		return oauth.ClientAuth{}, err
	}
	if client.Method = made.AuthMethod; method != "" && !client.Secret.Empty() {
		client.Method = method
	}
	return client, nil
}

// inEitherPlace sends a request, see oauth.InEitherPlace, unless the entry says by which method the client proves itself. The
// place that works is remembered.
func (e *Exchanger) inEitherPlace(method, endpoint string, client oauth.ClientAuth, send func(oauth.ClientAuth) (oauth.Tokens, error)) (oauth.Tokens, error) {
	if method != "" || client.Secret.Empty() {
		return send(client)
	}
	at, now := clientAt{endpoint, client.ID}, e.Now()
	if method, ok := e.Memory.places.Get(at, now); ok {
		client.Method = method
	}
	return oauth.InEitherPlace(client, send, func(method string) { e.Memory.places.Set(at, method, now.Add(placeLifetime), now) })
}
