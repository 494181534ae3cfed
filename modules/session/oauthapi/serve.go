// Package oauthapi answers the requests that programs send to the gateway as an authorization server: for metadata,
// keys, tokens, registrations and revocations. The page on which a user agrees to a client is in modules/session, which
// passes the other requests on. Nothing here reads a cookie.
package oauthapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/identity/logins"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/authorization"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

// Concerns reports whether a request to a path is one for Serve.
func Concerns(path string) bool {
	switch path {
	case paths.ServerMetadata, paths.OpenIDMetadata, paths.Token, paths.Register, paths.Revoke, paths.Keys:
		return true
	}
	return false
}

// call is one request.
type call struct {
	core   *app.Core
	server *authorization.Server
	log    *zap.Logger
}

// Serve answers a request. Without an authorization server there is nothing at these addresses.
func Serve(w http.ResponseWriter, r *http.Request, core *app.Core, log *zap.Logger) {
	c := &call{core, core.Authorization, log}
	if c.server == nil || r.URL.Path == paths.Register && !c.server.Registers() {
		gateway.WriteNotFound(w)
		return
	}
	c.handler(r.URL.Path).ServeHTTP(w, r)
}

func (c *call) handler(path string) http.Handler {
	switch path {
	case paths.Keys:
		return authserver.Public(c.keys)
	case paths.Token:
		return c.restricted(c.token)
	case paths.Register:
		return c.restricted(c.register)
	case paths.Revoke:
		return c.restricted(c.revoke)
	default:
		return authserver.Public(func(w http.ResponseWriter, _ *http.Request) { writeCacheable(w, c.server.Metadata()) })
	}
}

func (c *call) restricted(h http.HandlerFunc) http.Handler {
	return authserver.Restricted(h, c.core.Names.OriginAllowed, http.MethodPost)
}

// documentLifetime is the time for which others keep the metadata and the keys.
const documentLifetime = 5 * time.Minute

func writeCacheable(w http.ResponseWriter, v any) {
	w.Header().Set("Cache-Control", "public, max-age="+strconv.Itoa(int(documentLifetime/time.Second)))
	gateway.WriteJSON(w, http.StatusOK, v)
}

func (c *call) keys(w http.ResponseWriter, r *http.Request) {
	keys, err := c.server.Keys(r.Context())
	if err != nil {
		c.fail(w, "reading the keys of access tokens", err)
		return
	}
	writeCacheable(w, map[string]any{"keys": keys})
}

// token answers at the token endpoint (RFC 6749 section 3.2).
func (c *call) token(w http.ResponseWriter, r *http.Request) {
	tokens, err := c.exchange(w, r)
	if err != nil {
		c.fail(w, "exchanging a grant for tokens", err)
		return
	}
	authserver.WriteJSON(w, http.StatusOK, tokens.Answer())
}

func (c *call) exchange(w http.ResponseWriter, r *http.Request) (*logins.Tokens, error) {
	form, err := authserver.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	if err := authserver.CheckForm(form); err != nil {
		return nil, err
	}
	client, err := c.server.Authenticate(w, r, form, c.finds(form)) //nolint:contextcheck // it gets the request, which has the context
	if err != nil {
		return nil, err
	}
	exchanges := c.server.Redeem
	switch grant := form.Get("grant_type"); {
	case grant == "":
		return nil, authserver.Invalid("invalid_request", "grant_type is missing")
	case grant == authserver.GrantAssertion && c.server.TakesAssertions():
		return c.assert(r.Context(), client, form)
	case grant != authserver.GrantCode && grant != authserver.GrantRefresh && grant != authserver.GrantMachine:
		return nil, authserver.Invalid("unsupported_grant_type", "grant_type must be authorization_code, refresh_token or client_credentials")
	case !slices.Contains(client.GrantTypes, grant):
		return nil, authserver.Invalid("unauthorized_client", "the client may not use this grant type")
	case grant == authserver.GrantRefresh:
		exchanges = c.server.Refresh
	case grant == authserver.GrantMachine:
		exchanges = c.server.Machine
	}
	return exchanges(r.Context(), client, form)
}

// register answers at the registration endpoint (RFC 7591 section 3).
func (c *call) register(w http.ResponseWriter, r *http.Request) {
	if wait := c.server.RegistrationWait(r.RemoteAddr); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
		authserver.WriteError(w, &authserver.Error{
			Code: "temporarily_unavailable", Description: "too many clients register from this address", Status: http.StatusTooManyRequests,
		})
		return
	}
	asked, err := authserver.ReadRegistration(w, r)
	if err != nil {
		c.fail(w, "reading a registration", err)
		return
	}
	secret, err := c.server.Register(r.Context(), asked)
	if err != nil {
		c.fail(w, "registering a client", err)
		return
	}
	authserver.WriteJSON(w, http.StatusCreated, asked.Answer(secret.Reveal()))
}

// revoke answers at the revocation endpoint (RFC 7009 section 2).
func (c *call) revoke(w http.ResponseWriter, r *http.Request) {
	if err := c.end(w, r); err != nil {
		c.fail(w, "revoking a token", err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
}

func (c *call) end(w http.ResponseWriter, r *http.Request) error {
	form, err := authserver.ReadForm(w, r)
	if err != nil {
		return err
	}
	if err := authserver.CheckForm(form); err != nil {
		return err
	}
	client, err := c.server.Authenticate(w, r, form, c.finds(form)) //nolint:contextcheck // it gets the request, which has the context
	if err != nil {
		return err
	}
	if form.Get("token") == "" {
		return authserver.Invalid("invalid_request", "token is missing")
	}
	return c.server.Revoke(r.Context(), client, form.Get("token"), func(ctx context.Context, l storage.Login) error {
		return c.core.Audit.Event(ctx, l.OrganizationID, storage.AuditEntry{
			Kind: storage.AuditLogin, Event: "client.logout", UserID: l.UserID, Client: l.ClientID, Outcome: "ok",
			Detail: map[string]any{"login": l.ID},
		})
	})
}

// finds returns the look-up of the client of a request. A client's metadata document is fetched only for a request with a
// code or a token of this server's: otherwise anybody could make the gateway fetch, and use up the fetches of others.
func (c *call) finds(form url.Values) func(context.Context, string) (*authserver.Client, error) {
	return func(ctx context.Context, id string) (*authserver.Client, error) {
		if strings.Contains(id, "://") && !c.server.Configured(id) && !c.server.Genuine(form) {
			return nil, authserver.ErrNoClient
		}
		found, err := c.server.Client(ctx, id)
		if errors.Is(err, authserver.ErrDocument) { // a client takes invalid_client for final, and forgets its login
			return nil, &authserver.Error{Code: "temporarily_unavailable", Description: "the client's metadata document cannot be fetched now", Status: http.StatusServiceUnavailable}
		}
		return found, err
	}
}

// fail answers with an error. What is not the request's fault is logged.
func (c *call) fail(w http.ResponseWriter, doing string, err error) {
	e, told := errors.AsType[*authserver.Error](err)
	switch {
	case told && e.Status == http.StatusServiceUnavailable:
		gateway.SetRetryAfter(w)
	case !told:
		c.core.LogFailure(c.log, doing, err)
		if errors.Is(err, storage.ErrUnavailable) {
			gateway.SetRetryAfter(w)
			err = &authserver.Error{Code: "temporarily_unavailable", Description: "try again in a moment", Status: http.StatusServiceUnavailable}
		}
	}
	authserver.WriteError(w, err)
}
