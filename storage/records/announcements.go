package records

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	announcementColumns = `id, organization_id, approval_id, event, receiver, recipient, number, text, state, created_at, next_at, ended_at, attempts, last_error`

	insertAnnouncementSQL = `INSERT INTO announcements (` + announcementColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`
	countWaitingSQL       = `SELECT count(*) FROM announcements WHERE organization_id = $1 AND receiver = $2 AND state = 'waiting'`
	// Each organization has a share, and the first of each come first: one with many announcements does not delay
	// another's.
	dueAnnouncementsSQL = `SELECT ` + announcementColumns + ` FROM (SELECT ` + announcementColumns + `,
		row_number() OVER (PARTITION BY organization_id ORDER BY next_at, id) AS place FROM announcements a
		WHERE receiver = $1 AND state = 'waiting' AND next_at <= $2 AND NOT EXISTS (SELECT 1 FROM announcements b
			WHERE b.organization_id = a.organization_id AND b.approval_id = a.approval_id AND b.receiver = a.receiver
				AND b.recipient = a.recipient AND b.number < a.number AND b.state = 'waiting')) due
		WHERE place <= $4 ORDER BY place, next_at, id LIMIT $3`
	// Of several nodes that find it due, only one gets it. A node that was too slow changes nothing any more.
	claimAnnouncementSQL = `UPDATE announcements SET next_at = $4 WHERE organization_id = $1 AND id = $2 AND next_at = $3 AND state = 'waiting'`
	triedAnnouncementSQL = `UPDATE announcements SET next_at = $4, state = $5, ended_at = $6, attempts = $7, last_error = $8
		WHERE organization_id = $1 AND id = $2 AND next_at = $3 AND state = 'waiting'`
	listAnnouncementsSQL = `SELECT ` + announcementColumns + ` FROM announcements
		WHERE organization_id = $1 AND ($2 = '' OR state = $2) AND ($3 = '' OR approval_id = $3) AND ($4 = '' OR id < $4) ORDER BY id DESC LIMIT $5`
	// A call that was decided does not expire.
	cancelExpirySQL = `DELETE FROM announcements WHERE organization_id = $1 AND approval_id = $2 AND event = 'approval.expired' AND state = 'waiting'`

	addresseesSQL = `SELECT u.id, u.organization_id, u.issuer, u.subject, u.kind, u.name, u.email, u.created_at, u.seen_at, u.revoked_at,
			u.logged_out_at, u.facts, u.facts_at, COALESCE(s.facts, '{}'), COALESCE(s.facts_at, $4)
		FROM users u LEFT JOIN session_facts s ON s.organization_id = u.organization_id AND s.user_id = u.id
		WHERE u.organization_id = $1 AND u.id > $2 AND u.kind = 'person' AND u.email <> '' ORDER BY u.id LIMIT $3`
)

func (t *texts) announcements(d Dialect) {
	t.forgetAnnouncements = `DELETE FROM announcements WHERE created_at <= $1` + d.OnlyOwn
}

func scanAnnouncement(r Row) (a storage.Announcement, err error) {
	err = r.Scan(&a.ID, &a.OrganizationID, &a.ApprovalID, &a.Event, &a.Receiver, &a.Recipient, &a.Number, &a.Text, &a.State,
		timeColumn{&a.CreatedAt}, timeColumn{&a.NextAt}, timeColumn{&a.EndedAt}, &a.Attempts, &a.LastError)
	return a, err
}

// announce stores the announcements of an approval that the caller wants. It makes room by forgetting old ones.
func (s *work) announce(ctx context.Context, tx Tx, a storage.Approval, now time.Time) error {
	announcing := storage.AnnouncingOf(ctx)
	if announcing == nil {
		return nil
	}
	all := announcing(a)
	if len(all) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, s.texts.forgetAnnouncements, now.Add(-storage.AnnouncementKept).UnixMicro(), a.OrganizationID); err != nil {
		return err
	}
	return insertAnnouncements(ctx, tx, a.OrganizationID, all)
}

func insertAnnouncements(ctx context.Context, tx Tx, organization string, all []storage.Announcement) error {
	for _, v := range all {
		if v.OrganizationID != organization {
			return storage.ErrNotFound
		}
		waiting, err := One(ctx, tx, ScanInt, countWaitingSQL, organization, v.Receiver)
		if err != nil {
			return err
		}
		if waiting >= storage.MaxWaitingAnnouncements {
			continue
		}
		if _, err := tx.Exec(ctx, insertAnnouncementSQL, v.ID, v.OrganizationID, v.ApprovalID, v.Event, v.Receiver, v.Recipient, v.Number, v.Text,
			storage.AnnouncementWaiting, v.CreatedAt.UnixMicro(), v.NextAt.UnixMicro(), never(), 0, ""); err != nil {
			return err
		}
	}
	return nil
}

// DueAnnouncements implements storage.Announcements.
func (s announcementsStore) DueAnnouncements(ctx context.Context, receiver string, now time.Time, limit, share int) (due []storage.Announcement, err error) {
	err = s.readAcross(ctx, func(ctx context.Context, q Querier) (err error) {
		due, err = Many(ctx, q, scanAnnouncement, dueAnnouncementsSQL, receiver, now.UnixMicro(), limit, share)
		return err
	})
	return due, err
}

// ClaimAnnouncement implements storage.Announcements.
func (s announcementsStore) ClaimAnnouncement(ctx context.Context, a storage.Announcement, until time.Time) error {
	return s.write(ctx, a.OrganizationID, func(ctx context.Context, tx Tx) error {
		return execOne(ctx, tx, claimAnnouncementSQL, a.OrganizationID, a.ID, a.NextAt.UnixMicro(), until.UnixMicro())
	})
}

// TriedAnnouncement implements storage.Announcements.
func (s announcementsStore) TriedAnnouncement(ctx context.Context, claimed time.Time, a storage.Announcement, more []storage.Announcement) error {
	return s.write(ctx, a.OrganizationID, func(ctx context.Context, tx Tx) error {
		err := execOne(ctx, tx, triedAnnouncementSQL, a.OrganizationID, a.ID, claimed.UnixMicro(), a.NextAt.UnixMicro(), a.State,
			a.EndedAt.UnixMicro(), a.Attempts, a.LastError)
		if err != nil {
			return err
		}
		return insertAnnouncements(ctx, tx, a.OrganizationID, more)
	})
}

// Announcements implements storage.Announcements.
func (s announcementsStore) Announcements(ctx context.Context, f storage.AnnouncementFilter) (all []storage.Announcement, err error) {
	err = s.read(ctx, f.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		all, err = Many(ctx, q, scanAnnouncement, listAnnouncementsSQL, f.OrganizationID, f.State, f.ApprovalID, f.Before, f.Limit)
		return err
	})
	return all, err
}

// Addressees implements storage.Announcements.
func (s announcementsStore) Addressees(ctx context.Context, organization, after string, limit int) (all []storage.Addressee, err error) {
	scan := func(r Row) (a storage.Addressee, err error) {
		u := &a.User
		err = r.Scan(&u.ID, &u.OrganizationID, &u.Issuer, &u.Subject, &u.Kind, &u.Name, &u.Email,
			timeColumn{&u.CreatedAt}, timeColumn{&u.SeenAt}, timeColumn{&u.RevokedAt}, timeColumn{&u.LoggedOutAt},
			jsonColumn{&u.Facts}, timeColumn{&u.FactsAt}, jsonColumn{&a.Session}, timeColumn{&a.Session.At})
		return a, err
	}
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		all, err = Many(ctx, q, scan, addresseesSQL, organization, after, limit, never())
		return err
	})
	return all, err
}
