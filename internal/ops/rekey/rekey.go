// Package rekey rotates keys while gateways run. Rewrap wraps the data keys with a new master key; sealed values stay
// unchanged. Reseal seals everything anew under a new data key, row by row. A concurrent write to a row wins, and
// keyrings in use learn of the new key when they meet it.
//
// Data keys are never removed. API keys are stored as digests under a key that is derived from the data key of their
// time, and checkpoints of the audit log are signed with another such key. Only the holders of the API keys could make
// those anew. After Reseal the store has no values that a former data key sealed.
package rekey

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// pageRows is the number of rows that are read at a time.
const pageRows = 200

// Store is a store whose keys are rotated.
type Store interface {
	storage.DataKeys
	// RewrapDataKey replaces the wrapping of a data key. It returns storage.ErrNotFound when the wrapping is no longer
	// former.
	RewrapDataKey(ctx context.Context, k storage.DataKey, former []byte) error
	Tables(ctx context.Context) ([]storage.Table, error)
	CountRows(ctx context.Context, t storage.Table) (int64, error)
	Rows(ctx context.Context, t storage.Table, after []any, limit int) ([][]any, error)
	// ReplaceSealed replaces a value of a row, unless the value has changed meanwhile.
	ReplaceSealed(ctx context.Context, t storage.Table, row []any, column int, sealed []byte) (bool, error)
}

// Rewrap wraps every data key with the first of masters. It returns the number of keys that another master key had
// wrapped.
func Rewrap(ctx context.Context, store Store, masters []seal.MasterKey) (rewrapped int, err error) {
	if len(masters) == 0 {
		return 0, errors.New("no master key given")
	}
	keys, err := store.DataKeys(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading data keys: %w", err)
	}
	if len(keys) == 0 {
		return 0, errors.New("the store has no data keys: no gateway has run on it")
	}
	for _, k := range keys {
		wrapped, changed, err := seal.Rewrap(k, masters)
		if err != nil {
			return rewrapped, err
		}
		if !changed {
			continue
		}
		if err := store.RewrapDataKey(ctx, wrapped, k.Wrapped); errors.Is(err, storage.ErrNotFound) {
			return rewrapped, fmt.Errorf("data key %d was wrapped by somebody else at the same time; start again", k.Version)
		} else if err != nil {
			return rewrapped, fmt.Errorf("storing data key %d: %w", k.Version, err)
		}
		rewrapped++
	}
	return rewrapped, nil
}

// AddDataKey makes a data key that follows the newest one.
func AddDataKey(ctx context.Context, store Store, master seal.MasterKey, now time.Time) (version int, err error) {
	keys, err := store.DataKeys(ctx)
	if err != nil {
		return 0, fmt.Errorf("reading data keys: %w", err)
	}
	for _, k := range keys {
		version = max(version, k.Version)
	}
	version++
	if err := store.AddDataKey(ctx, seal.NewDataKey(master, uint32(version), now)); err != nil {
		return 0, fmt.Errorf("storing data key %d: %w", version, err)
	}
	return version, nil
}

// sealedColumn names a column with sealed values, and the place that each value is bound to.
type sealedColumn struct {
	table, column string
	place         func(field func(name string) string) seal.AD
}

// columns lists all of them: a test compares the list with the schema.
var columns = []sealedColumn{
	{"servers", "sealed_client_secret", func(f func(string) string) seal.AD {
		return seal.ServerPlace(f("organization_id"), f("id"))
	}},
	{"oauth_clients", "sealed_secret", func(f func(string) string) seal.AD {
		return seal.OAuthClientPlace(f("organization_id"), f("server_id"))
	}},
	{"connections", "sealed_credential", func(f func(string) string) seal.AD {
		return seal.ConnectionPlace(f("organization_id"), f("user_id"), f("server_id"))
	}},
	{"attempts", "sealed", func(f func(string) string) seal.AD {
		return seal.AttemptPlace(f("organization_id"), f("user_id"), f("server_id"), []byte(f("state_hash")))
	}},
	{"approvals", "sealed_arguments", func(f func(string) string) seal.AD {
		return seal.ApprovalPlace(f("organization_id"), f("user_id"), f("id"))
	}},
	{"revocations", "sealed", func(f func(string) string) seal.AD {
		return seal.RevocationPlace(f("organization_id"), f("id"))
	}},
	{"logins", "sealed_refresh", func(f func(string) string) seal.AD {
		return seal.LoginPlace(f("organization_id"), f("user_id"), f("id"))
	}},
	{"logins", "sealed_id_token", func(f func(string) string) seal.AD {
		return seal.IDTokenPlace(f("organization_id"), f("user_id"), f("id"))
	}},
	{"jobs", "sealed_input", func(f func(string) string) seal.AD {
		return seal.JobPlace(f("organization_id"), f("user_id"), f("id"))
	}},
	{"signing_keys", "sealed", func(f func(string) string) seal.AD { return seal.SigningKeyPlace(f("id")) }},
	{"llm_providers", "sealed_secret", func(f func(string) string) seal.AD {
		return seal.ProviderPlace(f("organization_id"), f("id"), f("kind"), f("base_url"))
	}},
}

