package records

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	entryColumns = `e.id, COALESCE(e.organization_id, ''), e.name, e.description, e.icon, e.slug, e.url, e.protocol, e.source,
		e.provider, e.auth_params, e.scopes, e.oauth, e.public, e.requires_auth, e.categories, e.events_url, e.meta, e.options, e.created_at, e.updated_at`

	entriesOfSourceSQL = `SELECT ` + entryColumns + ` FROM directory_entries e WHERE e.source = $1 AND e.organization_id IS NULL`
	visibleEntrySQL    = `SELECT ` + entryColumns + ` FROM directory_entries e
		WHERE e.id = $2 AND (e.organization_id IS NULL OR e.organization_id = $1)`
	customEntrySQL = `SELECT ` + entryColumns + ` FROM directory_entries e WHERE e.id = $2 AND e.organization_id = $1`
	entryTakenSQL  = `SELECT 1 FROM directory_entries WHERE id = $1`

	// A global entry's slug is taken for every organization. The reverse does not hold: an upgrade's new entry must
	// not fail because an organization chose that slug first.
	slugTakenSQL = `SELECT 1 FROM directory_entries
		WHERE slug = $2 AND id <> $3 AND (organization_id IS NULL OR organization_id = $1) LIMIT 1`

	putEntrySQL = `INSERT INTO directory_entries (id, organization_id, source, created_at, updated_at,
			name, name_key, name_lower, description, description_lower, icon, slug, slug_lower, url, protocol, provider,
			auth_params, scopes, oauth, public, requires_auth, categories, events_url, meta, options)
		VALUES ($1, NULLIF($2, ''), $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)`
	replaceEntrySQL = putEntrySQL + ` ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at,
			name = excluded.name, name_key = excluded.name_key, name_lower = excluded.name_lower,
			description = excluded.description, description_lower = excluded.description_lower, icon = excluded.icon,
			slug = excluded.slug, slug_lower = excluded.slug_lower, url = excluded.url, protocol = excluded.protocol,
			provider = excluded.provider, auth_params = excluded.auth_params, scopes = excluded.scopes, oauth = excluded.oauth,
			public = excluded.public, requires_auth = excluded.requires_auth, categories = excluded.categories,
			events_url = excluded.events_url, meta = excluded.meta, options = excluded.options`

	deleteEntrySQL   = `DELETE FROM directory_entries WHERE id = $1`
	entryReferredSQL = `SELECT 1 FROM servers WHERE directory_id = $1 LIMIT 1`
	dropUnusedSQL    = `DELETE FROM directory_entries WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM servers WHERE directory_id = $1)`
	dropOwnUnusedSQL = dropUnusedSQL + ` AND organization_id = $2`
)

func (t *texts) entries(d Dialect) {
	from := ` FROM directory_entries e WHERE (e.organization_id IS NULL OR e.organization_id = $1)
		AND ($2 = '' OR ` + d.has(`e.name_lower`, `$2`) + ` OR ` + d.has(`e.slug_lower`, `$2`) + ` OR ` + d.has(`e.description_lower`, `$2`) + `)`
	t.countEntries = `SELECT count(*)` + from
	t.listEntries = `SELECT ` + entryColumns + from + ` ORDER BY e.name_key, e.id LIMIT $3 OFFSET $4`
	t.lockEntry = `SELECT 1 FROM directory_entries WHERE id = $1` + d.ForUpdate
}

// entryFields returns the variables into which entryColumns are read.
func entryFields(e *storage.DirectoryEntry) []any {
	return []any{&e.ID, &e.OrganizationID, &e.Name, &e.Description, &e.Icon, &e.Slug, &e.URL, &e.Protocol, &e.Source,
		&e.Provider, jsonColumn{&e.AuthParams}, jsonColumn{&e.Scopes}, jsonColumn{&e.OAuth}, flagColumn{&e.Public}, flagColumn{&e.RequiresAuth},
		jsonColumn{&e.Categories}, &e.EventsURL, rawColumn{&e.Meta}, jsonColumn{&e.Options}, timeColumn{&e.CreatedAt}, timeColumn{&e.UpdatedAt}}
}

