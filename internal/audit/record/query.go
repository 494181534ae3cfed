package record

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/internal/audit"
	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/storage"
)

// Query reads a page of the audit log, newest first.
func (r *Recorder) Query(ctx context.Context, f query.Filter, page storage.PageRequest) (storage.Page[query.Row], error) {
	t, err := r.Open() //nolint:contextcheck // what is opened outlives the request
	if err != nil {
		return storage.Page[query.Row]{}, err
	}
	return t.Query(ctx, f, page)
}

// Search reads rows that are older than a position, newest first.
func (r *Recorder) Search(ctx context.Context, f query.Filter, after *query.Position, limit int) (query.Found, error) {
	t, err := r.Open() //nolint:contextcheck // what is opened outlives the request
	if err != nil {
		return query.Found{}, err
	}
	return t.Search(ctx, f, after, limit)
}

// Facets counts the newest events by values.
func (r *Recorder) Facets(ctx context.Context, f query.Filter, facets []string) (query.Counts, error) {
	t, err := r.Open() //nolint:contextcheck // what is opened outlives the request
	if err != nil {
		return query.Counts{}, err
	}
	return t.Facets(ctx, f, facets)
}

// Status tells where this node's part of the log stands, and the organization's newest record in the store, which is nil when
// there is none.
func (r *Recorder) Status(ctx context.Context, organization string) (audit.Status, *query.Position, error) {
	t, err := r.Open() //nolint:contextcheck // what is opened outlives the request
	if err != nil {
		return audit.Status{}, nil, err
	}
	status, err := t.Status()
	if err != nil {
		return status, nil, err
	}
	newest, err := query.Newest(ctx, r.place.Store, organization)
	return status, newest, err
}

// Records calls each with the records of an organization between two times, oldest first. The records of this node are
// included.
func (r *Recorder) Records(ctx context.Context, organization string, from, to time.Time, each func(*storage.AuditRecord) error) error {
	t, err := r.Open() //nolint:contextcheck // what is opened outlives the request
	if err != nil {
		return err
	}
	if err := t.Ship(ctx); err != nil {
		return err
	}
	return query.Records(ctx, r.place.Store, storage.AuditFilter{OrganizationID: organization, From: from, To: to}, each)
}
