package issuers

import (
	"context"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/bruteforce"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/refused"
	"github.com/durward-gateway/durward/internal/identity/token"
)

// maxLook is the longest time that a refusal waits for the keys of an issuer, only to check whether the token is
// signed.
const maxLook = 2 * time.Second

// RefusedTokens shows administrators the tokens that the gateway refused.
type RefusedTokens struct {
	issuers *Issuers
	book    *refused.Book
	now     func() time.Time
}

// NewRefusedTokens explains refused tokens by the issuers of a configuration. The book outlives the configuration.
func NewRefusedTokens(known *Issuers, book *refused.Book, now func() time.Time) *RefusedTokens {
	return &RefusedTokens{issuers: known, book: book, now: now}
}

// Remember keeps the claims of a refused token. remote is the peer of the connection.
func (t *RefusedTokens) Remember(ctx context.Context, raw, remote, path string, status int, err error) {
	from, now := bruteforce.Address(remote), t.now()
	if !t.book.Room(from, now) {
		return
	}
	r := refused.Refusal{Err: err, Path: path, Status: status, Issuers: t.issuers.names}
	unverified, parsing := token.Parse(raw)
	if parsing != nil {
		e := refused.Describe(r)
		e.At, e.From = now.UTC(), from
		t.book.Add(e)
		return
	}
	r.Token = &unverified
	issuer, _ := unverified.Issuer()
	known := t.issuers.byName[string(issuer)]
	if known != nil {
		r.Of = &refused.Identity{Options: known.Verifier().Options(), Mapping: known.Rules().Mapping}
	}
	e := refused.Describe(r)
	e.At, e.From = now.UTC(), from
	ctx, cancel := context.WithTimeout(ctx, maxLook)
	defer cancel()
	if known != nil && known.Verifier().Signed(ctx, unverified) {
		e.Verified = true
		e.OrganizationID = organizationOf(&token.Claims{Vouched: token.Vouched{Issuer: string(issuer)}, Object: unverified.Payload()}, r.Of.Mapping)
	}
	t.book.Add(e)
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

// SeenBy returns the tokens that this process refused within the last hour and that an administrator may see,
// the newest first. These are tokens that are signed by their issuer and name the administrator's organization. All
// other tokens may name people of other organizations. They are shown only where the configuration knows no other
// organization.
func (t *RefusedTokens) SeenBy(who *authn.Caller) []refused.Entry {
	entries := t.book.Entries(t.now())
	if t.issuers.ServeOnly(who.OrganizationID) {
		return entries
	}
	return slices.DeleteFunc(entries, func(e refused.Entry) bool { return !e.Verified || e.OrganizationID != who.OrganizationID })
}
