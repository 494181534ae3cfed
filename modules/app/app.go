// Package app is the Caddy app `durward`. It opens, wires, pins and closes the long-lived resources, defines what
// handlers share (the caller and the call in the request context, error bodies, metrics) and the small interfaces behind
// which guest modules live.
package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/modules/app/fixed"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/modules/app/sites"
	"github.com/durward-gateway/durward/modules/app/sockets"
)

func init() {
	caddy.RegisterModule(new(App))
}

// App is the gateway's app: one per configuration. It holds what every handler of the gateway needs: the store, the
// master key, the identity providers and the rules for outgoing connections.
//
// All secrets are references (`{env.NAME}` or `{file./path}`) that are resolved when the configuration is loaded; the
// configuration itself never holds one.
type App struct {
	// The address at which clients reach the gateway, without a path: `https://gate.example.com`. It is the only source
	// of links, redirect URIs, audiences and metadata; `Host` and `X-Forwarded-*` never are. Default: the address of the
	// site that holds the gateway, when that is a single host; with the development identity provider, the address that
	// the site listens on.
	PublicURL string `json:"public_url,omitempty"`

	// The store, which keeps servers, connections and all other data. Required.
	StoreRaw json.RawMessage `json:"store,omitempty" caddy:"namespace=durward.stores inline_key=driver"`

	// References to the master keys: 32 random bytes each, as base64 or hex. The first one encrypts; the others can still
	// be read, which is how a key is rotated. Default: none, and the gateway refuses to start without one, except with
	// the development identity provider, which makes one in the data directory.
	MasterKey []string `json:"master_key,omitempty"`

	// The identity providers that issue the tokens which callers present. At least one is required.
	IdentitiesRaw []json.RawMessage `json:"identity,omitempty" caddy:"namespace=durward.identities inline_key=kind"`

	// The gateway as an OAuth authorization server: clients log their users in at the gateway, which logs them in at the
	// identity provider. Default: on where every identity has a `login_client` and the site has `durward_session`.
	AuthorizationServer *settings.AuthorizationServer `json:"authorization_server,omitempty"`

	// Origins of web pages that may call the gateway, besides the origin of the public URL. Default: none; with the
	// development identity provider, every loopback origin.
	Origins []string `json:"origins,omitempty"`

	// Addresses to which a browser may be sent after connecting an account: exact origins with a path prefix that matches
	// by whole segments. Default: the origin of the public URL; with the development identity provider, loopback origins
	// too.
	ReturnURLs []string `json:"return_url,omitempty"`

	// Exceptions to the rule that the gateway speaks only https and only to public addresses. Default: none; with the
	// development identity provider, loopback addresses over http and https.
	Egress *settings.Egress `json:"egress,omitempty"`

	// Templates of servers, besides the catalogue that ships with the gateway. Default: none; the development identity
	// provider adds that of its demo server.
	Directory *settings.Directory `json:"directory,omitempty"`

	// Upper bounds, in bytes, of what is read into memory. Default: that of each member.
	Sizes *settings.Sizes `json:"sizes,omitempty"`

	// The place at which nodes count rate limits together. Default: in the store's database, when it can keep counters;
	// else this node counts alone.
	CoordinatorRaw json.RawMessage `json:"coordinate,omitempty" caddy:"namespace=durward.coordinators inline_key=kind"`

	// The rules by which nodes count rate limits together. Default: that of each member.
	LimitRules *settings.LimitRules `json:"limits,omitempty"`

	// The rules for clients that are not registered as agents. Default: they may call what policies for all agents allow;
	// with the development identity provider, they are registered.
	Agents *settings.AgentRules `json:"agents,omitempty"`

	// Clients (`azp` of their tokens) with which users decide on held calls out of band. Default: the gateway's own login
	// client; with the development identity provider, `dev-console` too.
	ApprovalClients []string `json:"approval_clients,omitempty"`

	// Those who are told about held calls: by signed webhooks, in chats, by e-mail. Default: nobody is.
	Notify *settings.Notify `json:"notify,omitempty"`

	// The rules for opening streams of `/sse`. Default: every connected user, unless a rule denies it.
	SSE *settings.SSERules `json:"sse,omitempty"`

	// The rules for tools whose definition changed after it was first seen. Default: the change is flagged, and the tool
	// can be called.
	Pinning *settings.PinRules `json:"pin,omitempty"`

	// The answer to clients whose user has not connected the server's account: `guide`, a conversation that leads the user
	// to the page for connecting, and then goes on with the server; or `refuse`, 403. Default: guide.
	Unconnected string `json:"unconnected,omitempty"`

	// The rules for records of calls in the audit log, for calls that cannot be recorded, and for copies of the log.
	// Default: that of each member.
	Audit *settings.AuditRules `json:"audit,omitempty"`

	// A reference to a table of the prices of models, `{file./path}`. Where it names a model, its price takes precedence
	// over that of the table which ships with the gateway; with another currency, it replaces that table. Default: none;
	// only the shipped table applies.
	Prices string `json:"prices,omitempty"`

	// Accounts with providers of models that every organization can use, besides those that it has itself. Default: none; the
	// development identity provider adds demo models.
	Providers []settings.Provider `json:"provider,omitempty"`

	// Names under which every organization can ask for models, besides its own. Where an organization has an alias of the same
	// name, its own takes precedence. Default: none; the development identity provider adds those of its demo models.
	Aliases []settings.Alias `json:"alias,omitempty"`

	// How many event streams may be open, and their times. Default: that of each member.
	Streams *settings.Streams `json:"streams,omitempty"`

	// The memory, in bytes, that the process may use: from 1 MiB to 1 PiB. From 85 % on, new streams, new MCP sessions and
	// large bodies are refused, from 95 % on every new call; what runs goes on. Go's garbage collector is held to it too.
	// Default: `GOMEMLIMIT`, which is 90 % of the container's or the machine's memory when the environment does not say.
	MemoryLimit int64 `json:"memory_limit,omitempty"`

	// What pages and the console show of whoever runs the gateway: name, logo, colour. Default: durward's own.
	Branding *settings.Branding `json:"branding,omitempty"`

	// The rules for users whom identity providers provision (SCIM). Default: that of each member.
	SCIM *settings.Provisioning `json:"scim,omitempty"`

	// Where a Caddyfile had each option, as `file:line`, for errors and for administrators. The adapter writes it. Default:
	// nothing is known.
	Written map[string][]string `json:"written,omitempty"`

	brand *webpage.Brand
	fixed *fixed.Configuration

	store      StoreOpener
	identities []Identity
	modelKinds map[string]accounts.Protocol
	logger     *zap.Logger
	slogger    *slog.Logger
	metrics    *metrics.Traffic
	ctx        caddy.Context

	// rulesID identifies the rules by which tokens are judged; egressID identifies the rules for outgoing connections.
	rulesID, egressID string

	// resourceKey is the pool key of the shared resources while they are held.
	resourceKey string
	resources   *resources

	coordinator    CoordinatorOpener // nil: the default
	coordinationID string
	coordination   *coordination // nil: this node counts alone

	listening sockets.Listening
	ordered   bool // the order of the handlers has been checked
	noPages   bool // durward_session is in no site
	console   bool // durward_console is in a site
	taken     []string

	// core is set once the public URL is known, at the latest when the first handler attaches. serving is the same core,
	// set once it is complete: only then can requests pin it.
	coreMu  sync.Mutex
	core    *Core
	serving *Core

	opening opening
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "durward", New: func() caddy.Module { return new(App) }}
}

