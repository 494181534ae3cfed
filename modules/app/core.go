package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/apikey"
	"github.com/durward-gateway/durward/internal/broker"
	"github.com/durward-gateway/durward/internal/legacysse"
	"github.com/durward-gateway/durward/internal/mcpsession"
	"github.com/durward-gateway/durward/internal/overload"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/streams"
	"github.com/durward-gateway/durward/internal/taskbook"
	"github.com/durward-gateway/durward/internal/websession"
	"github.com/durward-gateway/durward/modules/app/accesslog"
	"github.com/durward-gateway/durward/storage"
)

// Core is what handlers work with: the wiring of one configuration over resources that outlive it.
type Core struct {
	lifetime

	// PublicURL is the gateway's address, without a slash at the end.
	PublicURL string
	loopID    string // what it calls itself towards upstreams
	Store     storage.Store
	Keyring   *seal.Keyring
	Guard     Guard
	Broker    *broker.Broker
	Streams   *streams.Registry
	// Sessions seals and opens the ids of MCP sessions.
	Sessions *mcpsession.Codec
	// Questions marks what servers ask their clients.
	Questions *mcpsession.Questions
	// Desk brings answers of the gateway's own to open streams of MCP 2024-11-05.
	Desk *legacysse.Desk
	// Tasks remembers who created which task at an upstream.
	Tasks *taskbook.Owners
	Sizes Sizes
	// StreamBounds are those of new streams and calls.
	StreamBounds Streams
	// Overload tells how short memory is; nil: never.
	Overload *overload.Meter
	Metrics  *Metrics
	Log      *slog.Logger
	// Tests tests servers.
	Tests *ServerTests
	// Limits is the rate limits.
	Limits *Limits
	// Audit is the audit log.
	Audit *Audit
	// Usage is the books of what models are used, and the budgets.
	Usage *Usage

	allowedHosts
	logins
	approvals
	asking
	models
	identities map[string]Identity // by issuer
	issuers    []string            // in the order of the configuration
	scopes     []string            // of all issuers, that clients should ask for
	resources  *resources
	rulesID    string
	agents     AgentRules
	pinning    PinRules
	// Guide: users who have not connected their account are led to the page, in the conversation; else they are refused.
	Guide    bool
	digester *apikey.Digester
	masters  []seal.MasterKey

	directory map[storage.Source][]storage.DirectoryEntry // read-only templates, stored by Start
	unready   atomic.Bool                                 // until Start has stored them
	started   bool                                        // whoever opens has done all but that
}

// Attach is called by a handler's Provision. It returns the app, which must be configured, and tells it the site that the
// handler belongs to. It fails where the gateway's handlers stand in an order in which they cannot work.
func Attach(ctx caddy.Context) (*App, error) {
	configured, err := ctx.AppIfConfigured("durward")
	if errors.Is(err, caddy.ErrNotConfigured) {
		return nil, errors.New("the durward app is not configured (a global option `durward` in the Caddyfile, apps.durward in JSON)")
	}
	if err != nil {
		return nil, err
	}
	a := configured.(*App)
	first := !a.ordered
	if first {
		a.ordered = true
		if err := checkOrder(ctx); err != nil {
			return nil, err
		}
	}
	if a.development() {
		if err := requireLoopback(ctx); err != nil {
			return nil, err
		}
	}
	if a.PublicURL == "" {
		public, err := publicURL(ctx, a.development())
		if err != nil {
			return nil, err
		}
		if err := a.wire(public); err != nil {
			return nil, err
		}
	}
	if first {
		if err := a.checkReach(ctx); err != nil {
			return nil, err
		}
	}
	a.addHosts(ctx)
	boundBodies(ctx)
	a.listening.share(ctx)
	return a, accesslog.Guard(ctx)
}

// checkReach keeps what other sites take from the gateway's, and fails where that is all.
func (a *App) checkReach(ctx caddy.Context) error {
	a.coreMu.Lock()
	public, err := url.Parse(a.core.PublicURL)
	a.coreMu.Unlock()
	if err == nil {
		a.taken, err = checkReach(ctx, public)
	}
	return err
}

