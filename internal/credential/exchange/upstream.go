package exchange

import (
	"context"
	"fmt"
	"strings"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// resourceOf returns the resource for requests to an upstream's authorization server.
func resourceOf(s *storage.Server, at *storage.OAuthClient) string {
	if s.Entry.Options.ResourceOff {
		return ""
	}
	return at.Endpoints.Resource
}

// asClient gets a token for the server's own OAuth client (RFC 6749 section 4.4).
func (e *Exchanger) asClient(ctx context.Context, a *Asking) (oauth.Tokens, error) {
	entry := &a.Server.Entry
	at, client, err := e.Upstreams.OwnClient(ctx, a.Server)
	if err != nil {
		return oauth.Tokens{}, err
	}
	endpoint := at.Endpoints.TokenEndpoint
	tokens, err := e.inEitherPlace(entry.Options.AuthMethod, endpoint, client, func(client oauth.ClientAuth) (oauth.Tokens, error) {
		return e.OAuth.ClientCredentials(ctx, oauth.ClientCredentialsRequest{
			Endpoint: endpoint, Client: client, Audience: entry.Options.Audience, Resource: resourceOf(a.Server, &at), Scope: strings.Join(at.Scopes, " "),
		})
	})
	return tokens, by(atServer, err)
}

// asWorkload gets a token for what the platform says about the gateway (RFC 7523 section 2.1). A refusal is final: a second
// request with the same statement gets the same answer.
func (e *Exchanger) asWorkload(ctx context.Context, a *Asking) (oauth.Tokens, error) {
	at, client, err := e.Upstreams.OwnClient(ctx, a.Server)
	if err != nil {
		return oauth.Tokens{}, err
	}
	statement, err := e.statement(a.Server, &at)
	if err != nil {
		return oauth.Tokens{}, err
	}
	tokens, err := e.redeem(ctx, a.Server, &at, client, statement)
	return tokens, by(atServer, err)
}

// redeem presents an assertion at an upstream's authorization server.
func (e *Exchanger) redeem(ctx context.Context, s *storage.Server, at *storage.OAuthClient, client oauth.ClientAuth, assertion seal.Secret) (oauth.Tokens, error) {
	endpoint := at.Endpoints.TokenEndpoint
	return e.inEitherPlace(s.Entry.Options.AuthMethod, endpoint, client, func(client oauth.ClientAuth) (oauth.Tokens, error) {
		return e.OAuth.RedeemAssertion(ctx, oauth.AssertionRequest{
			Endpoint: endpoint, Client: client, Assertion: assertion, Resource: resourceOf(s, at), Scope: strings.Join(at.Scopes, " "),
		})
	})
}

// statement reads the platform's statement about the gateway. It goes only to those for whom the platform made it: an upstream
// that names another authorization server must not get what opens this one.
func (e *Exchanger) statement(s *storage.Server, at *storage.OAuthClient) (seal.Secret, error) {
	options := &s.Entry.Options
	if s.Entry.Source == storage.SourceCustom {
		return seal.Secret{}, refused("only the gateway's configuration may use its own identity")
	}
	raw, err := e.Statement(options.AssertionFile)
	if err != nil {
		e.Log.Error("reading the platform's statement about the gateway", "server", s.Slug, "file", options.AssertionFile, "error", err.Error())
		return seal.Secret{}, refused("the platform's statement about the gateway cannot be read. Whoever runs the gateway must look at it")
	}
	said, err := oauth.ReadAssertion(raw)
	if err != nil {
		return seal.Secret{}, fmt.Errorf("%w: %w", refused("the platform's statement about the gateway cannot be used. Whoever runs the gateway must look at it"), err)
	}
	switch {
	case !e.Now().Before(said.ExpiresAt):
		return seal.Secret{}, refused("the platform's statement about the gateway has expired. Whoever runs the gateway must look at it")
	case !isFor(&said, options.Audience, &at.Endpoints):
		return seal.Secret{}, refused("the platform's statement about the gateway is for somebody else than the server's authorization server. Whoever runs the gateway must look at it")
	}
	return raw, nil
}

// isFor reports whether a statement is for one party alone: the one that an entry names, else an authorization server, by its
// issuer, with or without a final slash, or its token endpoint (RFC 7523 section 3).
func isFor(said *oauth.Assertion, named string, at *storage.OAuthEndpoints) bool {
	if len(said.Audience) != 1 {
		return false
	}
	audience := said.Audience[0]
	if named != "" {
		return audience == named
	}
	issuer := strings.TrimSuffix(at.Issuer, "/")
	return audience == at.TokenEndpoint || issuer != "" && strings.TrimSuffix(audience, "/") == issuer
}

// byAssertion has the identity provider vouch for the user at the upstream's authorization server, by an identity assertion
// (ID-JAG, draft-ietf-oauth-identity-assertion-authz-grant section 4). The proof of the user goes to the identity provider
// alone; the assertion, which says for whom it is, to that server alone.
func (e *Exchanger) byAssertion(ctx context.Context, a *Asking) (oauth.Tokens, error) {
	subjectType, err := a.subjectType()
	if err != nil {
		return oauth.Tokens{}, err
	}
	at, client, err := e.Upstreams.OwnClient(ctx, a.Server)
	if err != nil {
		return oauth.Tokens{}, err
	}
	// An upstream could name this gateway as its authorization server, and be given what logs its users in here.
	switch issuer := strings.TrimSuffix(at.Endpoints.Issuer, "/"); issuer {
	case "":
		return oauth.Tokens{}, refused("nobody knows the name of its authorization server. An administrator must give its directory entry an issuer")
	case strings.TrimSuffix(e.PublicURL, "/"):
		return oauth.Tokens{}, refused("it names this gateway as its authorization server. An administrator must look at its directory entry")
	}
	assertion, err := e.vouched(ctx, a, subjectType, &at)
	if err != nil {
		return oauth.Tokens{}, err
	}
	tokens, err := e.redeem(ctx, a.Server, &at, client, assertion)
	return tokens, by(atServer, err)
}

// vouched returns the identity provider's assertion about the user for the upstream's authorization server. The gateway asks
// as the client to which the provider gave the ID token.
func (e *Exchanger) vouched(ctx context.Context, a *Asking, subjectType string, at *storage.OAuthClient) (seal.Secret, error) {
	id, secret, ok := e.LoginClient(a.Subject.Issuer)
	if !ok {
		return seal.Secret{}, refused("the gateway has no client at the identity provider. Whoever runs it must give the identity a login_client")
	}
	provider, err := e.metadata(ctx, a.Subject.Issuer)
	if err != nil {
		return seal.Secret{}, by(atLogin, err)
	}
	made, err := e.OAuth.ObtainClient(ctx, provider, oauth.Application{ConfiguredID: id, ConfiguredSecret: secret})
	if err != nil {
		return seal.Secret{}, by(atLogin, err)
	}
	proof, err := a.Subject.Proof(ctx)
	if err != nil {
		return seal.Secret{}, err
	}
	endpoint := provider.Endpoints.TokenEndpoint
	got, err := e.inEitherPlace("", endpoint, oauth.ClientAuth{ID: id, Secret: secret, Method: made.AuthMethod}, func(client oauth.ClientAuth) (oauth.Tokens, error) {
		assertion, err := e.OAuth.ExchangeForAssertion(ctx, oauth.TokenExchangeRequest{
			Endpoint: endpoint, Client: client, Subject: proof, SubjectType: subjectType, Audience: at.Endpoints.Issuer,
			Resource: resourceOf(a.Server, at), Scope: strings.Join(at.Scopes, " "),
		})
		return oauth.Tokens{Access: assertion}, err
	})
	return got.Access, by(atLogin, err)
}
