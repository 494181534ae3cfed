package records

import (
	"context"
	"errors"

	"github.com/durward-gateway/durward/storage"
)

// One reads a single row. It returns storage.ErrNotFound when there is none.
func One[T any](ctx context.Context, q Querier, scan func(Row) (T, error), query string, args ...any) (v T, err error) {
	found := false
	err = q.Query(ctx, query, args, func(r Row) (more bool, err error) {
		found = true
		v, err = scan(r)
		return false, err
	})
	if err == nil && !found {
		err = storage.ErrNotFound
	}
	return v, err
}

// Many reads all rows.
func Many[T any](ctx context.Context, q Querier, scan func(Row) (T, error), query string, args ...any) (all []T, err error) {
	err = q.Query(ctx, query, args, func(r Row) (more bool, err error) {
		v, err := scan(r)
		if err == nil {
			all = append(all, v)
		}
		return true, err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// exists reports whether the query has a row.
func exists(ctx context.Context, q Querier, query string, args ...any) (bool, error) {
	_, err := One(ctx, q, ScanInt, query, args...)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// ScanInt reads a row with one number.
func ScanInt(r Row) (n int, err error) {
	err = r.Scan(&n)
	return n, err
}

// execOne runs a statement that must write a row. It returns storage.ErrNotFound when it does not.
func execOne(ctx context.Context, tx Tx, query string, args ...any) error {
	n, err := tx.Exec(ctx, query, args...)
	if err == nil && n == 0 {
		err = storage.ErrNotFound
	}
	return err
}
