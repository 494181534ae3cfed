package app

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/exchange"
	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/identity/apikey"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/websession"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/mcp/conversation"
	"github.com/durward-gateway/durward/internal/mcp/legacysse"
	"github.com/durward-gateway/durward/internal/mcp/pinning"
	"github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/internal/mcp/sighting"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/mcp/tasks"
	"github.com/durward-gateway/durward/internal/ops/jobs"
	"github.com/durward-gateway/durward/internal/ops/probe"
	"github.com/durward-gateway/durward/internal/policy/evaluator"
	"github.com/durward-gateway/durward/internal/ratelimit/admission"
	"github.com/durward-gateway/durward/internal/ratelimit/overload"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app/accesslog"
	"github.com/durward-gateway/durward/modules/app/adminapi"
	"github.com/durward-gateway/durward/modules/app/authorization"
	"github.com/durward-gateway/durward/modules/app/browsers"
	"github.com/durward-gateway/durward/modules/app/connections"
	"github.com/durward-gateway/durward/modules/app/fixed"
	"github.com/durward-gateway/durward/modules/app/issuers"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/modules/app/process"
	"github.com/durward-gateway/durward/modules/app/readiness"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/modules/app/sites"
	"github.com/durward-gateway/durward/modules/app/sockets"
	"github.com/durward-gateway/durward/modules/app/usage"
	"github.com/durward-gateway/durward/storage"
)

// Core holds the wiring of one configuration, which handlers work with. The resources in it outlive the configuration.
type Core struct {
	lifetime

	// PublicURL is the gateway's address, without a slash at the end.
	PublicURL string
	// Names holds the names under which clients may call the gateway.
	Names   sites.Names
	Store   storage.Store
	Keyring *seal.Keyring
	Guard   Guard
	Broker  *connection.Broker
	// Exchanger gets the tokens for servers to which users connect no account.
	Exchanger *exchange.Exchanger
	// Connections removes connections of the broker.
	Connections *connections.Connections
	Streams     *streams.Registry
	// Cookies sets and reads the cookies of browsers.
	Cookies websession.Cookies
	// Sessions seals and opens the ids of MCP sessions.
	Sessions *session.Codec
	// Reader reads requests on /mcp.
	Reader *inbound.Reader
	// Questions marks the questions of servers to their clients.
	Questions *session.Questions
	// Desk brings answers of the gateway's own to open streams of MCP 2024-11-05.
	Desk *legacysse.Desk
	// Conversations keeps the sessions of MCP that the gateway began.
	Conversations *conversation.Keeper
	// Tasks remembers the owner of each task at an upstream.
	Tasks *tasks.Owners
	// Evaluator finds servers with the rules for calls to them.
	Evaluator *evaluator.Evaluator
	// Pins knows the tools of servers, and which of them have changed.
	Pins *pinning.Pinner
	// Sightings notes what requests see of servers.
	Sightings *sighting.Observer
	Sizes     settings.Sizes
	// StreamBounds holds the limits for new streams and calls.
	StreamBounds settings.Streams
	// Overload measures the pressure on memory; nil: never measured.
	Overload *overload.Meter
	// Readiness knows whether requests should be sent here.
	Readiness *readiness.Readiness
	// Clock converts times to those of the database.
	Clock   *readiness.Clock
	Metrics *metrics.Traffic
	Log     *slog.Logger
	// Tests tests servers.
	Tests *probe.Tests
	// Issuers holds the issuers whose tokens are accepted.
	Issuers issuers.Issuers
	// Refused shows the tokens that were refused.
	Refused *issuers.RefusedTokens
	// Logins knows who is logged in with a browser.
	Logins *browsers.Logins
	// Authorization is the gateway as an authorization server; nil when there is none.
	Authorization *authorization.Server
	// Authenticator proves who sends a request.
	Authenticator *authn.Authenticator
	// Admitter decides whether rate limits let calls go on.
	Admitter *admission.Admitter
	// Audit is the audit log.
	Audit *record.Recorder
	// Accounts knows the models that organizations can ask for, and the accounts that serve them.
	Accounts *accounts.Catalog
	// Usage keeps the books of used models, and the budgets.
	Usage *usage.Usage
	// Jobs runs work that takes longer than a request.
	Jobs *jobs.Runner
	// Runtime asks models.
	Runtime Runtime
	// AgentRules holds the rules for clients that are not registered.
	AgentRules settings.AgentRules
	// Provisioning holds the rules for users whom identity providers provision.
	Provisioning authn.Provisioning
	// Guide reports whether users who have not connected their account are led to the page in the conversation; otherwise
	// they are refused.
	Guide bool
	// Brand is shown at the top of pages.
	Brand *webpage.Brand
	// Fixed tells what the configuration fixed.
	Fixed *fixed.Configuration

	approvals
	models    *accounts.Base // of Accounts
	resources *resources
	rulesID   string
	digester  *apikey.Digester
	masters   []seal.MasterKey

	directory map[storage.Source][]storage.DirectoryEntry // read-only templates, stored by Start
	started   bool                                        // the opening goroutine has done everything but that
}

