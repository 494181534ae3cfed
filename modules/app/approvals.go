package app

import (
	"context"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/policy/announce"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

// approvalBell announces decisions. All configurations share it: a decision that a new configuration hears of releases
// a call that an old one holds.
var approvalBell approval.Bell

// approvals holds the parts that keep calls waiting until their users approve.
type approvals struct {
	// Approvals keeps the requests for approval and the decisions.
	Approvals *approval.Engine
	// Announcer tells others about held calls.
	Announcer *announce.Sender
	// Asks seals the state that clients carry from the question to their answer.
	Asks *approval.States
	// ApprovalPage reports whether users can decide on the gateway's own page.
	ApprovalPage bool
	// ApprovalClients lists the clients with whose tokens users can decide.
	ApprovalClients []string

	receivers []announce.Receiver // of the announcer
}

// bindApprovals makes the engine. clients lists those with which users decide out of band; when it is empty, users
// decide with the clients with which they log in at the gateway's own pages, and with those of development mode.
func (c *Core) bindApprovals(clients []string, development DevelopmentIdentity) {
	own := c.Logins.Clients()
	c.ApprovalClients = clients
	c.ApprovalPage = len(own) > 0 && (len(clients) == 0 || slices.ContainsFunc(own, func(client string) bool { return slices.Contains(clients, client) }))
	if len(clients) == 0 {
		clients = own
		if development != nil {
			clients = append(clients, development.Clients().Approval...)
		}
	}
	if len(clients) == 0 {
		c.Log.Info("nobody can decide on held calls out of band, or make API keys for MCP servers: there is neither a login_client nor approval_clients")
	}
	c.Announcer = announce.New(announce.Options{
		Receivers: c.receivers, Store: c.Store, Guard: c.Guard, Page: c.ApprovalURL, Count: metrics.CountAnnouncement, Log: c.Log, Now: time.Now,
		Said: func(a *storage.Approval) (approval.Said, error) { return c.Approvals.Said(a) },
	})
	groups := func(ctx context.Context, organization, user string, said []string) ([]string, error) {
		named, _, err := c.Authenticator.Groups(ctx, organization, user, said) // who decides has the groups that are known
		return named, err
	}
	options := approval.Options{Groups: groups, Store: c.Store, Vault: c.Keyring, Bell: &approvalBell, Clients: clients, Now: time.Now}
	if len(c.receivers) > 0 {
		options.Announcer = c.Announcer
	}
	c.Approvals = approval.New(options)
	c.Asks = approval.NewStates(c.Keyring.Sealer("approval"), c.PublicURL, time.Now)
}

// silence ends the announcements of this configuration. The next one sends what waits.
func (c *Core) silence() {
	if c.Announcer != nil {
		c.Announcer.Close()
	}
}

// ApprovalURL returns the address of the page on which a user decides on a held call.
func (c *Core) ApprovalURL(id string) string { return c.PublicURL + paths.Approvals + "/" + id }

// ApprovalWarning returns the problem with rules that ask for approval here; "" when users have a page to decide on.
func (c *Core) ApprovalWarning() string {
	switch {
	case c.ApprovalPage:
		return ""
	case len(c.ApprovalClients) > 0:
		return "This gateway has no page to approve calls on: users decide with the clients of `approval_clients`, or in MCP clients that ask them. An identity with a `login_client` brings the page"
	}
	return "Nobody can approve calls outside of MCP clients that ask their user themselves: this gateway has no page for it. Set up an identity with a `login_client`, or `approval_clients`"
}
