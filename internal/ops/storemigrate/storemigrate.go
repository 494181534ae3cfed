// Package storemigrate copies a store to another driver: table by table, in the order of primary keys, value by value.
// Nothing is decrypted: sealed values stay sealed under the same data keys, and these stay wrapped by the same master
// key.
//
// A copy that was interrupted continues after the last row that arrived. At its end both sides are read again and
// compared by the number of their rows and by a digest of each table.
package storemigrate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"

	"github.com/durward-gateway/durward/storage"
)

// pageRows is the number of rows that one transaction copies.
const pageRows = 500

// Errors of a copy.
var (
	// ErrSchema says that the two stores do not have the same tables and columns.
	ErrSchema = errors.New("the two stores have different schemas")
	// ErrDiffers says that a table of the target differs from the source.
	ErrDiffers = errors.New("the copy differs from its source")
	// ErrNothing says that no gateway has run on the source.
	ErrNothing = errors.New("the store has no data keys: no gateway has run on it")
)

// Source is the store to read.
type Source interface {
	// Tables lists the tables. A table comes after the tables that it refers to.
	Tables(ctx context.Context) ([]storage.Table, error)
	CountRows(ctx context.Context, t storage.Table) (int64, error)
	// Rows reads at most limit rows after the given key, in the order of the primary key. It returns none only when
	// there are none.
	Rows(ctx context.Context, t storage.Table, after []any, limit int) ([][]any, error)
}

// Target is the store to fill.
type Target interface {
	Source
	// Begin marks the target as a copy of source under way. When the mark of the same source is there already the copy
	// continues: resumed. With anew, all data of an earlier copy is deleted.
	Begin(ctx context.Context, tables []storage.Table, source string, anew bool) (resumed bool, err error)
	// LastKey returns the primary key of a table's last row; nil: the table is empty.
	LastKey(ctx context.Context, t storage.Table) ([]any, error)
	// AddRows adds rows, all or none.
	AddRows(ctx context.Context, t storage.Table, rows [][]any) error
	// Finish removes the mark.
	Finish(ctx context.Context) error
}

// Step is a phase of a copy.
type Step string

// Steps of a copy.
const (
	Copying   Step = "copying"
	Verifying Step = "verifying"
)

// Progress says how far a step is with a table.
type Progress struct {
	Step        Step
	Table       string
	Rows, Total int64 // of the table
	// Done and All count rows of all tables.
	Done, All int64
}

// Options holds the settings of a copy.
type Options struct {
	// Anew deletes the data of an earlier copy into the target, and begins from the start.
	Anew bool
	// Progress, when set, is called after each page.
	Progress func(Progress)
}

// Moved is a table that has arrived: its number of rows, and the digest of both sides.
type Moved struct {
	Table  string
	Rows   int64
	Digest string // SHA-256, hexadecimal
}

// Result describes a finished copy.
type Result struct {
	// Resumed reports whether an earlier copy was continued.
	Resumed bool
	Tables  []Moved
}

// Copy copies everything from one store to another and verifies it. The source must not change meanwhile. Started again
// after an error, it continues; after ErrDiffers, only Options.Anew helps.
func Copy(ctx context.Context, from Source, to Target, o Options) (Result, error) {
	tables, err := sameTables(ctx, from, to)
	if err != nil {
		return Result{}, err
	}
	source, err := identify(ctx, from, tables)
	if err != nil {
		return Result{}, err
	}
	m := mover{from: from, to: to, progress: o.Progress, totals: make(map[string]int64, len(tables))}
	if m.progress == nil {
		m.progress = func(Progress) {}
	}
	for _, t := range tables {
		n, err := from.CountRows(ctx, t)
		if err != nil {
			return Result{}, fmt.Errorf("counting %s: %w", t.Name, err)
		}
		m.totals[t.Name] = n
		m.all += n
	}
	var result Result
	if result.Resumed, err = to.Begin(ctx, tables, source, o.Anew); err != nil {
		return result, fmt.Errorf("preparing the target: %w", err)
	}
	for _, t := range tables {
		if err := m.copyTable(ctx, t); err != nil {
			return result, fmt.Errorf("copying %s: %w", t.Name, err)
		}
	}
	m.done = 0
	for _, t := range tables {
		moved, err := m.verify(ctx, t)
		if err != nil {
			return result, fmt.Errorf("verifying %s: %w", t.Name, err)
		}
		result.Tables = append(result.Tables, moved)
	}
	if err := to.Finish(ctx); err != nil {
		return result, fmt.Errorf("finishing: %w", err)
	}
	return result, nil
}