// Brand returns what pages show of whoever runs the gateway.
func (a *App) Brand() *webpage.Brand { return a.brand }

// HasConsole reports whether a site has the console.
func (a *App) HasConsole() bool { return a.console }

// Provision loads the guest modules and opens the resources that they name.
func (a *App) Provision(ctx caddy.Context) error {
	a.ctx = ctx
	a.logger = ctx.Logger()
	a.slogger = ctx.Slogger()
	a.rulesID = digest(a.IdentitiesRaw, a.PublicURL, a.Agents, a.AuthorizationServer, a.SCIM)
	if err := cmp.Or(settings.CheckUnconnected(a.Unconnected), a.Sizes.Check(), a.Streams.Check(), settings.CheckMemoryLimit(a.MemoryLimit), a.Agents.Check(), a.Audit.Check(), a.LimitRules.Check(), a.AuthorizationServer.Check(), a.SCIM.Check()); err != nil {
		return err
	}
	a.fixed = fixed.New(fixed.Source{ // the guests' own configuration is cleared once they are loaded
		Written: a.Written, PublicURL: a.PublicURL, Store: a.StoreRaw, Identities: a.IdentitiesRaw, Coordinator: a.CoordinatorRaw, Authorization: a.AuthorizationServer, Audit: a.Audit,
		Limits: a.LimitRules, Agents: a.Agents, SSE: a.SSE, Pinning: a.Pinning, Notify: a.Notify, Branding: a.Branding, SCIM: a.SCIM, Unconnected: a.Unconnected, MemoryLimit: a.MemoryLimit,
	})
	var err error
	if a.brand, err = a.Branding.Brand(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(append(a.Written["branding"], "branding"), ": "), err)
	}
	if err := a.loadGuests(ctx); err != nil {
		return err
	}
	// Development mode widens the rules: a configuration without it must not use things that were fetched under the wide
	// rules.
	a.egressID = digest(a.Egress, a.development())
	if err := a.acquire(ctx); err != nil {
		return err
	}
	if a.PublicURL == "" {
		return nil // the first handler knows its site
	}
	public, err := sites.ParsePublicURL(a.PublicURL)
	if err != nil {
		return err
	}
	return a.wire(public)
}