func scanEntry(r Row) (e storage.DirectoryEntry, err error) {
	err = r.Scan(entryFields(&e)...)
	return e, err
}

// entryIdentity returns the members that no edit changes, and the times, in the order of putEntrySQL.
func entryIdentity(e storage.DirectoryEntry) []any {
	return []any{e.ID, e.OrganizationID, string(e.Source), e.CreatedAt.UnixMicro(), e.UpdatedAt.UnixMicro()}
}

// entryContent returns the rest of an entry, in the order of putEntrySQL. All values are comparable.
func entryContent(e storage.DirectoryEntry) []any {
	return []any{e.Name, nameKey(e.Name), strings.ToLower(e.Name), e.Description, strings.ToLower(e.Description), e.Icon,
		e.Slug, strings.ToLower(e.Slug), e.URL, string(e.Protocol), string(e.Provider), jsonText(e.AuthParams),
		jsonText(e.Scopes), jsonText(e.OAuth), boolean(e.Public), boolean(e.RequiresAuth), jsonText(e.Categories),
		e.EventsURL, string(e.Meta), jsonText(e.Options)}
}

// SyncDirectory implements storage.Directory. An entry whose id belongs to another source is a ConflictError on id,
// and a slug that two of the entries have is one on slug. When nothing has changed, nothing is written or reported.
func (s directoryStore) SyncDirectory(ctx context.Context, source storage.Source, entries []storage.DirectoryEntry, now time.Time) error {
	if source == storage.SourceCustom {
		return errors.New("syncing the directory: custom entries belong to their organizations")
	}
	slugs := make(map[string]bool, len(entries))
	for _, e := range entries {
		if slugs[e.Slug] && e.Slug != "" {
			return fmt.Errorf("syncing directory entry %q: %w", e.Name, &storage.ConflictError{Field: "slug"})
		}
		slugs[e.Slug] = true
	}
	return s.writeAcross(ctx, DirectoryLock, func(ctx context.Context, tx Tx) error {
		present, err := Many(ctx, tx, scanEntry, entriesOfSourceSQL, source)
		if err != nil {
			return err
		}
		gone := make(map[string]storage.DirectoryEntry, len(present))
		for _, e := range present {
			gone[e.ID] = e
		}
		var changed bool
		for _, e := range entries {
			former, known := gone[e.ID]
			delete(gone, e.ID)
			if known && slices.Equal(entryContent(former), entryContent(e)) {
				continue
			}
			e.OrganizationID, e.Source, e.CreatedAt, e.UpdatedAt = "", source, now, now
			if !known {
				taken, err := exists(ctx, tx, entryTakenSQL, e.ID)
				if err != nil {
					return err
				}
				if taken {
					return fmt.Errorf("syncing directory entry %q: %w", e.Name, &storage.ConflictError{Field: "id"})
				}
			}
			if _, err := tx.Exec(ctx, replaceEntrySQL, append(entryIdentity(e), entryContent(e)...)...); err != nil {
				return err
			}
			changed = true
		}
		for id := range gone {
			// This waits for a server that is being made from the entry, and then finds it.
			if _, err := exists(ctx, tx, s.texts.lockEntry, id); err != nil {
				return err
			}
			n, err := tx.Exec(ctx, dropUnusedSQL, id)
			if err != nil {
				return err
			}
			changed = changed || n > 0
		}
		if changed {
			_, err = tx.Change(ctx, "")
		}
		return err
	})
}

