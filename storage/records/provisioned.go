package records

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// Live users come first in the key of their index: the deleted ones are many after years.
const (
	provisionedUserColumns = `id, organization_id, user_name, external_id, email, active, attributes, created_at, updated_at`
	provisionedUserSelect  = `SELECT ` + provisionedUserColumns + ` FROM provisioned_users WHERE organization_id = $1 AND deleted_at = $2`
	provisionedUserSQL     = provisionedUserSelect + ` AND id = $3`
	countProvisionedSQL    = `SELECT count(*) FROM provisioned_users WHERE organization_id = $1 AND deleted_at = $2`
	// A statement has the condition that is searched for besides, because no index is used for one that may be left out.
	othersOfUsers      = ` AND ($3 = '' OR id = $3) AND ($4 = '' OR name_key = $4) AND ($5 = '' OR external_id = $5) AND ($6 = '' OR email_key = $6) AND ($7 < 0 OR active = $7)`
	fewUsers           = othersOfUsers + ` ORDER BY id LIMIT 1000`
	countUsersSQL      = countProvisionedSQL + othersOfUsers
	allUsersSQL        = provisionedUserSelect + othersOfUsers + ` ORDER BY id LIMIT $8 OFFSET $9`
	usersByIDSQL       = provisionedUserSelect + ` AND id = $3` + fewUsers
	usersByNameSQL     = provisionedUserSelect + ` AND name_key = $4` + fewUsers
	usersByExternalSQL = provisionedUserSelect + ` AND external_id = $5` + fewUsers
	usersByEmailSQL    = provisionedUserSelect + ` AND email_key = $6` + fewUsers

	insertProvisionedSQL = `INSERT INTO provisioned_users (` + provisionedUserColumns + `, name_key, email_key, deleted_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`
	updateProvisionedSQL = `UPDATE provisioned_users SET user_name = $3, external_id = $4, email = $5, active = $6, attributes = $7, updated_at = $8,
		name_key = $9, email_key = $10 WHERE organization_id = $1 AND id = $2`
	deleteProvisionedSQL   = `UPDATE provisioned_users SET active = 0, attributes = '{}', email = '', email_key = '', updated_at = $3, deleted_at = $3 WHERE organization_id = $1 AND id = $2`
	forgetDeletedNameSQL   = `DELETE FROM provisioned_users WHERE organization_id = $1 AND name_key = $2 AND deleted_at <> $3`
	provisionedNameHeldSQL = `SELECT 1 FROM provisioned_users WHERE organization_id = $1 AND name_key = $2 AND id <> $3`
	deleteMembershipsSQL   = `DELETE FROM provisioned_members WHERE organization_id = $1 AND provisioned_id = $2`
	groupsOfProvisionedSQL = `SELECT g.id, g.name FROM provisioned_members m JOIN provisioned_groups g ON g.organization_id = m.organization_id AND g.id = m.group_id
		WHERE m.organization_id = $1 AND m.provisioned_id = $2 ORDER BY g.name`

	candidateColumns    = `id, name_key, active, deleted_at`
	candidateByNameSQL  = `SELECT ` + candidateColumns + ` FROM provisioned_users WHERE organization_id = $1 AND name_key = $2`
	candidateByOtherSQL = `SELECT ` + candidateColumns + ` FROM provisioned_users WHERE organization_id = $1 AND external_id = $2 ORDER BY deleted_at, id LIMIT 2`
	candidateByLinkSQL  = `SELECT p.id, p.name_key, p.active, p.deleted_at FROM provisioned_links l JOIN provisioned_users p
		ON p.organization_id = l.organization_id AND p.id = l.provisioned_id WHERE l.organization_id = $1 AND l.user_id = $2`
	usersByKeySQL        = `SELECT ` + userColumns + ` FROM users WHERE organization_id = $1 AND (lower(subject) = $2 OR lower(email) = $2) ORDER BY id`
	usersBySubjectSQL    = `SELECT ` + userColumns + ` FROM users WHERE organization_id = $1 AND lower(subject) = $2 ORDER BY id`
	usersByLinkSQL       = `SELECT ` + userColumns + ` FROM users WHERE organization_id = $1 AND id IN (SELECT user_id FROM provisioned_links WHERE organization_id = $1 AND provisioned_id = $2) ORDER BY id`
	linkProvisionedSQL   = `INSERT INTO provisioned_links (organization_id, user_id, provisioned_id) VALUES ($1, $2, $3) ON CONFLICT (organization_id, user_id) DO UPDATE SET provisioned_id = excluded.provisioned_id`
	provisionedHandleSQL = `SELECT name_key, external_id FROM provisioned_users WHERE organization_id = $1 AND id = $2`
)

