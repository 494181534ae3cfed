package records

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	attemptColumns  = `state_hash, organization_id, user_id, server_id, connection_id, issuer, sealed, created_at, expires_at`
	forgetOldestSQL = `DELETE FROM attempts WHERE state_hash IN (SELECT state_hash FROM attempts
		WHERE organization_id = $1 AND user_id = $2 AND server_id = $3 ORDER BY expires_at DESC, state_hash LIMIT 9223372036854775807 OFFSET $4)`
	insertAttemptSQL = `INSERT INTO attempts (` + attemptColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	liveAttemptSQL   = `SELECT 1 FROM attempts WHERE state_hash = $1 AND expires_at > $2`
	takeAttemptSQL   = `DELETE FROM attempts WHERE state_hash = $1 AND expires_at > $2 RETURNING ` + attemptColumns
)

func (t *texts) attempts(d Dialect) {
	t.forgetExpired = `DELETE FROM attempts WHERE expires_at <= $1` + d.OnlyOwn
}

func scanAttempt(r Row) (a storage.Attempt, err error) {
	err = r.Scan(&a.StateHash, &a.OrganizationID, &a.UserID, &a.ServerID, &a.ConnectionID, &a.Issuer, &a.Sealed,
		timeColumn{&a.CreatedAt}, timeColumn{&a.ExpiresAt})
	return a, err
}

// CreateAttempt implements storage.Connections.
func (s connectionsStore) CreateAttempt(ctx context.Context, a storage.Attempt) error {
	return s.write(ctx, a.OrganizationID, func(ctx context.Context, tx Tx) error {
		if _, err := tx.Exec(ctx, s.texts.forgetExpired, a.CreatedAt.UnixMicro(), a.OrganizationID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, forgetOldestSQL, a.OrganizationID, a.UserID, a.ServerID, storage.MaxAttempts-1); err != nil {
			return err
		}
		// A server of another organization violates the foreign key, which is ErrNotFound.
		_, err := tx.Exec(ctx, insertAttemptSQL, a.StateHash, a.OrganizationID, a.UserID, a.ServerID, a.ConnectionID,
			a.Issuer, a.Sealed, a.CreatedAt.UnixMicro(), a.ExpiresAt.UnixMicro())
		return err
	})
}

// TakeAttempt implements storage.Connections. Unknown hashes are refused by a read: requests with guessed states do
// not queue before the writers.
func (s connectionsStore) TakeAttempt(ctx context.Context, stateHash []byte, now time.Time) (a storage.Attempt, err error) {
	err = s.readAcross(ctx, func(ctx context.Context, q Querier) error {
		live, err := exists(ctx, q, liveAttemptSQL, stateHash, now.UnixMicro())
		if err == nil && !live {
			err = storage.ErrNotFound
		}
		return err
	})
	if err != nil {
		return storage.Attempt{}, err
	}
	err = s.writeAcross(ctx, NoLock, func(ctx context.Context, tx Tx) (err error) {
		a, err = One(ctx, tx, scanAttempt, takeAttemptSQL, stateHash, now.UnixMicro())
		return err
	})
	if err != nil {
		return storage.Attempt{}, err
	}
	return a, nil
}