// Attach is called by a handler's Provision. It returns the app, which must be configured, and tells it the site that
// the handler belongs to. It fails when the gateway's handlers are in an order in which they cannot work.
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
		if err := sites.CheckOrder(ctx); err != nil {
			return nil, err
		}
		a.console = sites.HasConsole(ctx)
		if !sites.HavePages(ctx) {
			if a.AuthorizationServer.Required() {
				return nil, errors.New("authorization_server on needs durward_session before durward_auth: users agree to clients on its pages")
			}
			a.authorizeNot()
		}
	}
	if a.development() {
		if err := sites.RequireLoopback(ctx); err != nil {
			return nil, err
		}
	}
	if a.PublicURL == "" {
		public, err := sites.PublicURL(ctx, a.development())
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
	sites.BoundBodies(ctx)
	a.listening.Share(ctx)
	return a, accesslog.Guard(ctx)
}

// authorizeNot leaves the logins of clients to the identity providers: no site has the pages for them. The authorization server
// was made before the sites were known where the resources are those of the configuration before.
func (a *App) authorizeNot() {
	a.coreMu.Lock()
	defer a.coreMu.Unlock()
	a.noPages = true
	if a.core != nil && a.core.Authorization != nil {
		a.core.Authorization, a.core.Authenticator = nil, a.core.newAuthenticator(nil)
	}
}

// checkReach notes the connections that other sites take from the gateway's sites, and fails when they take all.
func (a *App) checkReach(ctx caddy.Context) error {
	a.coreMu.Lock()
	public, err := url.Parse(a.core.PublicURL)
	a.coreMu.Unlock()
	if err == nil {
		a.taken, err = sites.CheckReach(ctx, public)
	}
	return err
}

// Listening returns the sockets of the configuration's servers.
func (a *App) Listening() *sockets.Listening { return &a.listening }

// Taken returns the connections that other sites take from the gateway's sites.
func (a *App) Taken() []string { return a.taken }

// addHosts lets clients use the names of the sites, which can differ from the public name.
func (a *App) addHosts(ctx caddy.Context) {
	a.coreMu.Lock()
	defer a.coreMu.Unlock()
	a.core.Names.Add(sites.Hosts(ctx))
}

// Pin returns the core and keeps it open until unpin is called: a configuration's Cleanup runs while its requests and
// streams still do. A request that arrived while its configuration was cleaned up gets the core of the running
// configuration.
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

// runningApp returns the app of the configuration that runs.
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

// newCore makes the core from the configuration alone. It does not read the store, so that the configuration can be
// checked while the store cannot be reached.
func (a *App) newCore(public *url.URL) (*Core, error) {
	guard, err := a.Egress.Guard(a.development())
	if err != nil {
		return nil, err
	}
	names, err := sites.NewNames(public, a.Origins, a.development())
	if err != nil {
		return nil, err
	}
	core := &Core{
		PublicURL: public.String(), Cookies: websession.Cookies{PublicURL: public.String()}, Names: names, Store: a.resources.store, Guard: guard, Streams: &openStreams,
		Sizes: a.Sizes.WithDefaults(), StreamBounds: a.Streams.WithDefaults(), Overload: process.NewMeter(a.MemoryLimit, a.slogger),
		Metrics: a.metrics, Log: a.slogger, Admitter: a.newAdmitter(), Tasks: a.resources.tasks, Clock: a.resources.clock, Desk: &desk,
		resources: a.resources, rulesID: a.rulesID + public.String(), AgentRules: a.agentRules(), Provisioning: a.SCIM.Rules(),
	}
	core.Brand, core.Fixed = a.brand, a.fixed
	core.Guide = a.Unconnected != settings.UnconnectedRefuse
	if err := a.bind(core); err != nil {
		return nil, err
	}
	core.Readiness = readiness.New(readiness.Options{
		Overload: core.Overload, Look: a.resources.watch.Look, Clock: core.Clock, Stored: !a.development() && core.storedBefore(),
	})
	if !a.resources.pin() {
		return nil, errors.New("the store is closing")
	}
	unpinCoordination := a.coordination.use()
	core.close = func() {
		if core.Exchanger != nil {
			core.Exchanger.Close()
		}
		if core.Broker != nil { // it was furnished
			core.Broker.Close()
		}
		unpinCoordination()
		core.resources.unpin() // not the app's: its Cleanup has dropped them before the last stream ends
	}
	return core, nil
}