// Taken says which connections other sites take from the gateway's.
func (a *App) Taken() []string { return a.taken }

// addHosts lets clients use the names of the sites, which need not be the public one.
func (a *App) addHosts(ctx caddy.Context) {
	a.coreMu.Lock()
	defer a.coreMu.Unlock()
	for _, s := range gatewaySites(ctx) {
		for _, host := range s.hosts {
			a.core.addHost(host)
		}
	}
}

// Pin returns the core and keeps it open until unpin is called: a configuration's Cleanup runs while its requests and
// streams still do. A request that was on its way in when its configuration was cleaned up gets the core of the one that
// runs now.
func (a *App) Pin() (core *Core, unpin func(), ok bool) {
	if core, unpin, ok = a.pinOwn(); ok {
		return core, unpin, true
	}
	running, ok := runningApp()
	if !ok {
		return nil, nil, false
	}
	return running.pinOwn()
}

// runningApp is the app of the configuration that runs.
func runningApp() (*App, bool) {
	running, err := caddy.ActiveContext().AppIfConfigured("durward")
	if err != nil {
		return nil, false
	}
	return running.(*App), true
}

func (a *App) pinOwn() (core *Core, unpin func(), ok bool) {
	a.coreMu.Lock()
	core = a.serving
	a.coreMu.Unlock()
	if core == nil || !core.pin() {
		return nil, nil, false
	}
	return core, core.unpin, true
}

// newCore makes what a configuration says: without a look into the store, so that it can be judged while that is away.
func (a *App) newCore(public *url.URL) (*Core, error) {
	guard, err := GuardOf(a.Egress, a.development())
	if err != nil {
		return nil, err
	}
	origins, err := parseOrigins(a.Origins)
	if err != nil {
		return nil, err
	}
	core := &Core{
		PublicURL: public.String(), loopID: loopID(public.String()), Store: a.resources.store, Guard: guard, Streams: &openStreams,
		Sizes: a.Sizes.withDefaults(), StreamBounds: a.Streams.withDefaults(), Overload: a.newMeter(),
		Metrics: a.metrics, Log: a.slogger, Limits: a.limitsTogether(), Tasks: a.resources.tasks, Desk: &desk,
		resources: a.resources, rulesID: a.rulesID + public.String(), agents: a.agentRules(),
		allowedHosts: allowedHosts{
			hosts: []string{public.Hostname()}, origins: append(origins, public.String()),
			development: a.development(),
		},
	}
	core.Tests = NewServerTests(core.Guard, a.resources.tests)
	if a.Pinning != nil {
		core.pinning = *a.Pinning
	}
	core.Guide = a.Unconnected != UnconnectedRefuse
	if err := a.bind(core); err != nil {
		return nil, err
	}
	core.unready.Store(a.development() || !core.storedBefore())
	if !a.resources.pin() {
		return nil, errors.New("the store is closing")
	}
	unpinCoordination := a.coordination.use()
	core.close = func() {
		if core.Broker != nil { // it was furnished
			core.Broker.Close()
		}
		unpinCoordination()
		core.resources.unpin() // not the app's: its Cleanup has dropped them by the time the last stream ends
	}
	return core, nil
}

// bind gives a core what the configuration may have wrong.
func (a *App) bind(core *Core) (err error) {
	if core.masters, err = a.masterKeys(); err != nil {
		return err
	}
	if err := broker.CheckReturnURLs(a.returnURLs(core.PublicURL)); err != nil {
		return err
	}
	core.Audit = a.newAudit()
	core.Store = &auditedStore{Store: a.resources.store, audit: core.Audit}
	if core.identities, core.issuers, err = a.bindIdentities(core); err != nil {
		return err
	}
	core.scopes = requestedScopes(a.identities)
	if core.Usage, err = a.newUsage(core); err != nil {
		return err
	}
	if err := core.bindLogins(); err != nil {
		return err
	}
	if core.directory, err = a.readOnlyEntries(core); err != nil {
		return err
	}
	return core.bindModels(a)
}

