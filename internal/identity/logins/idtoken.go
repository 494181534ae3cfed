package logins

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// These are the errors of IDToken beside ErrEnded and the store's.
var (
	// ErrNoIDToken reports that a login has no ID token that is still good, and that its identity provider gives no other:
	// only a new login brings one.
	ErrNoIDToken = errors.New("the login has no ID token that is still good")
	// ErrAway reports that the identity provider cannot be asked for another ID token at the moment.
	ErrAway = errors.New("the identity provider cannot be asked about the login")
)

const (
	// idTokenRest is the least time for which an ID token that is handed out is good: it has to reach its reader.
	idTokenRest = 10 * time.Second
	// othersLooks is the number of looks for the result of somebody else's renewal, with a pause of othersPause before each.
	othersLooks = 20
	othersPause = 250 * time.Millisecond
)

// IDToken returns the ID token of a login. One that ends is renewed at the identity provider before, once for all nodes:
// the provider's refresh token may be good only once. Errors are ErrNoIDToken, ErrEnded, ErrAway and the store's.
func (s *Server) IDToken(ctx context.Context, organization, id string) (seal.Secret, error) {
	l, err := s.Store.Login(ctx, organization, id, s.Now())
	for looks := 0; ; looks++ {
		switch {
		case errors.Is(err, storage.ErrNotFound):
			return seal.Secret{}, ErrEnded
		case err != nil:
			return seal.Secret{}, fmt.Errorf("reading a login: %w", err)
		case l.SealedIDToken != nil && s.Now().Add(idTokenRest).Before(l.IDTokenExpiresAt):
			return s.openIDToken(&l)
		case l.SealedRefresh == nil || s.Renew == nil:
			return seal.Secret{}, ErrNoIDToken
		}
		now, renews := s.Now(), false
		if l, renews, err = s.Store.BeginRenewal(ctx, organization, id, now, now.Add(idTokenRest)); err != nil {
			continue
		}
		if renews {
			return s.renewIDToken(ctx, l)
		}
		if looks == othersLooks {
			return seal.Secret{}, ErrAway
		}
		// Somebody else asks the provider now, or has just got another ID token from it.
		pause := time.NewTimer(othersPause)
		select {
		case <-pause.C:
			l, err = s.Store.Login(ctx, organization, id, s.Now())
		case <-ctx.Done():
			pause.Stop()
			return seal.Secret{}, context.Cause(ctx)
		}
	}
}

// renewIDToken renews a login of which this is the caller's work (Store.BeginRenewal).
func (s *Server) renewIDToken(ctx context.Context, l storage.Login) (seal.Secret, error) {
	if l.SealedRefresh == nil {
		return seal.Secret{}, ErrNoIDToken
	}
	renewed, err := s.renew(ctx, l)
	var ended *authserver.Error
	switch {
	case errors.As(err, &ended):
		return seal.Secret{}, ErrEnded
	case err != nil:
		return seal.Secret{}, err
	case renewed.SealedIDToken != nil && s.Now().Before(renewed.IDTokenExpiresAt):
		return s.openIDToken(&renewed)
	case !renewed.FactsAt.After(l.FactsAt): // renew has logged why
		return seal.Secret{}, ErrAway
	}
	return seal.Secret{}, ErrNoIDToken
}

// setIDToken seals an ID token into a login; an empty one changes nothing.
func (s *Server) setIDToken(l *storage.Login, idToken seal.Secret, expires time.Time) error {
	if idToken.Empty() {
		return nil
	}
	sealed, err := s.Vault.Seal([]byte(idToken.Reveal()), seal.IDTokenPlace(l.OrganizationID, l.UserID, l.ID))
	if err != nil {
		return fmt.Errorf("sealing an ID token: %w", err)
	}
	l.SealedIDToken, l.IDTokenExpiresAt = sealed, expires.UTC()
	return nil
}

func (s *Server) openIDToken(l *storage.Login) (seal.Secret, error) {
	plain, err := s.Vault.Open(l.SealedIDToken, seal.IDTokenPlace(l.OrganizationID, l.UserID, l.ID))
	if err != nil {
		return seal.Secret{}, fmt.Errorf("opening an ID token: %w", err)
	}
	defer clear(plain)
	return seal.NewSecret(string(plain)), nil
}
