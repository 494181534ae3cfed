package app

import (
	"context"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/bruteforce"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/refused"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/modules/app/adminapi"
)

// maxLook is the longest time that a refusal waits for the keys of an issuer, only to check whether the token is
// signed.
const maxLook = 2 * time.Second

// RememberRefused keeps the claims of a refused token, for administrators. remote is the peer of the connection.
func (c *Core) RememberRefused(ctx context.Context, raw, remote, path string, status int, err error) {
	from, now := bruteforce.Address(remote), time.Now()
	if !adminapi.RefusedTokens.Room(from, now) {
		return
	}
	r := refused.Refusal{Err: err, Path: path, Status: status, Issuers: c.issuers}
	unverified, parsing := token.Parse(raw)
	if parsing != nil {
		e := refused.Describe(r)
		e.At, e.From = now.UTC(), from
		adminapi.RefusedTokens.Add(e)
		return
	}
	r.Token = &unverified
	issuer, _ := unverified.Issuer()
	identity := c.identities[string(issuer)]
	if identity != nil {
		r.Of = &refused.Identity{Options: identity.Verifier().Options(), Mapping: identity.Rules().Mapping}
	}
	e := refused.Describe(r)
	e.At, e.From = now.UTC(), from
	ctx, cancel := context.WithTimeout(ctx, maxLook)
	defer cancel()
	if identity != nil && identity.Verifier().Signed(ctx, unverified) {
		e.Verified = true
		e.OrganizationID = organizationOf(&token.Claims{Vouched: token.Vouched{Issuer: string(issuer)}, Object: unverified.Payload()}, r.Of.Mapping)
	}
	adminapi.RefusedTokens.Add(e)
}

// organizationOf returns the id of the organization that claims name; "" when they name none or several.
func organizationOf(claims *token.Claims, mapping caller.Mapping) string {
	who, err := caller.Map(claims, mapping)
	if err != nil {
		return ""
	}
	if who.Organization.ID != "" {
		return who.Organization.ID
	}
	return who.Organization.DerivedID
}

// RefusedTokens returns the tokens that this process refused within the last hour and that an administrator may see,
// the newest first. These are tokens that are signed by their issuer and name the administrator's organization. All
// other tokens may name people of other organizations. They are shown only where the configuration knows no other
// organization.
func (c *Core) RefusedTokens(who *authn.Caller) []refused.Entry {
	entries := adminapi.RefusedTokens.Entries(time.Now())
	if c.SoleOrganization(who.OrganizationID) {
		return entries
	}
	return slices.DeleteFunc(entries, func(e refused.Entry) bool { return !e.Verified || e.OrganizationID != who.OrganizationID })
}

// SoleOrganization reports whether every identity of the configuration is for that organization and for no other.
func (c *Core) SoleOrganization(id string) bool {
	for _, issuer := range c.issuers {
		mapping := c.identities[issuer].Rules().Mapping
		if mapping.Organization == "" {
			return false
		}
		of := mapping.Issuer
		if of == "" {
			of = issuer
		}
		if mapping.Organization != id && caller.OrganizationID(of, mapping.Organization) != id {
			return false
		}
	}
	return len(c.issuers) > 0
}
