package platformapi

import (
	"errors"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/directory"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

var errReadOnly = refused(app.Forbidden, "This entry comes with the gateway or its configuration; only custom entries can be changed here")

func listEntries(q *request) (any, error) {
	filter := storage.DirectoryFilter{OrganizationID: q.organization(), Search: q.search(), Page: q.page()}
	if err := q.shape(); err != nil {
		return nil, err
	}
	page, err := q.core.Store.DirectoryEntries(q.context(), filter)
	if err != nil {
		return nil, err
	}
	return viewPage(filter.Page, page, viewEntry), nil
}

func getEntry(q *request) (any, error) {
	id := q.id("id")
	if err := q.shape(); err != nil {
		return nil, err
	}
	e, err := q.core.Store.DirectoryEntry(q.context(), q.organization(), id)
	if err != nil {
		return nil, missing(err, errNoEntry)
	}
	return viewEntry(e), nil
}

func createEntry(q *request) (any, error) {
	var record directory.Record
	if err := q.read(false, q.newEntryFields(&record)); err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	e := record.Entry(storage.SourceCustom)
	e.ID, e.OrganizationID, e.CreatedAt = id.String(), q.organization(), q.handler.now().UTC()
	e.UpdatedAt = e.CreatedAt
	if err := withFreeSlug(record.Slug, record.Name, func(slug string) error {
		e.Slug = slug
		return q.core.Store.CreateDirectoryEntry(q.context(), e)
	}); err != nil {
		return nil, entryConflict(err)
	}
	return viewEntry(e), nil
}

func updateEntry(q *request) (any, error) {
	id := q.id("id")
	// The rules for one member depend on others that the request leaves as they are, so that the entry is read first;
	// what is wrong with the request is still said before whether the entry exists.
	present, lookup := q.customEntry(id)
	record := recordOf(present)
	if err := q.read(false, q.changedEntryFields(&record, present)); err != nil {
		return nil, err
	}
	if lookup != nil {
		return nil, lookup
	}
	e, err := q.core.Store.UpdateDirectoryEntry(q.context(), q.organization(), id, func(e *storage.DirectoryEntry) error {
		if !e.UpdatedAt.Equal(present.UpdatedAt) {
			return conflict("updated_at", "The entry was changed by another request at the same time")
		}
		changed := record.Entry(storage.SourceCustom)
		changed.ID, changed.OrganizationID, changed.CreatedAt, changed.UpdatedAt = e.ID, e.OrganizationID, e.CreatedAt, q.handler.now()
		*e = changed
		return nil
	})
	if err != nil {
		return nil, entryConflict(missing(err, errNoEntry))
	}
	if err := q.activateServers(e); err != nil {
		return nil, err
	}
	return viewEntry(e), nil
}

// activateServers ends the waiting of servers for an OAuth client that their entry no longer asks for. Where it still
// does, the first user who connects activates them.
func (q *request) activateServers(e storage.DirectoryEntry) error {
	if usesOAuth(e) {
		return nil
	}
	waiting, err := q.core.Store.Servers(q.context(), storage.ServerFilter{
		OrganizationID: e.OrganizationID, Status: []storage.ServerStatus{storage.ServerPending, storage.ServerError}, Now: q.handler.now(),
	})
	if err != nil {
		return err
	}
	for _, s := range waiting.Items {
		if s.DirectoryID != e.ID {
			continue
		}
		_, err := q.core.Store.UpdateServer(q.context(), s.OrganizationID, s.ID, func(s *storage.Server) error {
			s.Status = storage.ServerActive
			return nil
		})
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
	}
	return nil
}

func deleteEntry(q *request) (any, error) {
	id := q.id("id")
	if err := q.shape(); err != nil {
		return nil, err
	}
	if _, err := q.customEntry(id); err != nil {
		return nil, err
	}
	if err := q.core.Store.DeleteDirectoryEntry(q.context(), q.organization(), id); err != nil {
		return nil, entryConflict(missing(err, errNoEntry))
	}
	return nil, nil
}

// customEntry reads an entry that the organization may change.
func (q *request) customEntry(id string) (storage.DirectoryEntry, error) {
	e, err := q.core.Store.DirectoryEntry(q.context(), q.organization(), id)
	switch {
	case err != nil:
		return storage.DirectoryEntry{}, missing(err, errNoEntry)
	case e.Source != storage.SourceCustom:
		return storage.DirectoryEntry{}, errReadOnly
	}
	return e, nil
}

// entryConflict says what is in the way of changing an entry.
func entryConflict(err error) error {
	switch {
	case !errors.Is(err, storage.ErrConflict):
		return err
	case conflictingField(err) == "server":
		return conflict("server", "Servers are made from this entry; delete them first")
	}
	return conflict("slug", "An entry with that slug exists already")
}