// DirectoryEntries implements storage.Directory.
func (s directoryStore) DirectoryEntries(ctx context.Context, f storage.DirectoryFilter) (page storage.Page[storage.DirectoryEntry], err error) {
	search := strings.ToLower(f.Search)
	limit, offset := window(f.Page)
	err = s.readSnapshot(ctx, f.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		if page.Total, err = One(ctx, q, ScanInt, s.texts.countEntries, f.OrganizationID, search); err != nil {
			return err
		}
		page.Items, err = Many(ctx, q, scanEntry, s.texts.listEntries, f.OrganizationID, search, limit, offset)
		return err
	})
	return page, err
}

// DirectoryEntry implements storage.Directory.
func (s directoryStore) DirectoryEntry(ctx context.Context, organization, id string) (e storage.DirectoryEntry, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		e, err = One(ctx, q, scanEntry, visibleEntrySQL, organization, id)
		return err
	})
	return e, err
}

// CreateDirectoryEntry implements storage.Directory.
func (s directoryStore) CreateDirectoryEntry(ctx context.Context, e storage.DirectoryEntry) error {
	if e.OrganizationID == "" || e.Source != storage.SourceCustom {
		return errors.New("creating a directory entry: only an organization's custom entries are created")
	}
	return s.write(ctx, e.OrganizationID, func(ctx context.Context, tx Tx) error {
		if err := checkEntrySlug(ctx, tx, e); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, putEntrySQL, append(entryIdentity(e), entryContent(e)...)...); err != nil {
			return err
		}
		_, err := tx.Change(ctx, e.OrganizationID)
		return err
	})
}

func checkEntrySlug(ctx context.Context, q Querier, e storage.DirectoryEntry) error {
	taken, err := exists(ctx, q, slugTakenSQL, e.OrganizationID, e.Slug, e.ID)
	if err == nil && taken {
		err = &storage.ConflictError{Field: "slug"}
	}
	return err
}

// UpdateDirectoryEntry implements storage.Directory. Id, organization, source and creation time do not change.
func (s directoryStore) UpdateDirectoryEntry(ctx context.Context, organization, id string, edit func(*storage.DirectoryEntry) error) (storage.DirectoryEntry, error) {
	var e storage.DirectoryEntry
	err := s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		former, err := One(ctx, tx, scanEntry, customEntrySQL, organization, id)
		if err != nil {
			return err
		}
		e = former
		e.Scopes, e.Categories, e.Meta = slices.Clone(e.Scopes), slices.Clone(e.Categories), slices.Clone(e.Meta)
		e.Options.AuthorizationParams = maps.Clone(e.Options.AuthorizationParams)
		if err := tx.Edit(func() error { return edit(&e) }); err != nil {
			return err
		}
		e.ID, e.OrganizationID, e.Source, e.CreatedAt = former.ID, former.OrganizationID, former.Source, former.CreatedAt
		e.UpdatedAt = e.UpdatedAt.UTC().Truncate(time.Microsecond)
		if slices.Equal(entryContent(former), entryContent(e)) && e.UpdatedAt.Equal(former.UpdatedAt) {
			return nil
		}
		// An unchanged slug stays with its owner, also when a global entry has taken it since.
		if e.Slug != former.Slug {
			if err := checkEntrySlug(ctx, tx, e); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, replaceEntrySQL, append(entryIdentity(e), entryContent(e)...)...); err != nil {
			return err
		}
		_, err = tx.Change(ctx, organization)
		return err
	})
	if err != nil {
		return storage.DirectoryEntry{}, err
	}
	return e, nil
}

// DeleteDirectoryEntry implements storage.Directory.
func (s directoryStore) DeleteDirectoryEntry(ctx context.Context, organization, id string) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		if _, err := One(ctx, tx, scanEntry, customEntrySQL, organization, id); err != nil {
			return err
		}
		referred, err := exists(ctx, tx, entryReferredSQL, id)
		if err != nil {
			return err
		}
		if referred {
			return &storage.ConflictError{Field: "server"}
		}
		if _, err := tx.Exec(ctx, deleteEntrySQL, id); err != nil {
			return err
		}
		_, err = tx.Change(ctx, organization)
		return err
	})
}