// acquire takes the resources that the app shares with other configurations of the process; Cleanup gives them back.
func (a *App) acquire(ctx caddy.Context) (err error) {
	if a.metrics, err = metrics.Register(ctx.GetMetricsRegistry()); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	if err := a.acquireResources(); err != nil {
		return err
	}
	if err := a.acquireCoordination(); err != nil {
		return err
	}
	return a.subscribeToExit(ctx)
}

func (a *App) loadGuests(ctx caddy.Context) error {
	if a.StoreRaw == nil {
		return errors.New("no store is configured; add `store sqlite PATH` to the durward option")
	}
	store, err := ctx.LoadModule(a, "StoreRaw")
	if err != nil {
		return fmt.Errorf("loading store: %w", err)
	}
	a.store = store.(StoreOpener)
	if len(a.IdentitiesRaw) == 0 {
		return errors.New("no identity provider is configured; add `identity oidc ISSUER` to the durward option")
	}
	guests, err := ctx.LoadModule(a, "IdentitiesRaw")
	if err != nil {
		return fmt.Errorf("loading identity: %w", err)
	}
	for _, guest := range guests.([]any) {
		a.identities = append(a.identities, guest.(Identity))
	}
	if err := a.loadCoordinator(ctx); err != nil {
		return err
	}
	return a.loadModelKinds(ctx)
}

// Development returns the development identity provider when it is among the identities, else nil.
func (a *App) Development() DevelopmentIdentity {
	for _, identity := range a.identities {
		if development, ok := identity.(DevelopmentIdentity); ok {
			return development
		}
	}
	return nil
}

func (a *App) development() bool { return a.Development() != nil }

// subscribeToExit ends event streams when the process is about to exit: Caddy would wait for them until its grace period
// is over. A reload also stops the old config, but leaves its streams alone.
func (a *App) subscribeToExit(ctx caddy.Context) error {
	events, err := ctx.App("events")
	if err != nil {
		return fmt.Errorf("loading events: %w", err)
	}
	return events.(*caddyevents.App).On("stopping", exitHandler{a})
}

// digest identifies a piece of configuration.
func digest(parts ...any) string {
	encoded, err := json.Marshal(parts)
	if err != nil {
		return err.Error() // not reached: configuration came from JSON
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:])
}

// Start opens the resources for serving, or begins to while the store cannot be reached. It then stores the read-only
// templates of the directory. A configuration that is only validated, or that fails, does not touch the templates of
// the running one.
func (a *App) Start() error {
	a.coreMu.Lock()
	core := a.core
	a.coreMu.Unlock()
	if core == nil {
		return nil // no handler of the gateway is part of this configuration
	}
	return a.open(core)
}

// Stop does nothing: requests of this configuration may still be running. Each pins what it uses.
func (a *App) Stop() error {
	return nil
}

// Cleanup gives back the shared resources. It also runs after a Provision that failed half-way.
func (a *App) Cleanup() error {
	a.opening.end(a.resources)
	a.coreMu.Lock()
	core := a.core
	a.core, a.serving = nil, nil
	a.coreMu.Unlock()
	if core != nil {
		if core.Jobs != nil { // it was furnished
			core.Jobs.Close() // what it has begun goes on with the next configuration
		}
		core.silence()
		core.retire()
	}
	return errors.Join(a.releaseCoordination(), a.releaseResources())
}

// wire builds the core for a public URL.
func (a *App) wire(public *url.URL) error {
	a.coreMu.Lock()
	defer a.coreMu.Unlock()
	if a.core != nil {
		if a.core.PublicURL != public.String() {
			return fmt.Errorf("the gateway is part of several sites (%s and %s); set public_url", a.core.PublicURL, public)
		}
		return nil
	}
	core, err := a.newCore(public)
	if err != nil {
		return err
	}
	a.core = core // given back by Cleanup, whatever becomes of it
	if !core.resources.there() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	if err := a.furnish(ctx, core); err != nil {
		return err
	}
	a.serving = core
	return nil
}

// Interface guards
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
	_ sockets.Holder     = (*App)(nil)
)