func scanProvisionedUser(r Row) (u storage.ProvisionedUser, err error) {
	err = r.Scan(&u.ID, &u.OrganizationID, &u.UserName, &u.ExternalID, &u.Email, flagColumn{&u.Active}, rawColumn{&u.Attributes},
		timeColumn{&u.CreatedAt}, timeColumn{&u.UpdatedAt})
	return u, err
}

func scanProvisionedRef(r Row) (ref storage.ProvisionedRef, err error) {
	err = r.Scan(&ref.ID, &ref.Name)
	return ref, err
}

// readProvisionedUser reads a user with their groups.
func readProvisionedUser(ctx context.Context, q Querier, organization, id string) (u storage.ProvisionedUser, err error) {
	if u, err = One(ctx, q, scanProvisionedUser, provisionedUserSQL, organization, never(), id); err != nil {
		return u, err
	}
	u.Groups, err = Many(ctx, q, scanProvisionedRef, groupsOfProvisionedSQL, organization, id)
	return u, err
}

// CreateProvisionedUser implements storage.Provisioning.
func (s provisioningStore) CreateProvisionedUser(ctx context.Context, u storage.ProvisionedUser, most int) error {
	return s.write(ctx, u.OrganizationID, func(ctx context.Context, tx Tx) error {
		n, err := One(ctx, tx, ScanInt, countProvisionedSQL, u.OrganizationID, never())
		switch {
		case err != nil:
			return err
		case n >= most:
			return &storage.ConflictError{Field: "count"}
		}
		if err := freeProvisionedName(ctx, tx, &u); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insertProvisionedSQL, u.ID, u.OrganizationID, u.UserName, u.ExternalID, u.Email, boolean(u.Active), string(u.Attributes),
			u.CreatedAt.UnixMicro(), u.UpdatedAt.UnixMicro(), lower(u.UserName), lower(u.Email), never()); err != nil {
			return err
		}
		_, err = tx.Change(ctx, u.OrganizationID)
		return err
	})
}

// freeProvisionedName forgets a deleted user of the name, and refuses a name that another one has.
func freeProvisionedName(ctx context.Context, tx Tx, u *storage.ProvisionedUser) error {
	if _, err := tx.Exec(ctx, forgetDeletedNameSQL, u.OrganizationID, lower(u.UserName), never()); err != nil {
		return err
	}
	held, err := exists(ctx, tx, provisionedNameHeldSQL, u.OrganizationID, lower(u.UserName), u.ID)
	if err == nil && held {
		err = &storage.ConflictError{Field: "user_name"}
	}
	return err
}

// UpdateProvisionedUser implements storage.Provisioning.
func (s provisioningStore) UpdateProvisionedUser(
	ctx context.Context, organization, id string, match storage.ProvisionedMatch, edit func(*storage.ProvisionedUser) error,
) (before, after storage.ProvisionedUser, err error) {
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		if before, err = readProvisionedUser(ctx, tx, organization, id); err != nil {
			return err
		}
		after = before
		after.Groups = slices.Clone(before.Groups)
		if err := edit(&after); err != nil {
			return Edited(err)
		}
		after.ID, after.OrganizationID, after.CreatedAt = before.ID, before.OrganizationID, before.CreatedAt
		return updateProvisioned(ctx, tx, &before, &after, match)
	})
	if err != nil {
		return storage.ProvisionedUser{}, storage.ProvisionedUser{}, err
	}
	return before, after, nil
}