// Progress says how far a pass is.
type Progress struct {
	Table       string
	Rows, Total int64 // of the table
}

// Pass holds the results of a pass over all sealed values.
type Pass struct {
	Sealed   int64 // values
	Resealed int64 // values that were sealed anew
	Changed  int64 // values that changed at that moment, and were left alone
	// Broken lists values that cannot be opened. They could not be opened before the pass either.
	Broken []Place
}

// Place names a value that cannot be opened.
type Place struct{ Table, Column, Key string }

// Reseal goes over all sealed values once. It seals the values of other data keys anew with the newest one. It may be
// stopped at any time and started again.
func Reseal(ctx context.Context, store Store, ring *seal.Keyring, progress func(Progress)) (p Pass, err error) {
	return p, each(ctx, store, progress, func(t storage.Table, row []any, at int, place seal.AD) error {
		p.Sealed++
		sealed, changed, err := ring.Reseal(row[at].([]byte), place)
		switch {
		case errors.Is(err, seal.ErrOpen):
			p.Broken = append(p.Broken, Place{t.Name, t.Columns[at].Name, fmt.Sprint(t.KeyOf(row))})
			return nil
		case err != nil || !changed:
			return err
		}
		replaced, err := store.ReplaceSealed(ctx, t, row, at, sealed)
		switch {
		case err != nil:
			return fmt.Errorf("storing a value of %s: %w", t.Name, err)
		case replaced:
			p.Resealed++
		default:
			p.Changed++
		}
		return nil
	})
}

// Older counts the values that a former data key has sealed. It leaves out values that cannot be opened, because no
// pass changes them.
func Older(ctx context.Context, store Store, ring *seal.Keyring) (n int64, err error) {
	return n, each(ctx, store, nil, func(_ storage.Table, row []any, at int, place seal.AD) error {
		_, older, err := ring.Reseal(row[at].([]byte), place)
		if older {
			n++
		}
		if errors.Is(err, seal.ErrOpen) {
			return nil
		}
		return err
	})
}

// each calls f for every sealed value.
func each(ctx context.Context, store Store, progress func(Progress), f func(t storage.Table, row []any, at int, place seal.AD) error) error {
	tables, err := store.Tables(ctx)
	if err != nil {
		return fmt.Errorf("reading the schema: %w", err)
	}
	byName := make(map[string]storage.Table, len(tables))
	for _, t := range tables {
		byName[t.Name] = t
	}
	for _, c := range columns {
		t := byName[c.table]
		at := t.Column(c.column)
		if at < 0 {
			return fmt.Errorf("the schema has no %s.%s", c.table, c.column)
		}
		if err := eachRow(ctx, store, t, progress, func(row []any) error {
			if row[at] == nil {
				return nil
			}
			return f(t, row, at, c.place(fields(t, row)))
		}); err != nil {
			return err
		}
	}
	return nil
}

// eachRow calls f for every row of a table, page by page.
func eachRow(ctx context.Context, store Store, t storage.Table, progress func(Progress), f func(row []any) error) error {
	total, err := store.CountRows(ctx, t)
	if err != nil {
		return fmt.Errorf("counting %s: %w", t.Name, err)
	}
	var after []any
	var rows int64
	for {
		page, err := store.Rows(ctx, t, after, pageRows)
		if err != nil {
			return fmt.Errorf("reading %s: %w", t.Name, err)
		}
		if len(page) == 0 {
			return nil
		}
		for _, row := range page {
			if err := f(row); err != nil {
				return err
			}
		}
		after = t.KeyOf(page[len(page)-1])
		rows += int64(len(page))
		if progress != nil {
			progress(Progress{Table: t.Name, Rows: rows, Total: max(total, rows)})
		}
	}
}

// fields returns a function that reads texts of a row by column name.
func fields(t storage.Table, row []any) func(name string) string {
	return func(name string) string {
		switch v := row[t.Column(name)].(type) {
		case string:
			return v
		case []byte:
			return string(v)
		}
		return ""
	}
}
