package metering

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/storage"
)

// in returns a desk from newDesk with a directory for data that is not stored.
func in(t testing.TB, store *memory, dir string) *desk {
	d := newDesk(t, store)
	d.spool = spool{dir}
	return d
}

// kill ends a Meter as the end of its process does: nothing more is sent.
func (d *desk) kill() {
	d.stop()
	d.running.Wait()
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.sets.Close()
}

// TestKilled checks that batches that were cut are in the store exactly once in the end, and that only other data is
// lost. This holds for every answer of the store and every moment of the kill.
func TestKilled(t *testing.T) {
	root, run := t.TempDir(), 0
	rapid.Check(t, func(r *rapid.T) {
		run++
		dir := filepath.Join(root, strconv.Itoa(run))
		store := newMemory()
		store.put(budget("b", wholeOrganization, storage.BudgetMonth, math.MaxInt64))
		d := in(t, store, dir)
		other := in(t, store, dir) // a second process, which may take over its batches
		defer func() { d.Close(); other.Close() }()
		faults := rapid.SampledFrom([]fault{works, away, lostItsWord})
		var kept, loose int64
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			switch rapid.IntRange(0, 6).Draw(r, "step") {
			case 0:
				d.kill()
				loose = 0
				d = in(t, store, dir)
			case 1:
				store.fail(always(faults.Draw(r, "fault")))
				_ = d.Flush(context.Background())
				kept, loose = kept+loose, 0
				store.fail(always(works))
			case 2:
				d.save()
				kept, loose = kept+loose, 0
			case 3:
				other.kill()
				other = in(t, store, dir)
				store.fail(always(faults.Draw(r, "fault")))
				_ = other.Flush(context.Background())
				store.fail(always(works))
			default:
				n := rapid.Int64Range(1, 1000).Draw(r, "cost")
				asReserved(d.reserve(call(n)))
				loose += n
				// The state also includes the batches of earlier processes.
				d.mu.Lock()
				for _, c := range d.ledgers[acme].counters {
					if c.spent != kept+loose {
						r.Errorf("known to have spent %d, want %d", c.spent, kept+loose)
					}
				}
				d.mu.Unlock()
			}
		}
		d.flush()
		kept += loose
		if got := store.total(); got.Cost != kept {
			r.Fatalf("used %d, want %d", got.Cost, kept)
		}
		if got := store.spent("b"); got != kept {
			r.Fatalf("spent %d, want %d", got, kept)
		}
		if len(store.changed) > 0 {
			r.Fatalf("sent again as something else: %v", store.changed)
		}
		if files, err := os.ReadDir(dir); err != nil && !os.IsNotExist(err) || len(files) > 0 {
			r.Fatalf("left behind: %v, %v", files, err)
		}
	})
}

// TestSavedWhileTheStoreIsAway checks that a killed process loses only data of a bounded time, however long the store
// is away.
func TestSavedWhileTheStoreIsAway(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		d := in(t, store, dir)
		d.reserve(call(1)).Release() // the budgets are known
		store.fail(always(away))
		for range 100 {
			d.use(1)
			time.Sleep(flushEvery)
		}
		time.Sleep(flushEvery)
		synctest.Wait()
		d.kill()
		store.fail(always(works))
		next := in(t, store, dir)
		next.Start()
		time.Sleep(2 * flushEvery)
		synctest.Wait()
		if n := store.total(); n.Requests != 100 {
			t.Errorf("%+v", n)
		}
		next.Close()
	})
}