func updateProvisioned(ctx context.Context, tx Tx, before, after *storage.ProvisionedUser, match storage.ProvisionedMatch) error {
	organization := before.OrganizationID
	if lower(before.UserName) != lower(after.UserName) || before.ExternalID != after.ExternalID {
		if _, err := linkProvisioned(ctx, tx, organization, before.ID, match); err != nil {
			return err
		}
		if err := freeProvisionedName(ctx, tx, after); err != nil {
			return err
		}
	}
	if err := execOne(ctx, tx, updateProvisionedSQL, organization, after.ID, after.UserName, after.ExternalID, after.Email, boolean(after.Active),
		string(after.Attributes), after.UpdatedAt.UnixMicro(), lower(after.UserName), lower(after.Email)); err != nil {
		return err
	}
	if before.UserName == after.UserName && before.ExternalID == after.ExternalID && before.Active == after.Active {
		return nil
	}
	_, err := tx.Change(ctx, organization)
	return err
}

// DeleteProvisionedUser implements storage.Provisioning.
func (s provisioningStore) DeleteProvisionedUser(ctx context.Context, organization, id string, now time.Time) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		if _, err := One(ctx, tx, scanProvisionedUser, provisionedUserSQL, organization, never(), id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, deleteMembershipsSQL, organization, id); err != nil {
			return err
		}
		if err := execOne(ctx, tx, deleteProvisionedSQL, organization, id, now.UnixMicro()); err != nil {
			return err
		}
		_, err := tx.Change(ctx, organization)
		return err
	})
}

// ProvisionedUser implements storage.Provisioning.
func (s provisioningStore) ProvisionedUser(ctx context.Context, organization, id string) (u storage.ProvisionedUser, err error) {
	err = s.readSnapshot(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		u, err = readProvisionedUser(ctx, q, organization, id)
		return err
	})
	return u, err
}

// ProvisionedUsers implements storage.Provisioning.
func (s provisioningStore) ProvisionedUsers(ctx context.Context, f storage.ProvisionedFilter) (page storage.Page[storage.ProvisionedUser], err error) {
	active := int64(-1)
	if f.Active != nil {
		active = boolean(*f.Active)
	}
	args := []any{f.OrganizationID, never(), f.ID, lower(f.Name), f.ExternalID, lower(f.Email), active}
	err = s.readSnapshot(ctx, f.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		if page, err = pageOfUsers(ctx, q, &f, args); err != nil {
			return err
		}
		page.Items, err = fillGroups(ctx, q, page.Items, f.Members)
		return err
	})
	if err != nil {
		return storage.Page[storage.ProvisionedUser]{}, err
	}
	return page, nil
}

// fillGroups reads the groups of users, of as many users as are in no more groups together than most, but of one at least.
func fillGroups(ctx context.Context, q Querier, users []storage.ProvisionedUser, most int) (_ []storage.ProvisionedUser, err error) {
	if most == 0 {
		return users, nil
	}
	total := 0
	for i := range users {
		if users[i].Groups, err = Many(ctx, q, scanProvisionedRef, groupsOfProvisionedSQL, users[i].OrganizationID, users[i].ID); err != nil {
			return nil, err
		}
		if total += len(users[i].Groups); i > 0 && total > most {
			return users[:i], nil
		}
	}
	return users, nil
}

func pageOfUsers(ctx context.Context, q Querier, f *storage.ProvisionedFilter, args []any) (page storage.Page[storage.ProvisionedUser], err error) {
	var few []storage.ProvisionedUser
	switch { // the condition of which fewest are
	case f.ID != "":
		few, err = Many(ctx, q, scanProvisionedUser, usersByIDSQL, args...)
	case f.Name != "":
		few, err = Many(ctx, q, scanProvisionedUser, usersByNameSQL, args...)
	case f.ExternalID != "":
		few, err = Many(ctx, q, scanProvisionedUser, usersByExternalSQL, args...)
	case f.Email != "":
		few, err = Many(ctx, q, scanProvisionedUser, usersByEmailSQL, args...)
	default:
		if page.Total, err = One(ctx, q, ScanInt, countUsersSQL, args...); err == nil && f.Limit > 0 {
			page.Items, err = Many(ctx, q, scanProvisionedUser, allUsersSQL, append(slices.Clone(args), f.Limit, f.Skip)...)
		}
		return page, err
	}
	return pageOf(few, f), err
}

// pageOf returns the page of few that a filter asks for.
func pageOf[T any](few []T, f *storage.ProvisionedFilter) storage.Page[T] {
	from := min(f.Skip, len(few))
	return storage.Page[T]{Items: few[from:min(from+f.Limit, len(few))], Total: len(few)}
}

