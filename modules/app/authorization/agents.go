package authorization

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/identity/logins"
)

// Authenticate finds out which client makes a request to the token or revocation endpoint: an agent of the directory, or
// one of those of find. Guesses are bounded. Errors are *authserver.Error, or the store's.
func (s *Server) Authenticate(w http.ResponseWriter, r *http.Request, form url.Values, find func(context.Context, string) (*authserver.Client, error)) (*authserver.Client, error) {
	proof, err := authserver.ReadProof(w, r, form)
	if err != nil {
		return nil, err
	}
	client, wait, err := s.guesses.Try(&proof, r.RemoteAddr, func() (*authserver.Client, error) { return s.Prove(r.Context(), proof, find) })
	switch {
	case wait > 0:
		w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
		return nil, logins.TooManyGuesses()
	case err != nil:
		return nil, err
	}
	authserver.Proven(w)
	return client, nil
}

// Machine gives an agent without a person an access token for the resource that its request names: the gateway, or one of
// its MCP servers (RFC 8707).
func (s *Server) Machine(ctx context.Context, client *authserver.Client, form url.Values) (*logins.Tokens, error) {
	targets, err := authserver.Targets(form, s.Target)
	if err != nil {
		return nil, err
	}
	audience, _, ok := s.Resource(targets)
	if !ok {
		return nil, authserver.Invalid("invalid_target", "a token is for one resource")
	}
	return s.Server.Machine(ctx, client, form, audience)
}
