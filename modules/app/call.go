package app

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/storage"
)

// Caller is who makes a request: proven, and resolved against the store.
type Caller struct {
	Issuer         string
	Subject        string
	OrganizationID string
	UserID         string
	Name           string
	Email          string
	Roles          []string
	Groups         []string
	Teams          []string
	Projects       []string
	// Agent is the external id of the client that holds the token (azp, client_id).
	Agent string
	// Admin: the caller has the issuer's administrator role.
	Admin bool
	// Machine: there is no person behind the token (client credentials).
	Machine bool
	// ExpiresAt is when the token is no longer good, the tolerance for the clocks' difference included.
	ExpiresAt time.Time
}

// Call is one request on its way through the pipeline. durward_auth makes it; each step adds what it establishes. It is
// the only thing that carries identity between our handlers: no header does.
type Call struct {
	Core *Core
	// Caller is nil on the few public paths that need no token.
	Caller *Caller
	token  *verified   // what made Caller
	stood  cache.Epoch // of the organization, before Caller's standing was read
	// Server is set on /mcp/{name} and /sse/{name}. Other requests share it: it must not be changed.
	Server *storage.Server
	known  *knownServer // Server's
	seen   cache.Epoch  // of the organization, before Server was read
	// Agent is the registered agent that holds the token; nil for none. Other requests share it: it must not be changed.
	Agent *storage.Agent
	// Inbound is the request on /mcp once it was read, see ReadInbound.
	Inbound *Inbound
	// Events is the request on /sse once it was read, see ReadEvents.
	Events *EventsRequest
	// Decision is set by durward_policy, on calls that may go on.
	Decision *Decision
	// Judged is what policies said to each message that they were asked about, of refused calls too.
	Judged []Judged
	// Credentials is set by durward_credential.
	Credentials CredentialSource
	// Log collects what the access log says about the call.
	Log CallLog

	audit callAudit
	// What Inbound, Decision and Judged point to, mostly: a call needs no memory of its own for them.
	inbound  Inbound
	decision Decision
	judged   [1]Judged
}

// CallLog is what the access log, placeholders and metrics may know of a call: never a body, an argument or a secret.
type CallLog struct {
	Method  string // MCP method
	Tool    string
	Session string // the client's tracking tag, not the MCP session
}

// ResolveServer sets the call's server to the one of that name in the caller's organization. Errors are the store's.
func (c *Call) ResolveServer(ctx context.Context, slug string) error {
	kept, organization := c.Core.resources, c.Caller.OrganizationID
	seen := kept.epochs.Current(organization)
	known, err := kept.servers.Get(ctx, cache.NewKey(organization, "server", slug), func(ctx context.Context) (*knownServer, error) {
		return kept.loadServer(ctx, organization, slug)
	})
	if err != nil {
		return err
	}
	c.Server, c.known, c.seen = &known.server, known, seen
	return nil
}

// RenewServer sets the call's server to how it is now, storage.ErrNotFound when it is gone, *streams.Ended when the
// caller's tokens were revoked. Both are looked up only when something of the organization was written since.
func (c *Call) RenewServer(ctx context.Context) error {
	if err := c.renewStanding(ctx); err != nil {
		return err
	}
	return c.renewServer(ctx)
}

func (c *Call) renewServer(ctx context.Context) error {
	if c.Core.resources.epochs.Current(c.Caller.OrganizationID) == c.seen {
		return nil
	}
	was, known := c.Server, c.known
	if err := c.ResolveServer(ctx, was.Slug); err != nil {
		return err
	}
	if c.Server.ID != was.ID {
		c.Server, c.known = was, known
		return storage.ErrNotFound // another one has its name
	}
	return nil
}

// ServerURL is the server's own address. Other requests share it: it must not be changed.
func (c *Call) ServerURL() (*url.URL, error) {
	if c.known != nil && &c.known.server == c.Server {
		return c.known.url, c.known.badURL
	}
	return url.Parse(c.Server.Entry.URL)
}

type callKey struct{}

// WithCall returns the request with its call. It is done once per request.
func WithCall(r *http.Request, call *Call) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), callKey{}, call))
}

// CallOf returns the call of a request. Without one the Caddyfile has our handlers in the wrong order, and the request
// must be refused.
func CallOf(r *http.Request) (*Call, bool) {
	call, ok := r.Context().Value(callKey{}).(*Call)
	return call, ok
}

// What a request gets when the configuration has our handlers in the wrong order.
const (
	textNoAuth       = "This request was not authenticated; durward_auth must come first in the configuration"
	textNoCredential = "This call has no credential; durward_credential must come after durward_auth in the configuration"
	textNoDecision   = "Nobody decided about this call; durward_policy must come between durward_auth and durward_credential in the configuration (`durward_policy off` lets every call pass)"
)

// RequireCall returns the call of a request, or answers the refusal.
func RequireCall(w http.ResponseWriter, r *http.Request) (*Call, bool) {
	call, ok := CallOf(r)
	if !ok {
		WriteError(w, Unauthorized, textNoAuth)
	}
	return call, ok
}

// AuthenticatedCall returns the call of a request that has a proven caller, or answers the refusal.
func AuthenticatedCall(w http.ResponseWriter, r *http.Request) (*Call, bool) {
	call, ok := CallOf(r)
	if !ok || call.Caller == nil {
		WriteError(w, Unauthorized, textNoAuth)
		return nil, false
	}
	return call, true
}

// ProxiedCall returns the call of a request to a server, which has a proven caller, the server, a decision about it and a
// source of the caller's credential, or answers the refusal.
func ProxiedCall(w http.ResponseWriter, r *http.Request) (*Call, bool) {
	call, ok := AuthenticatedCall(w, r)
	if !ok {
		return nil, false
	}
	if call.Server == nil || call.Credentials == nil {
		WriteError(w, InternalServerError, textNoCredential)
		return nil, false
	}
	if call.Decision == nil {
		WriteError(w, InternalServerError, textNoDecision)
		return nil, false
	}
	return call, true
}
