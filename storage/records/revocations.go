package records

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	revocationColumns   = `id, organization_id, sealed, created_at, next_at, attempts`
	insertRevocationSQL = `INSERT INTO revocations (` + revocationColumns + `) VALUES ($1, $2, $3, $4, $5, $6)`
	// Each organization has a share, and the first of each come first: one with many due revocations does not delay
	// another's.
	dueRevocationsSQL = `SELECT ` + revocationColumns + ` FROM (SELECT ` + revocationColumns + `,
		row_number() OVER (PARTITION BY organization_id ORDER BY next_at, id) AS place FROM revocations WHERE next_at <= $1) due
		WHERE place <= $3 ORDER BY place, next_at, id LIMIT $2`
	// Of several nodes that find it due, only one gets it.
	postponeRevocationSQL = `UPDATE revocations SET next_at = $4, attempts = $5 WHERE organization_id = $1 AND id = $2 AND next_at = $3`
	deleteRevocationSQL   = `DELETE FROM revocations WHERE organization_id = $1 AND id = $2`
)

func scanRevocation(r Row) (v storage.Revocation, err error) {
	err = r.Scan(&v.ID, &v.OrganizationID, &v.Sealed, timeColumn{&v.CreatedAt}, timeColumn{&v.NextAt}, &v.Attempts)
	return v, err
}

// AddRevocation implements storage.Revocations.
func (s revocationsStore) AddRevocation(ctx context.Context, v storage.Revocation) error {
	return s.write(ctx, v.OrganizationID, func(ctx context.Context, tx Tx) error { return insertRevocation(ctx, tx, v) })
}

func insertRevocation(ctx context.Context, tx Tx, v storage.Revocation) error {
	_, err := tx.Exec(ctx, insertRevocationSQL, v.ID, v.OrganizationID, v.Sealed, v.CreatedAt.UnixMicro(), v.NextAt.UnixMicro(), v.Attempts)
	return err
}

// endCredential stores the revocations that the caller wants when former loses its credential. by is its replacement,
// or nil.
func endCredential(ctx context.Context, tx Tx, former storage.Connection, by *storage.Connection) error {
	if former.SealedCredential == nil {
		return nil
	}
	e := storage.Ended{Former: former, By: by}
	var err error
	if e.Server, err = One(ctx, tx, scanServer, serverSQL, former.OrganizationID, former.ServerID); err != nil {
		return fmt.Errorf("reading the connection's server: %w", err)
	}
	client, err := One(ctx, tx, scanOAuthClient, oauthClientSQL, former.OrganizationID, former.ServerID)
	switch {
	case err == nil:
		e.Client = &client
	case !errors.Is(err, storage.ErrNotFound):
		return fmt.Errorf("reading the connection's OAuth client: %w", err)
	}
	return endedCredential(ctx, tx, e)
}

func endedCredential(ctx context.Context, tx Tx, e storage.Ended) error {
	ending := storage.EndingOf(ctx)
	switch {
	case e.Former.SealedCredential == nil, ending == nil && e.Former.Kind != storage.ProviderOAuth2:
		return nil
	case ending == nil:
		return storage.ErrNoEnding
	}
	all, err := ending(ctx, e)
	if err != nil {
		return err
	}
	for _, v := range all {
		if v.OrganizationID != e.Former.OrganizationID {
			return fmt.Errorf("a revocation of another organization: %w", storage.ErrNotFound)
		}
		if err := insertRevocation(ctx, tx, v); err != nil {
			return fmt.Errorf("storing a revocation: %w", err)
		}
	}
	return nil
}

// DueRevocations implements storage.Revocations.
func (s revocationsStore) DueRevocations(ctx context.Context, now time.Time, limit, share int) (due []storage.Revocation, err error) {
	err = s.readAcross(ctx, func(ctx context.Context, q Querier) (err error) {
		due, err = Many(ctx, q, scanRevocation, dueRevocationsSQL, now.UnixMicro(), limit, share)
		return err
	})
	return due, err
}

// PostponeRevocation implements storage.Revocations.
func (s revocationsStore) PostponeRevocation(ctx context.Context, v storage.Revocation, next time.Time, failed int) error {
	return s.write(ctx, v.OrganizationID, func(ctx context.Context, tx Tx) error {
		return execOne(ctx, tx, postponeRevocationSQL, v.OrganizationID, v.ID, v.NextAt.UnixMicro(), next.UnixMicro(), v.Attempts+failed)
	})
}

// DeleteRevocation implements storage.Revocations.
func (s revocationsStore) DeleteRevocation(ctx context.Context, organization, id string) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		_, err := tx.Exec(ctx, deleteRevocationSQL, organization, id)
		return err
	})
}
