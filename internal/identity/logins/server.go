package logins

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// Store keeps the state, and knows the agents of the directory.
type Store interface {
	storage.Logins
	storage.Clients
	CredentialsOfClient(ctx context.Context, agentID string) (storage.Agent, []storage.AgentCredential, error)
}

// ErrEnded reports that the identity provider refuses to go on with a user: the account is gone, or the grant.
var ErrEnded = errors.New("the identity provider ended the login")

// Renewal is an identity provider's answer to the refresh of a login.
type Renewal struct {
	Facts storage.LoginFacts
	// Refresh is the next refresh token; empty: the former one stays good. It counts also beside an error.
	Refresh seal.Secret
	// IDToken is the next ID token, and IDTokenExpiresAt its end; empty: the provider gave none, and the former one is kept.
	IDToken          seal.Secret
	IDTokenExpiresAt time.Time
}

// Options holds the dependencies of a Server. All are required, except Documents, Clients, Renew, Stands, Replayed, the lifetimes and Log.
type Options struct {
	Store Store
	Vault Vault
	MACs  authserver.MACs // for codes and refresh tokens alone
	Keys  *SigningKeys
	// Issuer is the gateway's public URL, and TokenEndpoint the address of its token endpoint.
	Issuer, TokenEndpoint string
	// Documents finds clients by the addresses of their metadata documents; nil: none are fetched.
	Documents *authserver.Documents
	// Clients holds the clients of the configuration.
	Clients []authserver.Client
	// Renew asks the identity provider at which a user logged in for new facts. Its error is ErrEnded when the provider
	// refuses; with any other one the provider could not be asked. nil: no provider is ever asked.
	Renew func(ctx context.Context, l storage.Login, refresh seal.Secret) (Renewal, error)
	// Stands reports whether users still log in at an identity provider with that client of the gateway; nil: always.
	Stands func(issuer, audience string) bool
	// Replayed is told of a login that was ended because its code or refresh token came twice; nil: nobody is told.
	Replayed func(ctx context.Context, l *storage.Login, what string)
	// Lifetime is the time after which a login ends, and Idle that after which it ends when nobody uses it.
	Lifetime, Idle time.Duration
	Log            *slog.Logger // nil: none
	Now            func() time.Time
}

// Server makes logins and exchanges their codes and tokens. It is safe for concurrent use.
type Server struct {
	Options

	credentials *authserver.Credentials
	configured  map[string]*authserver.Client
}

// New makes a server.
func New(o Options) *Server {
	if o.Lifetime <= 0 {
		o.Lifetime = DefaultLifetime
	}
	if o.Idle <= 0 {
		o.Idle = DefaultIdle
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{Options: o, credentials: authserver.NewCredentials(o.MACs), configured: make(map[string]*authserver.Client)}
	for _, c := range o.Clients {
		s.configured[c.ID] = &c
	}
	return s
}

// Client finds a client: one of the configuration, one that registered, or one whose id is the address of its metadata
// document. Its error is authserver.ErrNoClient when there is none, authserver.ErrDocument, or the store's.
func (s *Server) Client(ctx context.Context, id string) (*authserver.Client, error) {
	if c, ok := s.configured[id]; ok {
		return c, nil
	}
	if strings.Contains(id, "://") {
		if s.Documents == nil {
			return nil, authserver.ErrNoClient
		}
		return s.Documents.Client(ctx, id)
	}
	found, err := s.Store.RegisteredClient(ctx, id)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, authserver.ErrNoClient
	case err != nil:
		return nil, fmt.Errorf("reading a client: %w", err)
	case found.LoggedInAt.IsZero() && !s.Now().Before(found.CreatedAt.Add(storage.UnusedClientLifetime)):
		return nil, authserver.ErrNoClient // the store forgets it when the next one registers, which can be much later
	}
	return &authserver.Client{
		ID: found.ID, Name: found.Name, SecretHash: string(found.SecretHash), AuthMethod: found.AuthMethod, RedirectURIs: found.RedirectURIs,
		GrantTypes: found.GrantTypes, Issued: found.CreatedAt,
	}, nil
}

// Register stores a client that registers itself, and sets its id and time. It returns the client's secret; empty for a
// public client.
func (s *Server) Register(ctx context.Context, asked *authserver.Registration) (seal.Secret, error) {
	c := &asked.Client
	c.ID, c.Issued = authserver.Random(), s.Now().UTC().Truncate(time.Second)
	var secret seal.Secret
	if c.AuthMethod != authserver.AuthNone {
		secret = seal.NewSecret(authserver.Random())
		c.SecretHash = authserver.HashSecret(secret.Reveal())
	}
	stored := storage.RegisteredClient{ID: c.ID, Name: c.Name, AuthMethod: c.AuthMethod, RedirectURIs: c.RedirectURIs, GrantTypes: c.GrantTypes, CreatedAt: c.Issued}
	if c.SecretHash != "" {
		stored.SecretHash = []byte(c.SecretHash)
	}
	if err := s.Store.RegisterClient(ctx, stored); err != nil {
		return seal.Secret{}, fmt.Errorf("storing a client: %w", err)
	}
	return secret, nil
}