// sameTables lists the source's tables. The target must have the same ones.
func sameTables(ctx context.Context, from, to Source) ([]storage.Table, error) {
	tables, err := from.Tables(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the source's schema: %w", err)
	}
	there, err := to.Tables(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the target's schema: %w", err)
	}
	known := make(map[string]storage.Table, len(there))
	for _, t := range there {
		known[t.Name] = t
	}
	for _, t := range tables {
		other, ok := known[t.Name]
		delete(known, t.Name)
		switch {
		case !ok:
			return nil, fmt.Errorf("%w: %s is in the source only", ErrSchema, t.Name)
		case !slices.Equal(t.Columns, other.Columns) || !slices.Equal(t.Key, other.Key):
			return nil, fmt.Errorf("%w: the columns of %s are not the same", ErrSchema, t.Name)
		case len(t.Key) == 0:
			return nil, fmt.Errorf("%w: %s has no primary key", ErrSchema, t.Name)
		}
	}
	for name := range known {
		return nil, fmt.Errorf("%w: %s is in the target only", ErrSchema, name)
	}
	return tables, nil
}

// identify names a store by its data keys, which no other store has.
func identify(ctx context.Context, from Source, tables []storage.Table) (string, error) {
	at := slices.IndexFunc(tables, func(t storage.Table) bool { return t.Name == "data_keys" })
	if at < 0 {
		return "", fmt.Errorf("%w: data_keys is missing", ErrSchema)
	}
	keys, err := digest(ctx, from, tables[at], func(int) {})
	if err != nil {
		return "", fmt.Errorf("reading the data keys: %w", err)
	}
	if keys.Rows == 0 {
		return "", ErrNothing
	}
	return keys.Digest, nil
}

// mover is a copy under way.
type mover struct {
	from      Source
	to        Target
	progress  func(Progress)
	totals    map[string]int64
	done, all int64
}

// tell reports how far a table is.
func (m *mover) tell(step Step, t storage.Table, rows int64, more int) {
	m.done += int64(more)
	m.progress(Progress{Step: step, Table: t.Name, Rows: rows, Total: m.totals[t.Name], Done: m.done, All: m.all})
}

// copyTable copies the rows after the last row that has arrived.
func (m *mover) copyTable(ctx context.Context, t storage.Table) error {
	after, err := m.to.LastKey(ctx, t)
	if err != nil {
		return err
	}
	var rows int64
	if after != nil {
		if rows, err = m.to.CountRows(ctx, t); err != nil {
			return err
		}
		m.tell(Copying, t, rows, int(rows))
	}
	for {
		page, err := m.from.Rows(ctx, t, after, pageRows)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		if err := m.to.AddRows(ctx, t, page); err != nil {
			return err
		}
		after = t.KeyOf(page[len(page)-1])
		rows += int64(len(page))
		m.tell(Copying, t, rows, len(page))
	}
}

// verify compares a table on both sides.
func (m *mover) verify(ctx context.Context, t storage.Table) (Moved, error) {
	there, err := digest(ctx, m.to, t, func(int) {})
	if err != nil {
		return there, fmt.Errorf("reading the target: %w", err)
	}
	var rows int64
	here, err := digest(ctx, m.from, t, func(n int) {
		rows += int64(n)
		m.tell(Verifying, t, rows, n)
	})
	switch {
	case err != nil:
		return here, fmt.Errorf("reading the source: %w", err)
	case here.Rows != there.Rows:
		return here, fmt.Errorf("%w: the source has %d rows, the target %d", ErrDiffers, here.Rows, there.Rows)
	case here.Digest != there.Digest:
		return here, fmt.Errorf("%w: %d rows on both sides, but not the same ones", ErrDiffers, here.Rows)
	}
	return here, nil
}

// digest reads a whole table and digests its rows in the order of their primary key.
func digest(ctx context.Context, from Source, t storage.Table, each func(rows int)) (Moved, error) {
	m := Moved{Table: t.Name}
	h := sha256.New()
	var after []any
	for {
		page, err := from.Rows(ctx, t, after, pageRows)
		if err != nil {
			return m, err
		}
		if len(page) == 0 {
			m.Digest = hex.EncodeToString(h.Sum(nil))
			return m, nil
		}
		for _, row := range page {
			for _, v := range row {
				if err := digestValue(h, v); err != nil {
					return m, err
				}
			}
		}
		after = t.KeyOf(page[len(page)-1])
		m.Rows += int64(len(page))
		each(len(page))
	}
}

// digestValue writes each value in a form of its own: its kind, its length, and the value.
func digestValue(h hash.Hash, v any) error {
	var head [9]byte
	put := func(kind byte, n uint64, content []byte) {
		head[0] = kind
		binary.BigEndian.PutUint64(head[1:], n)
		h.Write(head[:])
		h.Write(content)
	}
	switch v := v.(type) {
	case nil:
		put('n', 0, nil)
	case int64:
		put('i', uint64(v), nil)
	case string:
		put('t', uint64(len(v)), []byte(v))
	case []byte:
		put('b', uint64(len(v)), v)
	default:
		return fmt.Errorf("a value is a %T", v)
	}
	return nil
}
