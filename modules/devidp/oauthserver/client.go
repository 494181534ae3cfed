package oauthserver

import (
	"context"

	"github.com/durward-gateway/durward/internal/identity/authserver"
)

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
