package caller

import "github.com/google/uuid"

// Prefixes for derived ids, which are version 5 uuids (RFC 9562 section 5.5) in a namespace of their issuer. A prefix
// keeps an organization's slug apart from a user's subject with the same text.
const (
	userPrefix         = "user:"
	organizationPrefix = "organization:"
)

// UserID derives the id of a user whose subject is not a uuid, or already belongs to another issuer's user.
func UserID(issuer, subject string) string { return derive(issuer, userPrefix+subject) }

// OrganizationID derives the id of an organization that its issuer names only by a slug.
func OrganizationID(issuer, slug string) string { return derive(issuer, organizationPrefix+slug) }

func derive(issuer, name string) string {
	namespace := uuid.NewSHA1(uuid.NameSpaceURL, []byte(issuer))
	return uuid.NewSHA1(namespace, []byte(name)).String()
}
