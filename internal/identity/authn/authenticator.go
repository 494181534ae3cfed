// Package authn proves who sends a request: the bearer of a token from a configured issuer, or of an API key. It finds
// their user and agent in the store, and notices when one of them is revoked. An error proves nobody.
package authn

import (
	"time"

	"github.com/durward-gateway/durward/internal/identity/apikey"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/storage"
)

// Issuer is an issuer of tokens that are accepted.
type Issuer interface {
	// Verifier returns the verifier of its tokens.
	Verifier() *token.Verifier
	// Rules returns the rules for the claims of its tokens: which of them hold organization, roles, groups and agent, and
	// their meaning.
	Rules() caller.Rules
}

// Options holds the dependencies of an Authenticator. Memory is required, Digester only for API keys.
type Options struct {
	// Memory outlives the configuration. It must stay open as long as the authenticator is used.
	Memory *Memory
	// Issuers holds the issuers whose tokens are accepted, by the `iss` of these.
	Issuers map[string]Issuer
	// Logins accepts the gateway's own access tokens; nil: none are accepted.
	Logins *Logins
	// RulesID names everything in the configuration on which the verdict about a token depends. Authenticators with the
	// same one share their verdicts.
	RulesID string
	// Digester makes the digests by which the store knows API keys.
	Digester *apikey.Digester
	// RegisterAgents reports whether a client becomes an agent when its first token is seen.
	RegisterAgents bool
	// RequireAgents reports whether only clients that are registered as agents may use servers.
	RequireAgents bool
	// Provisioning holds the rules for users whom an identity provider provisions.
	Provisioning Provisioning
	// Shared converts a time of this machine's clock to the clock that all nodes have in common; nil: they are the same.
	Shared func(local time.Time) time.Time
	// Resolved is told the organization that the claims of a new token named; nil: nobody is.
	Resolved func(o storage.Organization, now time.Time)
}

// Authenticator proves bearers in the way of one configuration. It is safe for concurrent use.
type Authenticator struct {
	memory         *Memory
	issuers        map[string]Issuer
	logins         *Logins
	rulesID        string
	digester       *apikey.Digester
	registerAgents bool
	requireAgents  bool
	provisioning   Provisioning
	shared         func(local time.Time) time.Time
	resolved       func(o storage.Organization, now time.Time)
}

// New makes an authenticator.
func New(o Options) *Authenticator {
	a := &Authenticator{
		memory: o.Memory, issuers: o.Issuers, logins: o.Logins, rulesID: o.RulesID, digester: o.Digester,
		registerAgents: o.RegisterAgents, requireAgents: o.RequireAgents, provisioning: o.Provisioning, shared: o.Shared, resolved: o.Resolved,
	}
	if a.provisioning.Match == "" {
		a.provisioning.Match = storage.MatchUserName
	}
	if a.shared == nil {
		a.shared = func(local time.Time) time.Time { return local }
	}
	if a.resolved == nil {
		a.resolved = func(storage.Organization, time.Time) {}
	}
	return a
}
