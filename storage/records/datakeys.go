package records

import (
	"context"

	"github.com/durward-gateway/durward/storage"
)

const (
	dataKeysSQL      = `SELECT version, master_key_id, wrapped, created_at FROM data_keys ORDER BY version`
	rewrapDataKeySQL = `UPDATE data_keys SET master_key_id = $3, wrapped = $4 WHERE version = $1 AND wrapped = $2`
	addDataKeySQL    = `INSERT INTO data_keys (version, master_key_id, wrapped, created_at) VALUES ($1, $2, $3, $4)`
)

func scanDataKey(r Row) (k storage.DataKey, err error) {
	err = r.Scan(&k.Version, &k.MasterKeyID, &k.Wrapped, timeColumn{&k.CreatedAt})
	return k, err
}

// DataKeys implements storage.DataKeys. Keys are looked up within transactions, too (storage.Ending). So it reads over
// connections that no such transaction holds: otherwise enough transactions at one moment would wait for each other.
func (s dataKeysStore) DataKeys(ctx context.Context) (keys []storage.DataKey, err error) {
	err = s.readToAuthenticate(ctx, Of(""), func(ctx context.Context, q Querier) (err error) {
		keys, err = Many(ctx, q, scanDataKey, dataKeysSQL)
		return err
	})
	return keys, err
}

// AddDataKey implements storage.DataKeys.
func (s dataKeysStore) AddDataKey(ctx context.Context, k storage.DataKey) error {
	return s.write(ctx, "", func(ctx context.Context, tx Tx) error {
		_, err := tx.Exec(ctx, addDataKeySQL, k.Version, k.MasterKeyID, k.Wrapped, k.CreatedAt.UnixMicro())
		return err
	})
}

// RewrapDataKey replaces the wrapping of a data key with one by another master key. It returns storage.ErrNotFound
// when the present wrapping is not the given former one.
func (s dataKeysStore) RewrapDataKey(ctx context.Context, k storage.DataKey, former []byte) error {
	return s.write(ctx, "", func(ctx context.Context, tx Tx) error {
		return execOne(ctx, tx, rewrapDataKeySQL, k.Version, former, k.MasterKeyID, k.Wrapped)
	})
}
