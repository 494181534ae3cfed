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
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// ask exchanges the proof of a user for a token.
func (e *Exchanger) ask(ctx context.Context, a *Asking) (oauth.Tokens, error) {
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
	return e.inEitherPlace(entry, where.Endpoints.TokenEndpoint, client, func(client oauth.ClientAuth) (oauth.Tokens, error) {
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
	var secret seal.Secret
	method := s.Entry.Options.AuthMethod
	if s.SealedClientSecret != nil && method != oauth.AuthNone {
		plain, err := e.Keyring.Open(s.SealedClientSecret, connection.ClientSecretAD(s.OrganizationID, s.ID))
		if err != nil {
			return oauth.ClientAuth{}, fmt.Errorf("opening client secret: %w", err)
		}
		defer clear(plain)
		secret = seal.NewSecret(string(plain))
	}
	made, err := e.OAuth.ObtainClient(ctx, at, oauth.Application{ConfiguredID: s.ClientID, ConfiguredSecret: secret})
	if err != nil {
		return oauth.ClientAuth{}, err
	}
	if method == "" || secret.Empty() {
		method = made.AuthMethod
	}
	return oauth.ClientAuth{ID: s.ClientID, Secret: secret, Method: method}, nil
}

// inEitherPlace sends a request, see oauth.InEitherPlace, unless the entry says where the secret goes. The place that works is
// remembered.
func (e *Exchanger) inEitherPlace(entry *storage.DirectoryEntry, endpoint string, client oauth.ClientAuth, send func(oauth.ClientAuth) (oauth.Tokens, error)) (oauth.Tokens, error) {
	if entry.Options.AuthMethod != "" || client.Secret.Empty() {
		return send(client)
	}
	at, now := clientAt{endpoint, client.ID}, e.Now()
	if method, ok := e.Memory.places.Get(at, now); ok {
		client.Method = method
	}
	return oauth.InEitherPlace(client, send, func(method string) { e.Memory.places.Set(at, method, now.Add(placeLifetime), now) })
}

// words says why an identity provider gave no token, and who can solve it. Its own text is not shown.
func words(err error) string {
	const administrator = "; an administrator must look at this server's directory entry, and the gateway's log says why"
	if oauth.ClientRefused(err) {
		return "the identity provider does not accept the server's OAuth client; an administrator must look at it, and the gateway's log says why"
	}
	switch oauth.Code(err) {
	case "":
		return "the identity provider's answer cannot be used; the gateway's log says why"
	case oauth.CodeInvalidTarget:
		return "the identity provider gives no tokens for this server" + administrator
	case "invalid_scope":
		return "the identity provider does not give the scopes of this server" + administrator
	case "unsupported_grant_type":
		return "the identity provider does not exchange tokens" + administrator
	}
	return "the identity provider refuses you a token for this server. Ask whoever gives access to it; the gateway's log says why"
}

func (e *Exchanger) logFailure(a *Asking, err error) {
	e.Log.Warn("exchanging a token", "organization", a.OrganizationID, "user", a.UserID, "server", a.Server.Slug, "issuer", a.Subject.Issuer,
		"error", err.Error(), "description", oauth.Description(err), "advice", netguard.Advice(err))
}