func TestFilesThatAreNoBatches(t *testing.T) {
	dir, store := t.TempDir(), newMemory()
	for name, content := range map[string]string{
		"a.json": "{}", "x-0000000000000000001.json": "not JSON", "torn.tmp": "{", "n-0000000000000000002.json": `{"Node": "n", "Number": 2, "Usage": [{"Requests": "one"}]}`,
		"n-0000000000000000003.json": `{"Node": "n", "Number": 3, "Usage": [{"OrganizationID": "acme", "Requests": 7}]}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	batches, err := spool{dir}.left()
	if len(batches) != 1 || err == nil || strings.Count(err.Error(), "reading ") != 3 {
		t.Errorf("%v, %v", batches, err)
	}
	in(t, store, dir).flush()
	if n := store.total(); n.Requests != 7 {
		t.Errorf("%+v", n)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 4 {
		t.Errorf("%v, %v", files, err)
	}
}

// TestNoRoom checks that a directory without write access keeps nothing from the store.
func TestNoRoom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d := in(t, newMemory(), filepath.Join(file, "usage"))
	d.use(1)
	d.flush()
	if n := d.store.total(); n.Requests != 1 {
		t.Errorf("%+v", n)
	}
}

// TestSpoolOrder fails to keep a batch and keeps the next one. A process that takes over the spool must not have the
// second before the first, or the store takes the first for sent.
func TestSpoolOrder(t *testing.T) {
	dir, store := filepath.Join(t.TempDir(), "usage"), newMemory()
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // nothing can be kept
		t.Fatal(err)
	}
	d := in(t, store, dir)
	d.reserve(call(1)).Release() // the budgets are known
	store.fail(always(away))
	d.use(1)
	d.save()
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	d.use(2)
	d.save()
	store.fail(always(works))
	in(t, store, dir).flush()
	d.flush()
	if n := store.total(); n.Requests != 2 || n.Cost != 3 {
		t.Errorf("%+v", n)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

// TestSettledAfterTheEnd settles a call after the Meter was closed, with a store that is there and with one that is
// away.
func TestSettledAfterTheEnd(t *testing.T) {
	for name, fails := range map[string]fault{"stored": works, "for the next process": away} {
		t.Run(name, func(t *testing.T) {
			dir, store := t.TempDir(), newMemory()
			d := in(t, store, dir)
			late := d.reserve(call(5))
			d.Close()
			store.fail(always(fails))
			if !asReserved(late) {
				t.Error("it was settled before")
			}
			store.fail(always(works))
			next := in(t, store, dir)
			next.flush()
			if n := store.total(); n.Requests != 1 || n.Cost != 5 {
				t.Errorf("%+v", n)
			}
		})
	}
}

// TestSettledBehindAVisit settles a call after the end, while a visit to the store uses all its time.
func TestSettledBehindAVisit(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		d := in(t, store, dir)
		late := d.reserve(call(5))
		d.Close()
		store.fail(always(away))
		if err := d.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(storeTimeout+time.Second, d.leave)
		asReserved(late)
		store.fail(always(works))
		next := in(t, store, dir)
		next.flush()
		if n := store.total(); n.Requests != 1 || n.Cost != 5 {
			t.Errorf("%+v", n)
		}
		next.Close()
	})
}

// TestSpoolUnread fails to read the first of two batches that a killed process has left. The second must not be sent
// before it, or the store takes the first for sent. Batches of other processes must not wait for it, and neither must
// batches after a file without a batch.
func TestSpoolUnread(t *testing.T) {
	dir, store := t.TempDir(), newMemory()
	leave := func(costs ...int64) (files []string) {
		d := in(t, store, dir)
		d.reserve(call(1)).Release() // the budgets are known
		for _, cost := range costs {
			d.use(cost)
			d.save()
		}
		d.kill()
		files, err := filepath.Glob(filepath.Join(dir, d.node+"-*"))
		if err != nil || len(files) != len(costs) {
			t.Fatalf("%v, %v", files, err)
		}
		return files
	}
	cost := func() int64 {
		in(t, store, dir).flush()
		return store.total().Cost
	}
	first := leave(1, 2)[0]
	leave(10)
	aside := filepath.Join(dir, "aside")
	if err := errors.Join(os.Rename(first, aside), os.Symlink(first, first)); err != nil {
		t.Fatal(err)
	}
	if got := cost(); got != 10 {
		t.Errorf("%d was used while a file cannot be read", got)
	}
	if err := os.Rename(aside, first); err != nil {
		t.Fatal(err)
	}
	if got := cost(); got != 13 {
		t.Errorf("%d was used once it can", got)
	}
	if err := os.WriteFile(leave(100, 200)[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := cost(); got != 213 {
		t.Errorf("%d was used beside a file that is no batch", got)
	}
}
