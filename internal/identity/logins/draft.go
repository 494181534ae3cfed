package logins

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// DraftLifetime is the time that a user has for agreeing to a client after the identity provider has logged them in.
const DraftLifetime = 10 * time.Minute

// ErrNoDraft reports that a draft has ended, or was agreed to before.
var ErrNoDraft = errors.New("the login is not waiting for its user any more")

// Draft holds the proof of an identity provider about a user who has not yet agreed to a client.
type Draft struct {
	OrganizationID, UserID string
	// Issuer is the identity provider at which the user logged in, and Audience the gateway's client there.
	Issuer, Audience string
	// Subject is the user's `sub` there.
	Subject string
	Facts   storage.LoginFacts
	// Refresh is the identity provider's refresh token; empty when it gave none.
	Refresh seal.Secret
	// IDToken is the identity provider's ID token, and IDTokenExpiresAt its end.
	IDToken          seal.Secret
	IDTokenExpiresAt time.Time
}

// Agreement is a user's consent to a client.
type Agreement struct {
	OrganizationID, UserID string
	// Draft is the id of the user's draft.
	Draft  string
	Client *authserver.Client
	// Resource is the audience of the access tokens.
	Resource string
	// RedirectURI and Challenge are those of the authorization request.
	RedirectURI, Challenge string
}

// Draft stores a login that its user has not agreed to yet, and returns its id. Each authorization has a login at the
// identity provider of its own: two logins with one refresh token would use up each other's.
func (s *Server) Draft(ctx context.Context, d Draft) (id string, err error) {
	made, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("making an id: %w", err)
	}
	now := s.Now().UTC()
	ends := now.Add(DraftLifetime)
	l := storage.Login{
		ID: made.String(), OrganizationID: d.OrganizationID, UserID: d.UserID, Issuer: d.Issuer, Audience: d.Audience, Subject: d.Subject,
		CreatedAt: now, UsedAt: now, ExpiresAt: ends, EndsAt: ends, Facts: d.Facts, FactsAt: now,
	}
	if l.SealedRefresh, err = s.sealRefresh(&l, d.Refresh); err != nil {
		return "", err
	}
	if err := s.setIDToken(&l, d.IDToken, d.IDTokenExpiresAt); err != nil {
		return "", err
	}
	if err := s.Store.CreateLogin(ctx, l); err != nil {
		return "", fmt.Errorf("storing a draft: %w", err)
	}
	return l.ID, nil
}

// Agree completes a draft, and returns the code of the login that it becomes. Errors are ErrNoDraft, or the store's.
func (s *Server) Agree(ctx context.Context, a Agreement) (seal.Secret, error) {
	now := s.Now().UTC()
	err := s.Store.AgreeLogin(ctx, storage.Login{
		ID: a.Draft, OrganizationID: a.OrganizationID, UserID: a.UserID, ClientID: a.Client.ID, ClientName: a.Client.Name, Resource: a.Resource,
		RedirectURI: a.RedirectURI, Challenge: a.Challenge, UsedAt: now, ExpiresAt: now.Add(CodeLifetime), EndsAt: now.Add(s.Lifetime),
	})
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return seal.Secret{}, ErrNoDraft
	case err != nil:
		return seal.Secret{}, fmt.Errorf("storing a login: %w", err)
	}
	if err := s.Store.ClientLoggedIn(ctx, a.Client.ID, now); err != nil {
		return seal.Secret{}, fmt.Errorf("noting a client's login: %w", err)
	}
	return seal.NewSecret(s.credentials.Code(authserver.Handle{Organization: a.OrganizationID, Login: a.Draft})), nil
}

func (s *Server) sealRefresh(l *storage.Login, refresh seal.Secret) ([]byte, error) {
	if refresh.Empty() {
		return nil, nil
	}
	sealed, err := s.Vault.Seal([]byte(refresh.Reveal()), seal.LoginPlace(l.OrganizationID, l.UserID, l.ID))
	if err != nil {
		return nil, fmt.Errorf("sealing a refresh token: %w", err)
	}
	return sealed, nil
}