// candidate is a provisioned user, also a deleted one, who may be a user of the gateway.
type candidate struct {
	id, nameKey string
	active      bool
	deletedAt   time.Time
}

func (c *candidate) deleted() bool { return !c.deletedAt.IsZero() }

func scanCandidate(r Row) (c candidate, err error) {
	err = r.Scan(&c.id, &c.nameKey, flagColumn{&c.active}, timeColumn{&c.deletedAt})
	return c, err
}

// keysOf returns the names of provisioned users who are a user of the gateway, the first one before the others.
func keysOf(u *storage.User, match storage.ProvisionedMatch) (keys []string) {
	if match != storage.MatchEmail {
		keys = append(keys, lower(u.Subject))
	}
	if match != storage.MatchSubject && u.Email != "" {
		keys = append(keys, lower(u.Email))
	}
	return keys
}

// candidates returns the provisioned users who may be a user of the gateway, the likeliest first: those who have the name now,
// before the one who had it. A deleted one counts when there is no other, because somebody may come back.
func candidates(ctx context.Context, q Querier, u *storage.User, match storage.ProvisionedMatch) (all []candidate, ambiguous bool, err error) {
	if match == storage.MatchExternalID {
		if all, err = Many(ctx, q, scanCandidate, candidateByOtherSQL, u.OrganizationID, u.Subject); err != nil {
			return nil, false, err
		}
		ambiguous = len(all) > 1 && !all[1].deleted()
	} else {
		for _, key := range keysOf(u, match) {
			named, err := Many(ctx, q, scanCandidate, candidateByNameSQL, u.OrganizationID, key)
			if err != nil {
				return nil, false, err
			}
			all = append(all, named...)
		}
	}
	linked, err := Many(ctx, q, scanCandidate, candidateByLinkSQL, u.OrganizationID, u.ID)
	if err != nil {
		return nil, false, err
	}
	all = append(all, linked...)
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(boolean(a.deleted()), boolean(b.deleted())) })
	return all, ambiguous, nil
}

// ProvisionedStanding implements storage.Provisioning.
func (s provisioningStore) ProvisionedStanding(ctx context.Context, organization, userID string, match storage.ProvisionedMatch) (st storage.ProvisionedStanding, err error) {
	err = s.readToAuthenticate(ctx, Of(organization), func(ctx context.Context, q Querier) error {
		st = storage.ProvisionedStanding{}
		u, err := One(ctx, q, scanUser, userSQL, organization, userID)
		if err != nil {
			return err
		}
		all, ambiguous, err := candidates(ctx, q, &u, match)
		if err != nil || len(all) == 0 {
			return err
		}
		st.Known, st.Active, st.Ambiguous = true, all[0].active, ambiguous
		if ambiguous {
			st.Active = all[0].active && all[1].active
			return nil
		}
		groups, err := Many(ctx, q, scanProvisionedRef, groupsOfProvisionedSQL, organization, all[0].id)
		for _, g := range groups {
			st.Groups = append(st.Groups, g.Name)
		}
		return err
	})
	if err != nil {
		return storage.ProvisionedStanding{}, err
	}
	return st, nil
}

// LinkProvisioned implements storage.Provisioning.
func (s provisioningStore) LinkProvisioned(ctx context.Context, organization, id string, match storage.ProvisionedMatch) (ids []string, err error) {
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) (err error) {
		ids, err = linkProvisioned(ctx, tx, organization, id, match)
		return err
	})
	return ids, err
}

