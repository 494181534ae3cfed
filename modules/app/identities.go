package app

import (
	"fmt"
	"slices"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// requestedScopes returns the scopes of all identities, each once.
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