// bind sets the parts of a core in which the configuration may have errors.
func (a *App) bind(core *Core) (err error) {
	if core.masters, err = a.masterKeys(); err != nil {
		return err
	}
	if err := connection.CheckReturnURLs(a.returnURLs(core.PublicURL)); err != nil {
		return err
	}
	core.Audit = a.newRecorder()
	core.Store = record.NewStore(a.resources.store, core.Audit)
	core.bindServers(a.Pinning)
	core.Tests = probe.NewTests(probe.TestsOptions{Guard: core.Guard, Counters: a.resources.tests, Store: core.Store, Log: core.Log, Now: time.Now})
	if err = a.bindIdentities(core); err != nil {
		return err
	}
	if core.receivers, err = a.Notify.Receivers(core.Guard, time.Now); err != nil {
		return err
	}
	core.Refused = issuers.NewRefusedTokens(&core.Issuers, &adminapi.RefusedTokens, time.Now)
	books := usage.Options{Book: a.resources.usage, Audit: core.Audit, Log: a.slogger, Prices: a.Prices}
	if development := a.Development(); development != nil {
		books.Development = development.Models().Prices
	}
	if core.Usage, err = usage.New(books); err != nil {
		return err
	}
	core.Logins, err = browsers.New(browsers.Options{PublicURL: core.PublicURL, Issuers: &core.Issuers, Store: core.Store, Guard: core.Guard, Log: core.Log, Now: time.Now})
	if err != nil {
		return err
	}
	if a.AuthorizationServer.Required() && len(core.Logins.Issuers()) == 0 {
		return errors.New("authorization_server on needs an identity with a login_client: users log in there")
	}
	if core.directory, err = a.readOnlyEntries(core); err != nil {
		return err
	}
	return core.bindModels(a)
}

// furnish makes the parts that need the data keys of the store. Nobody has the core yet, so nobody sees it half
// finished.
func (a *App) furnish(ctx context.Context, core *Core) (err error) {
	if core.Keyring, err = core.resources.openKeyring(ctx, core.masters); err != nil {
		return err
	}
	core.digester = apikey.NewDigester(core.Keyring)
	if err = a.bindAuthenticator(core); err != nil {
		return err
	}
	core.Accounts = core.newCatalog()
	core.Audit.SetKeys(core.Keyring.Signer(record.SigningPurpose), core.Keyring.MAC(record.MACPurpose))
	core.Logins.Browsers = websession.NewSealer(core.Keyring, core.PublicURL, core.sharedNow)
	core.bindApprovals(a.ApprovalClients, a.Development())
	core.Announcer.Start()
	core.Sessions = session.New(core.Keyring.Sealer("mcp session"), time.Now)
	core.Conversations = conversation.New(conversation.Options{Memory: core.resources.conversations, Store: core.Store, Sessions: core.Sessions, Now: time.Now})
	core.Questions = session.NewQuestions(core.Keyring.MAC("mcp question"))
	core.BindReader()
	if core.Broker, err = a.newBroker(core); err != nil { // the last that can fail: with it the core is furnished
		return err
	}
	core.Exchanger = a.newExchanger(core)
	core.Jobs = core.newJobs()
	core.Connections = connections.New(core.Broker, core.Streams, core.Metrics)
	return nil
}

// newJobs makes the runner of jobs. The data keys must be open.
func (c *Core) newJobs() *jobs.Runner {
	node, err := os.Hostname()
	if err != nil {
		node = "unknown" // it is shown to people only
	}
	return jobs.New(jobs.Options{
		Store: c.Store, Vault: c.Keyring, Node: node, Now: time.Now, Log: c.Log,
		Work: map[storage.JobKind]jobs.Work{
			storage.JobReplay: jobs.Replay(c.Store, c.Audit.Records), storage.JobEval: jobs.Eval(c.Store, c.askFor, ErrNoRuntime, time.Now),
		},
	})
}
