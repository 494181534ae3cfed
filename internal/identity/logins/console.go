package logins

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// ConsoleLifetime is the lifetime of an access token of the gateway's own console.
const ConsoleLifetime = 5 * time.Minute

// noChallenge is in the place of a PKCE challenge: there is no code, and no verifier has this digest.
const noChallenge = "none"

// ErrNoLogin reports that a browser's login with the console has ended.
var ErrNoLogin = errors.New("the login with the console has ended")

// Console describes a browser's login with the gateway's own console.
type Console struct {
	// ClientID and ClientName name the console among the clients of a user.
	ClientID, ClientName string
	// Resource is the audience of its tokens.
	Resource string
	// Lifetime is the time after which the login ends.
	Lifetime time.Duration
}

// LogInConsole stores the login of a user whom the identity provider has just proven, and returns its id. Nobody has to
// agree: the console is the gateway's own, and gets neither a code nor a refresh token.
func (s *Server) LogInConsole(ctx context.Context, d Draft, c Console) (id string, err error) {
	if id, err = s.Draft(ctx, d); err != nil {
		return "", err
	}
	now := s.Now().UTC()
	ends := now.Add(c.Lifetime)
	err = s.Store.AgreeLogin(ctx, storage.Login{
		ID: id, OrganizationID: d.OrganizationID, UserID: d.UserID, ClientID: c.ClientID, ClientName: c.ClientName, Resource: c.Resource,
		Challenge: noChallenge, UsedAt: now, ExpiresAt: ends, EndsAt: ends,
	})
	if err != nil {
		return "", fmt.Errorf("storing a login with the console: %w", err)
	}
	if _, err = s.Store.RedeemLogin(ctx, d.OrganizationID, id, now, ends); err != nil {
		return "", fmt.Errorf("beginning a login with the console: %w", err)
	}
	return id, nil
}

// ConsoleToken makes an access token of a user's login with the console. proven is the time at which the identity provider
// asked the user who they are; zero: unknown. Errors are ErrNoLogin, or the store's.
func (s *Server) ConsoleToken(ctx context.Context, organization, user, id, resource string, proven time.Time) (*Tokens, error) {
	l, err := s.Store.Login(ctx, organization, id, s.Now())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, ErrNoLogin
	case err != nil:
		return nil, fmt.Errorf("reading a login with the console: %w", err)
	case l.UserID != user || l.Resource != resource:
		return nil, ErrNoLogin
	}
	return s.access(ctx, l, ConsoleLifetime, proven)
}
