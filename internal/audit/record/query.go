package record

import (
	"context"
	"time"

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
