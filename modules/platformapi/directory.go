package platformapi

import (
	"errors"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/credential/entryedit"
	"github.com/durward-gateway/durward/internal/credential/serveredit"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

var errReadOnly = routes.Refused(gateway.Forbidden, "This entry comes with the gateway or its configuration; only custom entries can be changed here")

func listEntries(q *request) (any, error) {
	filter := storage.DirectoryFilter{OrganizationID: q.Organization(), Search: q.Search(), Page: q.Page()}
	if err := q.Shape(); err != nil {
		return nil, err
	}
	page, err := q.Core.Store.DirectoryEntries(q.Context(), filter)
	if err != nil {
		return nil, err
	}
	return viewPage(filter.Page, page, q.viewEntry), nil
}

func getEntry(q *request) (any, error) {
	id := q.ID("id")
	if err := q.Shape(); err != nil {
		return nil, err
	}
	e, err := q.Core.Store.DirectoryEntry(q.Context(), q.Organization(), id)
	if err != nil {
		return nil, routes.Missing(err, errNoEntry)
	}
	return q.viewEntry(e), nil
}

func createEntry(q *request) (any, error) {
	var record directory.Record
	if err := q.Read(false, q.entryRules().New(&record)); err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	e := record.Entry(storage.SourceCustom)
	e.ID, e.OrganizationID, e.CreatedAt = id.String(), q.Organization(), q.handler.now().UTC()
	e.UpdatedAt = e.CreatedAt
	if err := withFreeSlug(record.Slug, record.Name, func(slug string) error {
		e.Slug = slug
		return q.Core.Store.CreateDirectoryEntry(q.Context(), e)
	}); err != nil {
		return nil, entryConflict(err)
	}
	return q.viewEntry(e), nil
}

func updateEntry(q *request) (any, error) {
	id := q.ID("id")
	// The rules for one member depend on others that the request leaves unchanged, so the entry is read first. Problems of
	// the request are still reported before whether the entry exists.
	present, lookup := q.customEntry(id)
	record := entryedit.RecordOf(present)
	if err := q.Read(false, q.entryRules().Changed(&record, present)); err != nil {
		return nil, err
	}
	if lookup != nil {
		return nil, lookup
	}
	e, err := q.Core.Store.UpdateDirectoryEntry(q.Context(), q.Organization(), id, func(e *storage.DirectoryEntry) error {
		if !e.UpdatedAt.Equal(present.UpdatedAt) {
			return routes.Conflict("updated_at", "The entry was changed by another request at the same time")
		}
		changed := record.Entry(storage.SourceCustom)
		changed.ID, changed.OrganizationID, changed.CreatedAt, changed.UpdatedAt = e.ID, e.OrganizationID, e.CreatedAt, q.handler.now()
		*e = changed
		return nil
	})
	if err != nil {
		return nil, entryConflict(routes.Missing(err, errNoEntry))
	}
	if err := serveredit.Activate(q.Context(), q.Core.Store, e, q.handler.now()); err != nil {
		return nil, err
	}
	return q.viewEntry(e), nil
}

func (q *request) entryRules() entryedit.Rules {
	return entryedit.Rules{MaxMeta: int(q.Core.Sizes.Meta), CheckURL: q.Core.CheckUpstream, Provider: q.identityProvider}
}

func (q *request) identityProvider(issuer string) bool { return q.Core.Issuers.ByName()[issuer] != nil }

func deleteEntry(q *request) (any, error) {
	id := q.ID("id")
	if err := q.Shape(); err != nil {
		return nil, err
	}
	if _, err := q.customEntry(id); err != nil {
		return nil, err
	}
	if err := q.Core.Store.DeleteDirectoryEntry(q.Context(), q.Organization(), id); err != nil {
		return nil, entryConflict(routes.Missing(err, errNoEntry))
	}
	return nil, nil
}

// customEntry reads an entry that the organization may change.
func (q *request) customEntry(id string) (storage.DirectoryEntry, error) {
	if id == "" { // it was no uuid
		return storage.DirectoryEntry{}, errNoEntry
	}
	e, err := q.Core.Store.DirectoryEntry(q.Context(), q.Organization(), id)
	switch {
	case err != nil:
		return storage.DirectoryEntry{}, routes.Missing(err, errNoEntry)
	case e.Source != storage.SourceCustom:
		return storage.DirectoryEntry{}, errReadOnly
	}
	return e, nil
}

// entryConflict returns the reason why an entry cannot be changed.
func entryConflict(err error) error {
	switch {
	case !errors.Is(err, storage.ErrConflict):
		return err
	case conflictingField(err) == "server":
		return routes.Conflict("server", "Servers are made from this entry; delete them first")
	}
	return routes.Conflict("slug", "An entry with that slug exists already")
}
