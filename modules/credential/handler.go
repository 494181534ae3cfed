// Package credential is the handler durward_credential: it provides the caller's token for a call to an upstream, and
// serves the addresses to which a browser comes back from connecting an account.
package credential

import (
	"context"
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/arguments"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler gives calls on `/mcp/{name}` and `/sse/{name}` the caller's own credential, and serves the OAuth callback
// (`/api/oauth/callback`), its undo, and the gateway's client metadata document. It needs durward_auth before it, and
// durward_session before that where the callback's user must be logged in.
type Handler struct {
	app    *app.App
	logger *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.durward_credential", New: func() caddy.Module { return new(Handler) }}
}

// Provision finds the app.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	var err error
	h.app, err = app.Attach(ctx)
	return err
}

// ServeHTTP serves the public addresses of the OAuth client, and passes on all other requests with their credential.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	call, ok := app.RequireCall(w, r)
	if !ok {
		return nil
	}
	switch r.URL.Path {
	case paths.Callback:
		h.serveCallback(w, r, call)
	case paths.Held:
		h.serveHeld(w, r, call)
	case paths.Undo:
		h.serveUndo(w, r, call)
	case paths.ClientMetadata:
		h.serveClientMetadata(w, r, call)
	default:
		if call.Caller != nil && call.Server != nil {
			if !call.Admission().Charge(w, r) {
				return nil
			}
			defer call.Limits.Settle()
			call.Credentials = &source{call: call, request: r}
		}
		return next.ServeHTTP(w, r)
	}
	return nil
}

// source provides the credential of one call.
type source struct {
	call    *app.Call
	request *http.Request
}

// Credential implements app.CredentialSource. The server is read once more: a client can send its body slowly, and a
// server that was deleted meanwhile had no stream of this call to end yet.
func (s *source) Credential(ctx context.Context) (connection.Credential, error) {
	step := s.call.Trace.Credential()
	credential, err := s.credential(ctx)
	s.traced(step, credential, err)
	return credential, err
}

func (s *source) credential(ctx context.Context) (connection.Credential, error) {
	err := s.call.RenewServer(ctx)
	if errors.Is(err, storage.ErrNotFound) {
		return connection.Credential{}, &streams.Ended{Reason: streams.ServerDeleted}
	}
	if err != nil {
		return connection.Credential{}, err
	}
	if s.obtained() {
		return s.call.Exchange(s.request).Credential(ctx, s.call.Server)
	}
	account := s.call.Account()
	account.Use(true)
	credential, err := s.call.Core.Broker.CredentialOf(ctx, account.Key(), s.call.Server, account.Recent())
	if err != nil {
		account.Use(false) // a stream can wait for its user to connect
	}
	return credential, err
}

// Rejected implements app.CredentialSource.
func (s *source) Rejected(ctx context.Context, used connection.Credential) (connection.Credential, error) {
	step := s.call.Trace.Credential()
	credential, err := s.rejected(ctx, used)
	s.traced(step, credential, err)
	return credential, err
}

func (s *source) rejected(ctx context.Context, used connection.Credential) (connection.Credential, error) {
	if s.obtained() {
		return s.call.Exchange(s.request).Rejected(ctx, s.call.Server, used)
	}
	return s.call.Core.Broker.Rejected(ctx, s.call.Account().Key(), *s.call.Server, used)
}

// traced ends the step of a trace.
func (s *source) traced(step tracing.Step, credential connection.Credential, err error) {
	if !s.call.Trace.Recorded() {
		return
	}
	result, ended := "ok", (*streams.Ended)(nil)
	switch {
	case err == nil:
	case errors.Is(err, connection.ErrNotConnected):
		result = "not_connected"
	case errors.As(err, &ended):
		result = "ended"
	case errors.Is(err, connection.ErrCredentialWanted):
		result = "wanted"
	default:
		result = tracing.Unavailable
	}
	step.Got(string(connection.KindOf(&s.call.Server.Entry)), credential.Fresh(), result)
}

// obtained reports whether the gateway gets the server's tokens: users connect no account.
func (s *source) obtained() bool { return connection.KindOf(&s.call.Server.Entry).Obtained() }

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	durward_credential
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return arguments.None(d)
}

// Interface guards
var (
	_ app.CredentialSource        = (*source)(nil)
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