func linkProvisioned(ctx context.Context, tx Tx, organization, id string, match storage.ProvisionedMatch) (ids []string, err error) {
	if ids, err = usersProvisionedAs(ctx, tx, organization, id, match); err != nil {
		return nil, err
	}
	for _, user := range ids {
		if _, err := tx.Exec(ctx, linkProvisionedSQL, organization, user, id); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// usersProvisionedAs lists the ids of the gateway's users who are a provisioned user, also a deleted one.
func usersProvisionedAs(ctx context.Context, q Querier, organization, id string, match storage.ProvisionedMatch) (ids []string, err error) {
	type handle struct{ nameKey, externalID string }
	of, err := One(ctx, q, func(r Row) (h handle, err error) { err = r.Scan(&h.nameKey, &h.externalID); return h, err }, provisionedHandleSQL, organization, id)
	if err != nil {
		return nil, err
	}
	var users []storage.User
	switch {
	case match != storage.MatchExternalID:
		users, err = Many(ctx, q, scanUser, usersByKeySQL, organization, of.nameKey)
	case of.externalID != "":
		users, err = Many(ctx, q, scanUser, usersBySubjectSQL, organization, lower(of.externalID))
	}
	if err != nil {
		return nil, err
	}
	linked, err := Many(ctx, q, scanUser, usersByLinkSQL, organization, id)
	if err != nil {
		return nil, err
	}
	for _, u := range append(users, linked...) {
		all, ambiguous, err := candidates(ctx, q, &u, match)
		if err != nil {
			return nil, err
		}
		is := len(all) > 0 && (all[0].id == id || ambiguous && all[1].id == id)
		if is && !slices.Contains(ids, u.ID) {
			ids = append(ids, u.ID)
		}
	}
	return ids, nil
}

const (
	provisionedGroupColumns = `id, organization_id, name, external_id, created_at, updated_at`
	provisionedGroupSelect  = `SELECT ` + provisionedGroupColumns + ` FROM provisioned_groups WHERE organization_id = $1`
	provisionedGroupSQL     = provisionedGroupSelect + ` AND id = $2`
	countGroupsSQL          = `SELECT count(*) FROM provisioned_groups WHERE organization_id = $1`
	insertGroupSQL          = `INSERT INTO provisioned_groups (` + provisionedGroupColumns + `, name_key) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	updateGroupSQL          = `UPDATE provisioned_groups SET name = $3, name_key = $4, external_id = $5, updated_at = $6 WHERE organization_id = $1 AND id = $2`
	groupNameHeldSQL        = `SELECT 1 FROM provisioned_groups WHERE organization_id = $1 AND name_key = $2 AND id <> $3`
	deleteGroupSQL          = `DELETE FROM provisioned_groups WHERE organization_id = $1 AND id = $2`
	membersSQL              = `SELECT u.id, u.user_name FROM provisioned_members m JOIN provisioned_users u ON u.organization_id = m.organization_id AND u.id = m.provisioned_id
		WHERE m.organization_id = $1 AND m.group_id = $2 ORDER BY u.id`
	countMembersSQL  = `SELECT count(*) FROM provisioned_members WHERE organization_id = $1 AND group_id = $2`
	deleteMembersSQL = `DELETE FROM provisioned_members WHERE organization_id = $1 AND group_id = $2`
	isMember         = `id IN (SELECT group_id FROM provisioned_members WHERE organization_id = $1 AND provisioned_id = $5)`
	// As with users.
	fewGroups           = ` AND ($2 = '' OR id = $2) AND ($3 = '' OR name_key = $3) AND ($4 = '' OR external_id = $4) AND ($5 = '' OR ` + isMember + `) ORDER BY id LIMIT 10000`
	groupsByIDSQL       = provisionedGroupSelect + ` AND id = $2` + fewGroups
	groupsByNameSQL     = provisionedGroupSelect + ` AND name_key = $3` + fewGroups
	groupsByExternalSQL = provisionedGroupSelect + ` AND external_id = $4` + fewGroups
	groupsByMemberSQL   = provisionedGroupSelect + ` AND ` + isMember + fewGroups
	allGroupsSQL        = provisionedGroupSelect + ` ORDER BY id LIMIT $2 OFFSET $3`
)

func (t *texts) members(d Dialect) {
	// A user who was deleted is no member any more.
	t.addMembers = `INSERT INTO provisioned_members (organization_id, group_id, provisioned_id)
		SELECT organization_id, $2, id FROM provisioned_users WHERE organization_id = $1 AND deleted_at = $4 AND id` + d.in(`$3`) + ` ON CONFLICT DO NOTHING`
	t.countNamedMembers = countMembersSQL + ` AND provisioned_id` + d.in(`$3`)
	t.removeMembers = deleteMembersSQL + ` AND provisioned_id` + d.in(`$3`)
	t.keepMembers = deleteMembersSQL + ` AND NOT (provisioned_id` + d.in(`$3`) + `)`
}

func scanProvisionedGroup(r Row) (g storage.ProvisionedGroup, err error) {
	err = r.Scan(&g.ID, &g.OrganizationID, &g.Name, &g.ExternalID, timeColumn{&g.CreatedAt}, timeColumn{&g.UpdatedAt})
	return g, err
}

// CreateProvisionedGroup implements storage.Provisioning.
func (s provisioningStore) CreateProvisionedGroup(ctx context.Context, g storage.ProvisionedGroup, members []string, most storage.ProvisionedMost) error {
	return s.write(ctx, g.OrganizationID, func(ctx context.Context, tx Tx) error {
		n, err := One(ctx, tx, ScanInt, countGroupsSQL, g.OrganizationID)
		switch {
		case err != nil:
			return err
		case n >= most.Groups:
			return &storage.ConflictError{Field: "count"}
		}
		if err := freeGroupName(ctx, tx, &g); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insertGroupSQL, g.ID, g.OrganizationID, g.Name, g.ExternalID, g.CreatedAt.UnixMicro(), g.UpdatedAt.UnixMicro(), lower(g.Name)); err != nil {
			return err
		}
		added, err := s.addMembers(ctx, tx, &g, members, most.Members)
		if err != nil || !added {
			return err
		}
		_, err = tx.Change(ctx, g.OrganizationID)
		return err
	})
}

func freeGroupName(ctx context.Context, q Querier, g *storage.ProvisionedGroup) error {
	held, err := exists(ctx, q, groupNameHeldSQL, g.OrganizationID, lower(g.Name), g.ID)
	if err == nil && held {
		err = &storage.ConflictError{Field: "name"}
	}
	return err
}

// addMembers adds members to a group, and reports whether there are new ones.
func (s provisioningStore) addMembers(ctx context.Context, tx Tx, g *storage.ProvisionedGroup, members []string, most int) (changed bool, err error) {
	if len(members) == 0 {
		return false, nil
	}
	members = slices.Compact(slices.Sorted(slices.Values(members)))
	added, err := tx.Exec(ctx, s.texts.addMembers, g.OrganizationID, g.ID, members, never())
	if err != nil {
		return false, err
	}
	present, err := One(ctx, tx, ScanInt, s.texts.countNamedMembers, g.OrganizationID, g.ID, members)
	switch {
	case err != nil:
		return false, err
	case present < len(members):
		return false, &storage.ConflictError{Field: "members"}
	}
	all, err := One(ctx, tx, ScanInt, countMembersSQL, g.OrganizationID, g.ID)
	if err == nil && all > most {
		err = &storage.ConflictError{Field: "count"}
	}
	return added > 0, err
}

// UpdateProvisionedGroup implements storage.Provisioning.
func (s provisioningStore) UpdateProvisionedGroup(ctx context.Context, organization, id string, now time.Time, c storage.ProvisionedChange) (g storage.ProvisionedGroup, err error) {
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		before, err := One(ctx, tx, scanProvisionedGroup, provisionedGroupSQL, organization, id)
		if err != nil {
			return err
		}
		g = before
		if c.Edit != nil {
			if err := c.Edit(&g); err != nil {
				return Edited(err)
			}
		}
		g.ID, g.OrganizationID, g.CreatedAt, g.UpdatedAt = before.ID, before.OrganizationID, before.CreatedAt, micros(now)
		if err := freeGroupName(ctx, tx, &g); err != nil {
			return err
		}
		if err := execOne(ctx, tx, updateGroupSQL, organization, id, g.Name, lower(g.Name), g.ExternalID, g.UpdatedAt.UnixMicro()); err != nil {
			return err
		}
		changed, err := s.changeMembers(ctx, tx, &g, &c)
		if err != nil || !changed && g.Name == before.Name {
			return err
		}
		_, err = tx.Change(ctx, organization)
		return err
	})
	if err != nil {
		return storage.ProvisionedGroup{}, err
	}
	return g, nil
}

// changeMembers changes the members of a group, and reports whether there are others than before.
func (s provisioningStore) changeMembers(ctx context.Context, tx Tx, g *storage.ProvisionedGroup, c *storage.ProvisionedChange) (changed bool, err error) {
	var removed int64
	switch {
	case c.Replace:
		kept := append([]string{}, c.Add...) // PostgreSQL compares nothing with nil
		removed, err = tx.Exec(ctx, s.texts.keepMembers, g.OrganizationID, g.ID, kept)
	case len(c.Remove) > 0:
		removed, err = tx.Exec(ctx, s.texts.removeMembers, g.OrganizationID, g.ID, c.Remove)
	}
	if err != nil {
		return false, err
	}
	added, err := s.addMembers(ctx, tx, g, c.Add, c.Most)
	return removed > 0 || added, err
}

// DeleteProvisionedGroup implements storage.Provisioning.
func (s provisioningStore) DeleteProvisionedGroup(ctx context.Context, organization, id string) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		members, err := tx.Exec(ctx, deleteMembersSQL, organization, id)
		if err != nil {
			return err
		}
		if err := execOne(ctx, tx, deleteGroupSQL, organization, id); err != nil || members == 0 {
			return err
		}
		_, err = tx.Change(ctx, organization)
		return err
	})
}

// ProvisionedGroup implements storage.Provisioning.
func (s provisioningStore) ProvisionedGroup(ctx context.Context, organization, id string, withMembers bool) (g storage.ProvisionedGroup, err error) {
	err = s.readSnapshot(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		if g, err = One(ctx, q, scanProvisionedGroup, provisionedGroupSQL, organization, id); err != nil || !withMembers {
			return err
		}
		g.Members, err = Many(ctx, q, scanProvisionedRef, membersSQL, organization, id)
		return err
	})
	return g, err
}

// ProvisionedGroups implements storage.Provisioning.
func (s provisioningStore) ProvisionedGroups(ctx context.Context, f storage.ProvisionedFilter) (page storage.Page[storage.ProvisionedGroup], err error) {
	args := []any{f.OrganizationID, f.ID, lower(f.Name), f.ExternalID, f.Member}
	err = s.readSnapshot(ctx, f.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		if page, err = pageOfGroups(ctx, q, &f, args); err != nil || f.Members == 0 {
			return err
		}
		page.Items, err = fillMembers(ctx, q, page.Items, f.Members)
		return err
	})
	if err != nil {
		return storage.Page[storage.ProvisionedGroup]{}, err
	}
	return page, nil
}

func pageOfGroups(ctx context.Context, q Querier, f *storage.ProvisionedFilter, args []any) (page storage.Page[storage.ProvisionedGroup], err error) {
	var few []storage.ProvisionedGroup
	switch { // the condition of which fewest are
	case f.ID != "":
		few, err = Many(ctx, q, scanProvisionedGroup, groupsByIDSQL, args...)
	case f.Name != "":
		few, err = Many(ctx, q, scanProvisionedGroup, groupsByNameSQL, args...)
	case f.ExternalID != "":
		few, err = Many(ctx, q, scanProvisionedGroup, groupsByExternalSQL, args...)
	case f.Member != "":
		few, err = Many(ctx, q, scanProvisionedGroup, groupsByMemberSQL, args...)
	default:
		if page.Total, err = One(ctx, q, ScanInt, countGroupsSQL, f.OrganizationID); err == nil && f.Limit > 0 {
			page.Items, err = Many(ctx, q, scanProvisionedGroup, allGroupsSQL, f.OrganizationID, f.Limit, f.Skip)
		}
		return page, err
	}
	return pageOf(few, f), err
}

// fillMembers reads the members of groups, of as many groups as have no more members together than most, but of one at
// least.
func fillMembers(ctx context.Context, q Querier, groups []storage.ProvisionedGroup, most int) ([]storage.ProvisionedGroup, error) {
	total := 0
	for i := range groups {
		n, err := One(ctx, q, ScanInt, countMembersSQL, groups[i].OrganizationID, groups[i].ID)
		if err != nil {
			return nil, err
		}
		if total += n; i > 0 && total > most {
			return groups[:i], nil
		}
		if groups[i].Members, err = Many(ctx, q, scanProvisionedRef, membersSQL, groups[i].OrganizationID, groups[i].ID); err != nil {
			return nil, err
		}
	}
	return groups, nil
}
