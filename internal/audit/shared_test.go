package audit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/storage"
)

// TestShared checks that each record is read back unchanged and verifies, for any callers, any disk errors, and shipping
// from memory or from files.
func TestShared(t *testing.T) {
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // the same in every run
		root, store := t.TempDir(), new(memory)
		o, last := faultyOptions(t, root)
		j := openJournal(t, o)
		ship, lastShip := newShipper(j, store), newShipper(j, store)
		want := make(map[string]storage.AuditEntry)
		for range 150 {
			organization := []string{acme, other, ""}[random.IntN(3)]
			e := intent("create_issue")
			e.At = e.At.UTC()
			e.UserID = fmt.Sprint("user ", random.IntN(4))
			switch random.IntN(6) {
			case 0:
				e.Roles, e.Groups = []string{}, []string{fmt.Sprint(random.IntN(2))}
			case 1:
				e.Roles = nil
				e.Client = "ä\xff" // no valid JSON string
			case 2:
				e.Rule, e.Detail = "another", map[string]any{"0": "x"}
			}
			kept := *e
			kept.Client = strings.ToValidUTF8(e.Client, "\ufffd")
			switch random.IntN(12) {
			default:
				if err := j.Append(organization, e); err != nil {
					t.Fatal(err)
				}
				want[e.ID] = kept
			case 0, 1, 2:
				j.Later(organization, e)
				want[e.ID] = kept
			case 3:
				last().set(func() { last().write = errDisk })
				if err := j.Append(organization, e); !errors.Is(err, ErrUnavailable) {
					t.Fatal(err)
				}
				last().set(func() { last().write = nil })
			case 4:
				if err := j.Checkpoint(); err != nil {
					t.Fatal(err)
				}
			case 5:
				if err := turn(j); err != nil {
					t.Fatal(err)
				}
			case 6:
				if err := ship.ship(t.Context()); err != nil {
					t.Fatal(err)
				}
			case 7:
				j.mu.Lock()
				j.dropFresh()
				j.mu.Unlock()
			}
		}
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
		wantClean(t, root, store)
		found := make(map[string]storage.AuditEntry)
		read := func(r *storage.AuditRecord) error {
			e, err := format.EntryOf(r)
			found[e.ID] = e
			return err
		}
		if err := query.Everything(t.Context(), root, store, "*", time.Now().Add(-time.Hour), time.Now().Add(time.Hour), read); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Fatalf("seed %d, from journal and store: %s", seed, diff)
		}
		if err := errors.Join(j.Close(), lastShip.ship(t.Context())); err != nil {
			t.Fatal(err)
		}
		clear(found)
		for i := range store.chunks {
			records, err := former.ReadChunk(&store.chunks[i])
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				_ = read(&r)
			}
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Fatalf("seed %d, from the store: %s", seed, diff)
		}
		wantClean(t, root, store)
	}
}

// TestChunkOfLongParts checks that a chunk holds no more than can be read, however well it is compressed.
func TestChunkOfLongParts(t *testing.T) {
	root, store := t.TempDir(), new(memory)
	j := openJournal(t, testOptions(t, root))
	e := intent("create_issue")
	e.Rule = strings.Repeat("x", 900<<10)
	for range 30 {
		j.Later(acme, e)
	}
	if err := j.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := newShipper(j, store).ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report := wantClean(t, root, store); report.Records != 30 || report.Chunks < 6 {
		t.Errorf("%d records in %d chunks", report.Records, report.Chunks)
	}
}
