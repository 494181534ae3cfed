package app

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/policy/evaluator"
	"github.com/durward-gateway/durward/internal/ratelimit/admission"
	"github.com/durward-gateway/durward/modules/app/authorization"
	"github.com/durward-gateway/durward/modules/app/settings"
)

// bearerNotes holds what the steps of the pipeline remember about the last calls of a bearer.
type bearerNotes struct {
	connection connection.Recent
	server     evaluator.Recent
	limits     admission.Recent
	models     admission.RecentModels
}

// newAuthenticator makes the authenticator of the configuration.
func (c *Core) newAuthenticator(accepted *authn.Logins) *authn.Authenticator {
	return authn.New(authn.Options{
		Memory: c.resources.bearers, Issuers: c.Issuers.ByName(), Logins: accepted, RulesID: c.rulesID + strconv.FormatBool(accepted != nil), Digester: c.digester,
		RegisterAgents: c.AgentRules.AutoRegister, RequireAgents: c.AgentRules.RequireRegistered,
		Provisioning: c.Provisioning, Shared: c.Clock.Shared, Resolved: c.noticeOrganization,
	})
}

// sharedNow returns the time that all nodes have in common.
func (c *Core) sharedNow() time.Time { return c.Clock.Shared(time.Now()) }

// bindAuthenticator makes the authenticator, and the authorization server whose tokens it accepts.
func (a *App) bindAuthenticator(core *Core) (err error) {
	options := authorization.Options{
		PublicURL: core.PublicURL, On: a.AuthorizationServer.On(!a.noPages && core.allLogIn()), Rules: a.AuthorizationServer, Store: core.Store, Keyring: core.Keyring, Guard: core.Guard,
		Browsers: core.Logins, Issuers: &core.Issuers, Audit: core.Audit, Log: core.Log, Now: core.sharedNow,
	}
	if development := a.Development(); development != nil {
		options.Rules = options.Rules.With(development.Clients().Known)
		// It stays the same when the gateway listens on another address, and so do the agents.
		options.Owner = core.Issuers.Owner(development.IssuerID())
	}
	core.Authorization, err = authorization.New(options)
	if err != nil {
		return err
	}
	accepted, err := core.Authorization.Accepted()
	if err != nil {
		return err
	}
	core.Authenticator = core.newAuthenticator(accepted)
	core.Authorization.Bind(core.Authenticator)
	return nil
}

// allLogIn reports whether the users of every identity can log in at the gateway's pages.
func (c *Core) allLogIn() bool {
	logins := len(c.Logins.Issuers())
	return logins > 0 && logins == len(c.Issuers.Names())
}

// SetBearer sets the call's caller and agent to those of a bearer.
func (c *Call) SetBearer(b authn.Bearer) {
	c.Caller, c.Agent, c.bearer = b.Caller(), b.Agent(), b
	c.notes, _ = b.Notes().(*bearerNotes)
}

// tokenNotes returns the notes about a caller who sent a token; nil for others. Notes about a key are made anew after
// each write in its organization, when the connection and the server are looked up anew too.
func (c *Call) tokenNotes() *bearerNotes {
	if c.notes == nil || c.Caller.Key != nil {
		return nil
	}
	return c.notes
}

// epoch returns the present epoch of the caller's organization.
func (c *Call) epoch() cache.Epoch {
	if c.bearer.Proven() {
		return c.bearer.History().Current()
	}
	return c.Core.resources.epochs.Current(c.Caller.OrganizationID)
}

// renewStanding returns a *streams.Ended when the caller's token or key was revoked since the call began. The store is
// asked only when something of the organization was written since.
func (c *Call) renewStanding(ctx context.Context) error {
	if !c.bearer.Proven() {
		return nil
	}
	return endedWhenRevoked(c.Core.Authenticator.Renew(ctx, &c.bearer))
}

// endedWhenRevoked turns the refusal of a credential, which was good before, into the end of its streams.
func endedWhenRevoked(err error) error {
	if errors.Is(err, token.ErrInvalid) {
		return &streams.Ended{Reason: streams.Revoked}
	}
	return err
}

// AuditRefusal records that a credential was refused, in the log of its caller's organization when the caller is known.
func (c *Core) AuditRefusal(refusal error, path string) {
	c.Audit.RefusedBearer(RecordedBearer(authn.RefusedCaller(refusal)), token.Reason(refusal), path)
}

// RecordedBearer returns a caller's name in records of refusals and logins; nil is nobody.
func RecordedBearer(who *authn.Caller) (b record.Bearer) {
	if who == nil {
		return b
	}
	b = record.Bearer{OrganizationID: who.OrganizationID, UserID: who.UserID, Client: who.Agent}
	if who.Key != nil {
		b.KeyID = who.Key.ID
	}
	return b
}

// StreamsOpen reports whether streams of /sse that no rule denies are open to every connected user.
func (a *App) StreamsOpen() bool { return a.SSE == nil || !a.SSE.RequireGrant }

// agentRules returns the rules that are in force.
func (a *App) agentRules() settings.AgentRules {
	if a.Agents != nil {
		return *a.Agents
	}
	return settings.AgentRules{AutoRegister: a.development()}
}
