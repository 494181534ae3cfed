package authorization

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/logins"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/storage"
)

// TakesAssertions reports whether the identity assertions of any identity provider log users in.
func (s *Server) TakesAssertions() bool { return len(s.options.Browsers.Asserting()) > 0 }

// asserts implements authn.Logins.
func (s *Server) asserts(issuer string) bool {
	_, _, ok := s.options.Browsers.Assertions(issuer)
	return ok
}

// Assert answers a client that presents an identity assertion, an ID-JAG, with an access token
// (draft-ietf-oauth-identity-assertion-authz-grant-04 section 4.4). The client must be proven. Errors are
// *authserver.Error, with the cause for the log behind them, or the store's.
func (s *Server) Assert(ctx context.Context, client *authserver.Client, form url.Values) (*logins.Tokens, error) {
	// The assertion can be read by whoever carries it. Who proves nothing but a name is asked to let the user agree
	// (section 9.1).
	if client.Public() {
		return nil, authserver.Invalid("unauthorized_client", "a client without a secret sends its users to the authorization endpoint")
	}
	seenAt := s.options.Now()
	assertion, audience, err := s.verified(ctx, form.Get("assertion"))
	if err != nil {
		return nil, err
	}
	if assertion.Client != client.ID {
		return nil, authserver.Invalid("invalid_grant", "the assertion is for another client: its client_id is not that of this request")
	}
	resource, server, err := s.assertedResource(assertion, form)
	if err != nil {
		return nil, err
	}
	// API keys of the user keep the roles and groups of the last login: assertions leave them out more often than not.
	who, err := s.authenticator.Login(ctx, assertion.Claims, time.Time{})
	if err != nil {
		return nil, unlessStore(err)
	}
	if err := s.serves(ctx, who.OrganizationID, server); err != nil {
		return nil, err
	}
	return s.Server.Assert(ctx, logins.Assertion{
		OrganizationID: who.OrganizationID, UserID: who.UserID, Issuer: assertion.Issuer, Audience: audience, Subject: assertion.Subject, Client: client,
		Resource: resource, Facts: authn.AssertedFactsOf(who, assertion.Claims), ID: assertion.ID, IssuedAt: assertion.IssuedAt, GoodUntil: assertion.GoodUntil,
		SeenAt: seenAt,
	}, s.recordAsserted)
}

// verified verifies an assertion, and returns it with the gateway's client at its issuer.
func (s *Server) verified(ctx context.Context, raw string) (*token.Assertion, string, error) {
	if raw == "" {
		return nil, "", authserver.Invalid("invalid_request", "assertion is missing")
	}
	unverified, err := token.Parse(raw)
	if err != nil {
		return nil, "", refusedAssertion(err)
	}
	issuer, err := unverified.Issuer()
	if err != nil {
		return nil, "", refusedAssertion(err)
	}
	verifier, client, ok := s.options.Browsers.Assertions(string(issuer))
	if !ok {
		return nil, "", authserver.Invalid("invalid_grant", "assertions of this issuer are not taken here")
	}
	assertion, err := verifier.Verify(ctx, unverified)
	if err != nil {
		return nil, "", refusedAssertion(err)
	}
	if !readsTenant(s.options.Issuers.ByName()[assertion.Issuer].Rules().Paths, assertion.Claims) {
		return nil, "", authserver.Invalid("invalid_grant", "the assertion names a tenant, which the gateway does not read: it needs `claim org tenant`")
	}
	return assertion, client, nil
}

// readsTenant reports whether the tenant that claims name decides about the organization, if they name one. The subjects of an
// issuer for many tenants are unique within a tenant alone (section 6.3), and any tenant can name the gateway and its clients.
func readsTenant(paths caller.Paths, claims *token.Claims) bool {
	_, named := claims.Object.Get("tenant")
	return !named || slices.Contains(paths.Organization, "tenant") || slices.Contains(paths.OrganizationSlug, "tenant")
}

// refusedAssertion returns the answer to an assertion that could not be verified. The reason holds nothing of the assertion,
// and nothing about users: the client, which is proven, may know it.
func refusedAssertion(err error) error {
	var e *token.Error
	if !errors.As(err, &e) {
		return err
	}
	if errors.Is(err, token.ErrUnavailable) {
		return told(&authserver.Error{
			Code: "temporarily_unavailable", Description: "the keys of the assertion's issuer cannot be fetched now", Status: http.StatusServiceUnavailable,
		}, err)
	}
	return told(authserver.Invalid("invalid_grant", "the assertion is refused: "+e.Reason), err)
}

// told returns an answer with its cause behind it, for the log.
func told(answer *authserver.Error, cause error) error { return fmt.Errorf("%w: %w", answer, cause) }

// assertedResource returns the one resource of the access token, and the slug of its server; "" for the gateway as a whole. The
// assertion names it (section 4.4.1), or else the request does (RFC 8707 section 2.2). Where neither does, a token for the
// whole gateway would be more than anybody asked for.
func (s *Server) assertedResource(assertion *token.Assertion, form url.Values) (resource, server string, err error) {
	same := func(name string) func(string) bool {
		return func(other string) bool { return strings.TrimSuffix(name, "/") == strings.TrimSuffix(other, "/") }
	}
	asked, err := authserver.Targets(form, s.Target)
	if err != nil {
		return "", "", err
	}
	wanted := assertion.Resources
	if len(asked) > 0 {
		wanted = asked
	}
	if len(wanted) != 1 {
		return "", "", authserver.Invalid("invalid_target", "a token is for one resource, which the assertion or the request must name")
	}
	switch granted := assertion.Resources; {
	case !s.Target(wanted[0]):
		return "", "", authserver.Invalid("invalid_grant", "the assertion is for a resource that is not one of this gateway's")
	case granted != nil && !slices.ContainsFunc(granted, same(wanted[0])):
		return "", "", authserver.Invalid("invalid_target", "the assertion is for another resource than the request")
	}
	resource, server, _ = s.Resource(wanted)
	return resource, server, nil
}

// unlessStore returns the answer to an assertion whose user may not come in. An error of the store stays one.
func unlessStore(err error) error {
	for _, refusal := range []error{token.ErrInvalid, caller.ErrForbidden, storage.ErrForeignOrganization, authn.ErrMachine, storage.ErrConflict} {
		if errors.Is(err, refusal) {
			return told(authserver.Invalid("invalid_grant", logins.NotLetIn), err)
		}
	}
	return fmt.Errorf("finding the user of an assertion: %w", err)
}

// serves reports when there is no such server in an organization; "" is the gateway itself.
func (s *Server) serves(ctx context.Context, organization, server string) error {
	if server == "" {
		return nil
	}
	_, err := s.options.Store.ServerBySlug(ctx, organization, server)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return authserver.Invalid("invalid_target", "there is no such server")
	case err != nil:
		return fmt.Errorf("looking up a server for a client: %w", err)
	}
	return nil
}

// recordAsserted records a login that came of an assertion. No token is given that is not recorded.
func (s *Server) recordAsserted(ctx context.Context, l storage.Login) error {
	return s.options.Audit.Event(ctx, l.OrganizationID, storage.AuditEntry{
		Kind: storage.AuditLogin, Event: "client.login", UserID: l.UserID, Client: l.ClientID, Outcome: "ok",
		Detail: map[string]any{"login": l.ID, "resource": l.Resource, "by": "assertion", "issuer": l.Issuer},
	})
}
