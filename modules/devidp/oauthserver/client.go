package oauthserver

import (
	"context"

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

// client finds a client: one that came with the server, or one that registered.
func (s *Server) client(_ context.Context, id string) (*authserver.Client, error) {
	if c, ok := s.static[id]; ok {
		return c, nil
	}
	if c, ok := s.state.View().Clients[id]; ok {
		return c, nil
	}
	return nil, authserver.ErrNoClient
}
