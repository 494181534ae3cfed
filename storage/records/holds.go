package records

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	insertHoldSQL = `INSERT INTO holds (id, organization_id, user_id, server_id, call, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`
	holdSQL       = `SELECT 1 FROM holds WHERE organization_id = $1 AND id = $2`
	deleteHoldSQL = `DELETE FROM holds WHERE organization_id = $1 AND id = $2`
	callsWhere    = ` FROM holds WHERE organization_id = $1 AND user_id = $2 AND call`
	takeBackSQL   = `DELETE` + callsWhere + ` = $3`
)

func (t *texts) holds(d Dialect) {
	t.forgetHolds = `DELETE FROM holds WHERE expires_at <= $1` + d.OnlyOwn
	t.heldCalls = `SELECT 1` + callsWhere + d.in(`$3`) + ` LIMIT 1`
}

// AddHold implements storage.Holds. A server that does not exist violates a foreign key, which is ErrNotFound.
func (s holdsStore) AddHold(ctx context.Context, h storage.Hold, now time.Time) error {
	return s.write(ctx, h.OrganizationID, func(ctx context.Context, tx Tx) error {
		if _, err := tx.Exec(ctx, s.texts.forgetHolds, now.UnixMicro(), h.OrganizationID); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, insertHoldSQL, h.ID, h.OrganizationID, h.UserID, h.ServerID, h.Call, h.ExpiresAt.UnixMicro())
		return err
	})
}

// HoldStands implements storage.Holds.
func (s holdsStore) HoldStands(ctx context.Context, organization, id string) (stands bool, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		stands, err = exists(ctx, q, holdSQL, organization, id)
		return err
	})
	return stands, err
}

// DeleteHold implements storage.Holds.
func (s holdsStore) DeleteHold(ctx context.Context, organization, id string) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		_, err := tx.Exec(ctx, deleteHoldSQL, organization, id)
		return err
	})
}

// TakeBackCalls implements storage.Holds. Most calls that clients cancel were not held: a read refuses them, and they
// do not queue before the writers.
func (s holdsStore) TakeBackCalls(ctx context.Context, organization, userID string, calls []string) error {
	held := false
	err := s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		held, err = exists(ctx, q, s.texts.heldCalls, organization, userID, calls)
		return err
	})
	if err != nil || !held {
		return err
	}
	args := make([][]any, len(calls))
	for i, call := range calls {
		args[i] = []any{organization, userID, call}
	}
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error { return tx.ExecEach(ctx, takeBackSQL, args) })
}
