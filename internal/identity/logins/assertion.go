package logins

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/storage"
)

// Assertion is an identity provider's word that a client may act for a user, and whoever has that word was verified.
type Assertion struct {
	OrganizationID, UserID string
	// Issuer is the identity provider, and Audience the gateway's client there.
	Issuer, Audience string
	// Subject is the user's `sub` there.
	Subject string
	Client  *authserver.Client
	// Resource is the audience of the access token.
	Resource string
	Facts    storage.LoginFacts
	// ID is the assertion's own.
	ID string
	// IssuedAt and GoodUntil bound the time in which it is taken.
	IssuedAt, GoodUntil time.Time
	// SeenAt is the time at which it came. A revocation of the user after it counts, whatever the issuer's clock says.
	SeenAt time.Time
}

// keptLonger is the time for which the id of an assertion is remembered after its end: the clock that it was compared with
// is not the one that nodes have in common.
const keptLonger = 5 * time.Minute

// Assert logs a user in by an identity provider's assertion (RFC 7523 section 2.1). There is no refresh token: the client
// gets a new assertion while the identity provider allows it. A login of the same kind goes on, so that a client which comes
// again and again has one login for each resource. The client must be proven. record is told of the login before its token
// is made. Errors are *authserver.Error, record's, or the store's.
func (s *Server) Assert(ctx context.Context, a Assertion, record func(context.Context, storage.Login) error) (*Tokens, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("making an id: %w", err)
	}
	now := s.Now().UTC()
	err = s.Store.UseAssertion(ctx, a.Issuer, a.ID, now, a.GoodUntil.Add(keptLonger))
	switch {
	case errors.Is(err, storage.ErrReplayed):
		return nil, authserver.Invalid("invalid_grant", "the assertion was used before: each is good once")
	case err != nil:
		return nil, fmt.Errorf("using an assertion: %w", err)
	}
	issued, ends := a.IssuedAt, now.Add(min(AccessLifetime, s.Lifetime, s.Idle))
	if a.SeenAt.Before(issued) {
		issued = a.SeenAt
	}
	l, err := s.Store.AssertLogin(ctx, storage.Login{
		ID: id.String(), OrganizationID: a.OrganizationID, UserID: a.UserID, ClientID: a.Client.ID, ClientName: a.Client.Name, Resource: a.Resource,
		Issuer: a.Issuer, Audience: a.Audience, Subject: a.Subject, CreatedAt: now, UsedAt: now, ExpiresAt: ends, EndsAt: ends, Facts: a.Facts, FactsAt: now,
	}, issued)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, authserver.Invalid("invalid_grant", NotLetIn)
	case err != nil:
		return nil, fmt.Errorf("storing a login: %w", err)
	}
	if err := s.Store.ClientLoggedIn(ctx, a.Client.ID, now); err != nil {
		return nil, fmt.Errorf("noting a client's login: %w", err)
	}
	if err := record(ctx, l); err != nil {
		return nil, err
	}
	return s.issue(ctx, l, false)
}

// NotLetIn is the text of all refusals of an assertion that are about its user: others would tell who is known here.
const NotLetIn = "the gateway does not let the assertion's user in"