// furnish makes what takes the data keys of the store. Nobody has the core yet, so that nobody sees half of it.
func (a *App) furnish(ctx context.Context, core *Core) (err error) {
	if core.Keyring, err = core.resources.openKeyring(ctx, core.masters); err != nil {
		return err
	}
	core.digester = apikey.NewDigester(core.Keyring)
	core.Audit.signer, core.Audit.macs = core.Keyring.Signer(AuditPurpose), core.Keyring.Tagger(AuditRecordPurpose)
	core.Browsers = websession.NewSealer(core.Keyring, core.PublicURL, func() time.Time { return core.Shared(time.Now()) })
	core.bindApprovals(a.ApprovalClients)
	core.Sessions = mcpsession.New(core.Keyring.Sealer("mcp session"), time.Now)
	core.Questions = mcpsession.NewQuestions(core.Keyring.Tagger("mcp question"))
	core.Broker, err = a.newBroker(core) // the last: with it the core is furnished
	return err
}

// requestedScopes are those of all identities, each once.
func requestedScopes(identities []Identity) (scopes []string) {
	for _, identity := range identities {
		scoped, ok := identity.(ScopedIdentity)
		if !ok {
			continue
		}
		for _, scope := range scoped.RequestedScopes() {
			if !slices.Contains(scopes, scope) {
				scopes = append(scopes, scope)
			}
		}
	}
	return scopes
}

func (a *App) bindIdentities(core *Core) (map[string]Identity, []string, error) {
	byIssuer := make(map[string]Identity)
	var issuers []string
	binding := Binding{PublicURL: core.PublicURL, DataDirectory: a.dataDirectory(), EgressID: a.egressID, Store: core.Store, Guard: core.Guard, Log: core.Log, Now: time.Now}
	for _, identity := range a.identities {
		if err := identity.Bind(binding); err != nil {
			return nil, nil, fmt.Errorf("setting up identity: %w", err)
		}
		issuer := identity.IssuerID()
		if byIssuer[issuer] != nil {
			return nil, nil, fmt.Errorf("identity %s is configured twice", issuer)
		}
		byIssuer[issuer] = identity
		issuers = append(issuers, issuer)
	}
	return byIssuer, issuers, nil
}

// Shared is a time of this machine's clock by the one that all nodes have in common, their database's. What is compared with
// the times of other nodes is told by it: a revocation by a node whose clock is behind would otherwise spare tokens, sessions
// and keys that were made before it (Z-C01).
func (c *Core) Shared(local time.Time) time.Time {
	if c.resources == nil { // of a test
		return local
	}
	return c.resources.clock.shared(local)
}

// ErrOverloaded: the process is so short of memory that it refuses every call.
var ErrOverloaded = errors.New("memory is short")

// Ready reports why requests should not be sent here, or nil: ErrOverloaded, a *ClockError, or what is wrong with the store.
func (c *Core) Ready(ctx context.Context) error {
	if c.Overload.Level() == overload.Critical {
		return ErrOverloaded
	}
	if c.resources == nil { // of a test
		return c.Store.Ping(ctx)
	}
	unready := c.unready.Load()
	if err := c.resources.watch.Look(ctx); err != nil && (unready || !errors.Is(err, storage.ErrReadOnly)) {
		return err
	}
	if unready {
		return &storage.UnavailableError{Reason: "the server directory is not stored yet"}
	}
	return c.resources.clock.ready()
}

// ReadOnly says why the store takes no writes for now although the node is ready; "": it does.
func (c *Core) ReadOnly(ctx context.Context) string {
	if c.resources == nil {
		return ""
	}
	if err := c.resources.watch.Look(ctx); errors.Is(err, storage.ErrReadOnly) {
		return reasonOf(err)
	}
	return ""
}

// Issuers lists the issuers whose tokens are accepted, for metadata documents.
func (c *Core) Issuers() []string { return c.issuers }

// Scopes lists the scopes that clients should ask the issuers for, for metadata documents and challenges.
func (c *Core) Scopes() []string { return c.scopes }

// HostAllowed reports whether a Host header names this gateway.
func (c *Core) HostAllowed(host string) bool { return c.hostAllowed(host) }

// OriginAllowed reports whether web pages of an origin may call the gateway.
func (c *Core) OriginAllowed(origin string) bool { return c.originAllowed(origin) }
