package oauthserver

import (
	"context"
	"strings"

	"github.com/durward-gateway/durward/internal/identity/authserver"
)

// PublicClient returns a client without a secret that may redirect to any loopback address.
func PublicClient(id, name string) authserver.Client {
	return authserver.Client{ID: id, Name: name, AuthMethod: authserver.AuthNone, AnyLoopback: true, GrantTypes: []string{authserver.GrantCode, authserver.GrantRefresh}}
}

// ConfidentialClient returns a client with a secret that also acts for itself (client credentials).
func ConfidentialClient(id, name, clientSecret string) authserver.Client {
	return authserver.Client{
		ID: id, Name: name, AuthMethod: authserver.AuthBasic, SecretHash: authserver.HashSecret(clientSecret), AnyLoopback: true,
		GrantTypes: []string{authserver.GrantMachine, authserver.GrantCode, authserver.GrantRefresh},
	}
}

// client finds a client: one that came with the server, one that registered, or one whose id is the address of its
// metadata document.
func (s *Server) client(ctx context.Context, id string) (*authserver.Client, error) {
	if c, ok := s.static[id]; ok {
		return c, nil
	}
	if c, ok := s.state.View().Clients[id]; ok {
		return c, nil
	}
	if s.docs != nil && strings.Contains(id, "://") {
		if c, err := s.docs.Client(ctx, id); err == nil {
			return c, nil
		}
	}
	return nil, authserver.ErrNoClient
}
