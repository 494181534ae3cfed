package records

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// seenInterval is the maximum age of SeenAt: a write per request would make every request wait for the disk.
const seenInterval = time.Minute

const (
	organizationByIDSQL   = `SELECT id, issuer, slug, created_at FROM organizations WHERE id = $1`
	organizationBySlugSQL = `SELECT id, issuer, slug, created_at FROM organizations WHERE issuer = $1 AND slug = $2`

	organizationsSQL = `SELECT id, issuer, slug, created_at FROM organizations ORDER BY id`

	putOrganizationSQL = `INSERT INTO organizations (id, issuer, slug, created_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (id) DO UPDATE SET slug = excluded.slug`

	userColumns      = `id, organization_id, issuer, subject, kind, name, email, created_at, seen_at, revoked_at, logged_out_at, facts, facts_at`
	userSQL          = `SELECT ` + userColumns + ` FROM users WHERE organization_id = $1 AND id = $2`
	userBySubjectSQL = `SELECT ` + userColumns + ` FROM users WHERE organization_id = $1 AND issuer = $2 AND subject = $3`
	userIDTakenSQL   = `SELECT 1 FROM users WHERE id = $1 AND NOT (issuer = $2 AND subject = $3) LIMIT 1`

	putUserSQL = `INSERT INTO users (` + userColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
		ON CONFLICT (organization_id, id) DO UPDATE SET kind = excluded.kind, name = excluded.name, email = excluded.email, seen_at = excluded.seen_at,
			facts = CASE WHEN users.facts_at < excluded.facts_at THEN excluded.facts ELSE users.facts END,
			facts_at = CASE WHEN users.facts_at < excluded.facts_at THEN excluded.facts_at ELSE users.facts_at END`
	revokeUserSQL = `UPDATE users SET revoked_at = $3 WHERE organization_id = $1 AND id = $2`
	logOutUserSQL = `UPDATE users SET logged_out_at = CASE WHEN logged_out_at < $3 THEN $3 ELSE logged_out_at END WHERE organization_id = $1 AND id = $2`

	putSessionFactsSQL = `INSERT INTO session_facts (organization_id, user_id, facts, facts_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (organization_id, user_id) DO UPDATE SET facts = excluded.facts, facts_at = excluded.facts_at WHERE session_facts.facts_at < excluded.facts_at`
	sessionFactsSQL = `SELECT facts, facts_at FROM session_facts WHERE organization_id = $1 AND user_id = $2`
)

func (t *texts) users(d Dialect) {
	// A page begins behind a key: reading it costs the same wherever it is in the list.
	t.listUsers = `SELECT ` + userColumns + ` FROM users WHERE organization_id = $1 AND id > $2
		AND ($3 = '' OR ` + d.has(`lower(name)`, `$3`) + ` OR ` + d.has(`lower(email)`, `$3`) + ` OR ` + d.has(`lower(subject)`, `$3`) + `)
		ORDER BY id LIMIT $4`
}

// lower does the work of the databases' lower for texts with C collation: other letters than A to Z stay as they are.
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

func scanOrganization(r Row) (o storage.Organization, err error) {
	err = r.Scan(&o.ID, &o.Issuer, &o.Slug, timeColumn{&o.CreatedAt})
	return o, err
}

func scanUser(r Row) (u storage.User, err error) {
	err = r.Scan(&u.ID, &u.OrganizationID, &u.Issuer, &u.Subject, &u.Kind, &u.Name, &u.Email,
		timeColumn{&u.CreatedAt}, timeColumn{&u.SeenAt}, timeColumn{&u.RevokedAt}, timeColumn{&u.LoggedOutAt},
		jsonColumn{&u.Facts}, timeColumn{&u.FactsAt})
	return u, err
}

// ResolveOrganization implements storage.Identities.
func (s identitiesStore) ResolveOrganization(ctx context.Context, claim storage.OrganizationClaim, now time.Time) (storage.Organization, error) {
	if claim.Issuer == "" || claim.ID == "" && (claim.Slug == "" || claim.DerivedID == "") {
		return storage.Organization{}, errors.New("resolving an organization: the claim names none")
	}
	var o storage.Organization
	var stale bool
	err := s.readToAuthenticate(ctx, Everyone, func(ctx context.Context, q Querier) (err error) {
		o, stale, err = resolveOrganization(ctx, q, claim, now)
		return err
	})
	if err == nil && stale {
		err = s.writeToAuthenticate(ctx, Everyone, IdentityLock, func(ctx context.Context, tx Tx) (err error) {
			if o, stale, err = resolveOrganization(ctx, tx, claim, now); err != nil || !stale {
				return err
			}
			_, err = tx.Exec(ctx, putOrganizationSQL, o.ID, o.Issuer, o.Slug, o.CreatedAt.UnixMicro())
			return err
		})
	}
	if err != nil {
		return storage.Organization{}, err
	}
	return o, nil
}

// resolveOrganization finds the organization of a claim; stale says that it must be written. Slugs are names within
// an issuer: another issuer's slug finds another organization, and never becomes the slug of an organization that it
// only shares.
func resolveOrganization(ctx context.Context, q Querier, claim storage.OrganizationClaim, now time.Time) (o storage.Organization, stale bool, err error) {
	id := claim.ID
	if id == "" {
		o, err = One(ctx, q, scanOrganization, organizationBySlugSQL, claim.Issuer, claim.Slug)
		if !errors.Is(err, storage.ErrNotFound) {
			return o, false, err
		}
		id = claim.DerivedID
	}
	o, err = One(ctx, q, scanOrganization, organizationByIDSQL, id)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		o = storage.Organization{ID: id, Issuer: claim.Issuer, CreatedAt: now.UTC().Truncate(time.Microsecond)}
		stale = true
	case err != nil:
		return o, false, err
	case o.Issuer != claim.Issuer && !claim.Shared:
		return o, false, storage.ErrForeignOrganization
	case o.Issuer != claim.Issuer:
		return o, false, nil
	}
	// A slug alone renames nothing: it leads here only when the organization now has another slug.
	if claim.Slug == "" || claim.Slug == o.Slug || claim.ID == "" && o.Slug != "" {
		return o, stale, nil
	}
	_, err = One(ctx, q, scanOrganization, organizationBySlugSQL, claim.Issuer, claim.Slug)
	if errors.Is(err, storage.ErrNotFound) {
		o.Slug = claim.Slug
		return o, true, nil
	}
	return o, stale, err
}

// ResolveUser implements storage.Identities.
func (s identitiesStore) ResolveUser(ctx context.Context, claim storage.UserClaim, now time.Time) (storage.User, error) {
	if claim.Issuer == "" || claim.Subject == "" || claim.DerivedID == "" {
		return storage.User{}, errors.New("resolving a user: the claim names none")
	}
	var u storage.User
	var stale, moved bool
	err := s.readToAuthenticate(ctx, Of(claim.OrganizationID), func(ctx context.Context, q Querier) (err error) {
		u, stale, _, err = resolveUser(ctx, q, claim, now)
		return err
	})
	if err == nil && stale {
		lock := NoLock
		if u.ID == "" {
			lock = IdentityLock // at first sight others must not take the id, in whatever organization
		}
		err = s.writeToAuthenticate(ctx, Of(claim.OrganizationID), lock, func(ctx context.Context, tx Tx) (err error) {
			if u, stale, moved, err = resolveUser(ctx, tx, claim, now); err != nil || !stale {
				return err
			}
			otherFacts := takeFacts(&u, &claim)
			if u.ID == "" {
				if err := tx.Within(ctx, Everyone, func() (err error) {
					u.ID, err = freeUserID(ctx, tx, claim)
					return err
				}); err != nil {
					return err
				}
			}
			_, err = tx.Exec(ctx, putUserSQL, u.ID, u.OrganizationID, u.Issuer, u.Subject, u.Kind, u.Name, u.Email,
				u.CreatedAt.UnixMicro(), u.SeenAt.UnixMicro(), u.RevokedAt.UnixMicro(), u.LoggedOutAt.UnixMicro(), jsonText(u.Facts), u.FactsAt.UnixMicro())
			if err == nil && moved {
				_, err = tx.Change(ctx, u.OrganizationID)
			}
			if err != nil || !otherFacts {
				return err
			}
			return changeKeysOf(ctx, tx, &u)
		})
	}
	if err != nil {
		return storage.User{}, err
	}
	return u, nil
}

// resolveUser finds the user of a claim; stale says that the row must be written. At first sight the id is still "". moved says
// that a known user has another address, by which somebody who is shut out may have been provisioned: what nodes remember about
// the user has to go.
func resolveUser(ctx context.Context, q Querier, claim storage.UserClaim, now time.Time) (u storage.User, stale, moved bool, err error) {
	now = now.UTC().Truncate(time.Microsecond)
	u, err = One(ctx, q, scanUser, userBySubjectSQL, claim.OrganizationID, claim.Issuer, claim.Subject)
	if errors.Is(err, storage.ErrNotFound) {
		stale = true
		u = storage.User{OrganizationID: claim.OrganizationID, Issuer: claim.Issuer, Subject: claim.Subject, CreatedAt: now, SeenAt: now}
	} else if err != nil {
		return u, false, false, err
	}
	if now.Sub(u.SeenAt) >= seenInterval {
		u.SeenAt, stale = now, true
	}
	// A token without a name or address says nothing about them: tokens of one user differ in their scopes.
	if claim.Name != "" && claim.Name != u.Name {
		u.Name, stale = claim.Name, true
	}
	if claim.Email != "" && claim.Email != u.Email {
		moved = u.ID != ""
		u.Email, stale = claim.Email, true
	}
	if claim.Kind != u.Kind {
		u.Kind, stale = claim.Kind, true
	}
	if issued := micros(claim.IssuedAt); issued.After(u.FactsAt) && (issued.Sub(u.FactsAt) >= seenInterval || !sameFacts(u.Facts, factsAfter(&u, &claim))) {
		stale = true
	}
	return u, stale, moved, nil
}

// takeFacts copies the facts of a newer token, and reports whether they change the decisions on API keys.
func takeFacts(u *storage.User, claim *storage.UserClaim) (other bool) {
	issued := micros(claim.IssuedAt)
	if !issued.After(u.FactsAt) {
		return false
	}
	after := factsAfter(u, claim)
	other = u.FactsAt.IsZero() || !sameFacts(u.Facts, after)
	u.Facts, u.FactsAt = after, issued
	return other
}

// factsAfter returns the facts about a user after a token that is newer than the others.
func factsAfter(u *storage.User, claim *storage.UserClaim) storage.UserFacts {
	issued, after := micros(claim.IssuedAt), u.Facts
	for _, list := range []struct {
		kept *storage.Fact
		said []string
	}{{&after.Roles, claim.Roles}, {&after.Groups, claim.Groups}, {&after.Teams, claim.Teams}, {&after.Projects, claim.Projects}} {
		if list.said != nil {
			*list.kept = storage.Fact{Names: slices.Compact(slices.Sorted(slices.Values(list.said))), At: issued}
		}
	}
	return after
}

// sameFacts reports whether decisions on keys are the same by both: the names, and whether the newest token contained
// them.
func sameFacts(a, b storage.UserFacts) bool {
	same := func(a, b storage.Fact) bool { return slices.Equal(a.Names, b.Names) && a.At.IsZero() == b.At.IsZero() }
	return same(a.Roles, b.Roles) && same(a.Groups, b.Groups) && same(a.Teams, b.Teams) && same(a.Projects, b.Projects)
}

// changeKeysOf reports that decisions on a user's API keys use other facts from now on.
func changeKeysOf(ctx context.Context, tx Tx, u *storage.User) error {
	held, err := exists(ctx, tx, keyOfUserSQL, u.OrganizationID, u.ID, never())
	if err != nil || !held {
		return err
	}
	_, err = tx.Change(ctx, u.OrganizationID)
	return err
}

// freeUserID picks the first of the claim's ids that no other identity has, in any organization. Identities are
// compared by issuer and subject exactly, and with a shared id one user could reach the other's connections. It
// returns a ConflictError on user when both are taken, which takes a subject made to collide.
func freeUserID(ctx context.Context, q Querier, claim storage.UserClaim) (string, error) {
	for _, id := range []string{claim.ID, claim.DerivedID} {
		if id == "" {
			continue
		}
		taken, err := exists(ctx, q, userIDTakenSQL, id, claim.Issuer, claim.Subject)
		if err != nil || !taken {
			return id, err
		}
	}
	return "", &storage.ConflictError{Field: "user"}
}

// User implements storage.Identities.
func (s identitiesStore) User(ctx context.Context, organization, id string) (u storage.User, err error) {
	err = s.readToAuthenticate(ctx, Of(organization), func(ctx context.Context, q Querier) (err error) {
		u, err = One(ctx, q, scanUser, userSQL, organization, id)
		return err
	})
	return u, err
}

// Users implements storage.Identities.
func (s identitiesStore) Users(ctx context.Context, f storage.UserFilter) (users []storage.User, err error) {
	err = s.read(ctx, f.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		users, err = Many(ctx, q, scanUser, s.texts.listUsers, f.OrganizationID, f.After, lower(f.Search), f.Limit)
		return err
	})
	return users, err
}

// RevokeUser implements storage.Identities.
func (s identitiesStore) RevokeUser(ctx context.Context, organization, id string, at time.Time) (u storage.User, err error) {
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		if u, err = One(ctx, tx, scanUser, userSQL, organization, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, endApprovalsOfUserSQL, organization, id); err != nil {
			return err
		}
		changed, err := revokeKeysOfUser(ctx, tx, organization, id, at)
		if err != nil {
			return err
		}
		ended, err := tx.Exec(ctx, deleteLoginsOfUserSQL, organization, id)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, deleteConsentsOfUserSQL, organization, id); err != nil {
			return err
		}
		changed = changed || ended > 0
		if micros(at).After(u.RevokedAt) {
			u.RevokedAt, changed = micros(at), true
			if err := execOne(ctx, tx, revokeUserSQL, organization, id, u.RevokedAt.UnixMicro()); err != nil {
				return err
			}
		}
		if changed {
			_, err = tx.Change(ctx, organization)
		}
		return err
	})
	if err != nil {
		return storage.User{}, err
	}
	return u, nil
}

// LogOutUser implements storage.Identities.
func (s identitiesStore) LogOutUser(ctx context.Context, organization, id string, begun time.Time) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		u, err := One(ctx, tx, scanUser, userSQL, organization, id)
		if err != nil || !micros(begun).After(u.LoggedOutAt) { // the statement checks again: another node may have written since
			return err
		}
		if err := execOne(ctx, tx, logOutUserSQL, organization, id, begun.UnixMicro()); err != nil {
			return err
		}
		_, err = tx.Change(ctx, organization) // tokens of the console end with the session
		return err
	})
}

// PutSessionFacts implements storage.Identities. A user who does not exist violates a foreign key, which is ErrNotFound.
func (s identitiesStore) PutSessionFacts(ctx context.Context, organization, userID string, f storage.SessionFacts) error {
	text, err := jsonTexts(f, slices.Concat(f.Roles, f.Groups)...)
	if err != nil {
		return err
	}
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		_, err := tx.Exec(ctx, putSessionFactsSQL, organization, userID, text, f.At.UnixMicro())
		return err
	})
}

// SessionFacts implements storage.Identities.
func (s identitiesStore) SessionFacts(ctx context.Context, organization, userID string) (f storage.SessionFacts, err error) {
	scan := func(r Row) (f storage.SessionFacts, err error) {
		err = r.Scan(jsonColumn{&f}, timeColumn{&f.At})
		return f, err
	}
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		f, err = One(ctx, q, scan, sessionFactsSQL, organization, userID)
		return err
	})
	return f, err
}

const (
	connectionsOfUserSQL      = `SELECT ` + connectionColumns + ` FROM connections WHERE organization_id = $1 AND user_id = $2 ORDER BY server_id`
	countConnectionsOfUserSQL = `SELECT count(*) FROM connections WHERE organization_id = $1 AND user_id = $2`
	countKeysOfUserSQL        = `SELECT count(*) FROM api_keys WHERE organization_id = $1 AND user_id = $2 AND revoked_at = $3`
	countApprovalsOfUserSQL   = `SELECT count(*) FROM approvals WHERE organization_id = $1 AND user_id = $2 AND status IN ('pending', 'approved') AND expires_at > $3`
	countTasksOfUserSQL       = `SELECT count(*) FROM tasks WHERE organization_id = $1 AND user_id = $2 AND expires_at > $3`

	deleteConnectionsOfUserSQL   = `DELETE FROM connections WHERE organization_id = $1 AND user_id = $2`
	deleteAttemptsOfUserSQL      = `DELETE FROM attempts WHERE organization_id = $1 AND user_id = $2`
	deleteTasksOfUserSQL         = `DELETE FROM tasks WHERE organization_id = $1 AND user_id = $2`
	deleteConversationsOfUserSQL = `DELETE FROM conversations WHERE organization_id = $1 AND user_id = $2`
)

// Offboarding implements storage.Identities.
func (s identitiesStore) Offboarding(ctx context.Context, organization, id string, now time.Time) (o storage.Offboarding, err error) {
	err = s.readSnapshot(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		o, err = countOfUser(ctx, q, organization, id, now)
		return err
	})
	if err != nil {
		return storage.Offboarding{}, err
	}
	return o, nil
}

// countOfUser counts what of a user would end.
func countOfUser(ctx context.Context, q Querier, organization, id string, now time.Time) (o storage.Offboarding, err error) {
	if o.User, err = One(ctx, q, scanUser, userSQL, organization, id); err != nil {
		return o, err
	}
	if o.Sessions, err = One(ctx, q, ScanInt, countLoginsSQL, organization, id, now.UnixMicro(), never()); err != nil {
		return o, err
	}
	if o.APIKeys, err = One(ctx, q, ScanInt, countKeysOfUserSQL, organization, id, never()); err != nil {
		return o, err
	}
	if o.Connections, err = One(ctx, q, ScanInt, countConnectionsOfUserSQL, organization, id); err != nil {
		return o, err
	}
	if o.Approvals, err = One(ctx, q, ScanInt, countApprovalsOfUserSQL, organization, id, now.UnixMicro()); err != nil {
		return o, err
	}
	o.Tasks, err = One(ctx, q, ScanInt, countTasksOfUserSQL, organization, id, now.UnixMicro())
	return o, err
}

// OffboardUser implements storage.Identities. It does not wait for edits of the user's connections: they find theirs
// deleted.
func (s identitiesStore) OffboardUser(ctx context.Context, r storage.OffboardRequest) (o storage.Offboarding, err error) {
	err = s.write(ctx, r.OrganizationID, func(ctx context.Context, tx Tx) (err error) {
		if o, err = countOfUser(ctx, tx, r.OrganizationID, r.UserID, r.At); err != nil {
			return err
		}
		if err := offboard(ctx, tx, &r, &o); err != nil {
			return err
		}
		if r.Tell != nil {
			r.Tell(&o)
		}
		_, err = tx.Change(ctx, r.OrganizationID)
		return err
	})
	if err != nil {
		return storage.Offboarding{}, err
	}
	return o, nil
}

func offboard(ctx context.Context, tx Tx, r *storage.OffboardRequest, o *storage.Offboarding) error {
	var err error
	if o.Ended, err = Many(ctx, tx, scanConnection, connectionsOfUserSQL, r.OrganizationID, r.UserID); err != nil {
		return fmt.Errorf("reading the user's connections: %w", err)
	}
	for _, c := range o.Ended {
		if err := endCredential(ctx, tx, c, nil); err != nil {
			return err
		}
	}
	if _, err := revokeKeysOfUser(ctx, tx, r.OrganizationID, r.UserID, r.At); err != nil {
		return err
	}
	if err := deleteOfUser(ctx, tx, r.OrganizationID, r.UserID); err != nil {
		return err
	}
	at := micros(r.At)
	if at.After(o.User.RevokedAt) {
		o.User.RevokedAt = at
		if err := execOne(ctx, tx, revokeUserSQL, r.OrganizationID, r.UserID, at.UnixMicro()); err != nil {
			return err
		}
	}
	if at.After(o.User.LoggedOutAt) {
		o.User.LoggedOutAt = at
		return execOne(ctx, tx, logOutUserSQL, r.OrganizationID, r.UserID, at.UnixMicro())
	}
	return nil
}

// deleteOfUser deletes what acts for a user, and ends the calls that wait for them.
func deleteOfUser(ctx context.Context, tx Tx, organization, id string) error {
	if _, err := tx.Exec(ctx, deleteConnectionsOfUserSQL, organization, id); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteAttemptsOfUserSQL, organization, id); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteLoginsOfUserSQL, organization, id); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteConsentsOfUserSQL, organization, id); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, endApprovalsOfUserSQL, organization, id); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteTasksOfUserSQL, organization, id); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, deleteConversationsOfUserSQL, organization, id)
	return err
}
