package app

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/websession"
	"github.com/durward-gateway/durward/modules/app/browsers"
	"github.com/durward-gateway/durward/storage"
)

// bindIdentities gives the identities their binding, and makes them the core's issuers.
func (a *App) bindIdentities(core *Core) error {
	binding := Binding{PublicURL: core.PublicURL, DataDirectory: a.dataDirectory(), EgressID: a.egressID, Store: core.Store, Guard: core.Guard, Log: core.Log, Now: time.Now}
	for _, identity := range a.identities {
		if err := identity.Bind(binding); err != nil {
			return fmt.Errorf("setting up identity: %w", err)
		}
		if err := core.Issuers.Add(identity); err != nil {
			return err
		}
	}
	return nil
}

// AuthorizationServers lists the issuers at which clients get tokens: the gateway, where it is an authorization server,
// else the identity providers.
func (c *Core) AuthorizationServers() []string {
	if c.Authorization != nil {
		return []string{c.PublicURL}
	}
	return c.Issuers.Names()
}

// AgentIssuer returns the issuer under which the store keeps the clients of an issuer of tokens as agents.
func (c *Core) AgentIssuer(issuer string) string {
	if c.Authorization != nil && issuer == c.PublicURL {
		return c.Authorization.Owner()
	}
	return c.Issuers.Owner(issuer)
}

// ClientScopes lists the scopes that clients should ask for there. The gateway's own tokens have none.
func (c *Core) ClientScopes() []string {
	if c.Authorization != nil {
		return nil
	}
	return c.Issuers.Scopes()
}

// BrowserUser returns the user who is logged in with the browser that sends a request; nil when nobody is, or when they may
// not come in any more: a session can be older than what is provisioned about its user. Errors are the store's.
func (c *Core) BrowserUser(r *http.Request) (*browsers.User, error) {
	user, err := c.Logins.User(r.Context(), c.Cookies.Value(r, websession.CookieSession))
	if err != nil || user == nil {
		return nil, err
	}
	switch err := c.Authenticator.Admits(r.Context(), user.OrganizationID, user.UserID); {
	case errors.Is(err, authn.ErrShutOut):
		return nil, nil //nolint:nilnil // nobody is logged in
	case err != nil:
		return nil, err
	}
	return user, nil
}

// noticeOrganization tells the operator that a token made an organization, which is the case when the organization was
// made now. A second organization is most often the result of a wrongly chosen claim, which then makes an organization
// for each user or client. Slugs are shown: the operator has to find them; they are those of a verified token.
func (c *Core) noticeOrganization(o storage.Organization, now time.Time) {
	last := c.resources.organization.Swap(&o.ID)
	if !o.CreatedAt.Equal(now.UTC().Truncate(time.Microsecond)) {
		return
	}
	if last == nil || *last == o.ID {
		c.Log.Info("the first organization appeared", "organization", o.ID, "slug", o.Slug, "issuer", o.Issuer)
		return
	}
	c.Log.Warn("another organization appeared, because a token names it; when all users are of one, write `organization` at the identity, and see which claim named this one with `claim org`",
		"organization", o.ID, "slug", o.Slug, "issuer", o.Issuer)
}
