package storage

import (
	"context"
	"time"
)

// These are bounds of announcements.
const (
	// AnnouncementLifetime is the time for which a receiver is tried again.
	AnnouncementLifetime = 24 * time.Hour
	// AnnouncementKept is the time for which the log of deliveries keeps an announcement.
	AnnouncementKept = 7 * 24 * time.Hour
	// MaxWaitingAnnouncements is the largest number of announcements of an organization that wait for one receiver. Further
	// ones are not made.
	MaxWaitingAnnouncements = 10_000
)

// AnnouncementState is the state of an announcement.
type AnnouncementState string

// States of an announcement.
const (
	AnnouncementWaiting   AnnouncementState = "waiting"
	AnnouncementDelivered AnnouncementState = "delivered"
	AnnouncementFailed    AnnouncementState = "failed" // given up
)

// Events of held calls that are announced.
const (
	EventHeld    = "approval.held"
	EventDecided = "approval.decided"
	EventExpired = "approval.expired"
)

// Announcement tells a receiver about an event of a held call.
type Announcement struct {
	ID             string // UUIDv7; the receiver knows the announcement by it
	OrganizationID string
	ApprovalID     string
	Event          string
	// Receiver is the name of the receiver in the configuration. Recipient is the address of a mail, "" for all others.
	Receiver, Recipient string
	// Number is the place of the announcement among those of the same call to the same receiver. It is not sent while one
	// with a lower number waits.
	Number int
	// Text holds the facts about the call, without its arguments.
	Text      string
	State     AnnouncementState
	CreatedAt time.Time
	// NextAt is the earliest time of the next attempt.
	NextAt   time.Time
	EndedAt  time.Time // zero while it waits
	Attempts int       // made so far
	// LastError is the reason why the last attempt failed; "" when none did.
	LastError string
}

// AnnouncementFilter selects announcements of an organization.
type AnnouncementFilter struct {
	OrganizationID string
	State          AnnouncementState // "" does not narrow
	ApprovalID     string            // "" does not narrow
	// Before is the id of the announcement behind which the list goes on; "" for its beginning.
	Before string
	Limit  int
}

// Announcing returns the announcements of an approval that was just made, or just decided. It is called in the transaction
// of that write, and again when that is tried again. It must not use the store.
type Announcing func(a Approval) []Announcement

type announcingKey struct{}

// WithAnnouncing makes the writes of approvals under ctx store announcements.
func WithAnnouncing(ctx context.Context, of Announcing) context.Context {
	return context.WithValue(ctx, announcingKey{}, of)
}

// AnnouncingOf returns the value of WithAnnouncing, nil when there is none.
func AnnouncingOf(ctx context.Context) Announcing {
	of, _ := ctx.Value(announcingKey{}).(Announcing)
	return of
}

// Addressee is a person with an e-mail address, and the facts that say which groups and roles they have.
type Addressee struct {
	User    User
	Session SessionFacts // of the last login with a browser; zero for none
}
