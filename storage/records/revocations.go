package records

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	revocationColumns   = `id, organization_id, sealed, created_at, next_at, attempts`
	insertRevocationSQL = `INSERT INTO revocations (` + revocationColumns + `) VALUES ($1, $2, $3, $4, $5, $6)`
	dueRevocationsSQL   = `SELECT ` + revocationColumns + ` FROM revocations WHERE next_at <= $1 ORDER BY next_at, id LIMIT $2`
	// Of several nodes that find it due, one gets it.
	postponeRevocationSQL = `UPDATE revocations SET next_at = $4, attempts = $5 WHERE organization_id = $1 AND id = $2 AND attempts = $3`
	deleteRevocationSQL   = `DELETE FROM revocations WHERE organization_id = $1 AND id = $2`
)

func scanRevocation(r Row) (v storage.Revocation, err error) {
	err = r.Scan(&v.ID, &v.OrganizationID, &v.Sealed, timeColumn{&v.CreatedAt}, timeColumn{&v.NextAt}, &v.Attempts)
	return v, err
}

// AddRevocation implements storage.Revocations.
func (s *Store) AddRevocation(ctx context.Context, v storage.Revocation) error {
	return s.write(ctx, v.OrganizationID, func(ctx context.Context, tx Tx) error {
		_, err := tx.Exec(ctx, insertRevocationSQL, v.ID, v.OrganizationID, v.Sealed, v.CreatedAt.UnixMicro(), v.NextAt.UnixMicro(), v.Attempts)
		return err
	})
}

// DueRevocations implements storage.Revocations.
func (s *Store) DueRevocations(ctx context.Context, now time.Time, limit int) (due []storage.Revocation, err error) {
	err = s.readAcross(ctx, func(ctx context.Context, q Querier) (err error) {
		due, err = Many(ctx, q, scanRevocation, dueRevocationsSQL, now.UnixMicro(), limit)
		return err
	})
	return due, err
}

// PostponeRevocation implements storage.Revocations.
func (s *Store) PostponeRevocation(ctx context.Context, v storage.Revocation, next time.Time) error {
	return s.write(ctx, v.OrganizationID, func(ctx context.Context, tx Tx) error {
		return execOne(ctx, tx, postponeRevocationSQL, v.OrganizationID, v.ID, v.Attempts, next.UnixMicro(), v.Attempts+1)
	})
}

// DeleteRevocation implements storage.Revocations.
func (s *Store) DeleteRevocation(ctx context.Context, organization, id string) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		_, err := tx.Exec(ctx, deleteRevocationSQL, organization, id)
		return err
	})
}
