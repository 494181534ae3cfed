package app

import (
	"time"

	"github.com/durward-gateway/durward/storage"
)

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
