package metering

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage"
)

// notes holds the log of a Meter.
type notes struct {
	mu   sync.Mutex
	text strings.Builder
}

func (n *notes) Write(text []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(text)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

// noted returns a desk from in, with a log. Its alerts go nowhere.
func noted(t testing.TB, store *memory, dir string) (*desk, *notes) {
	t.Helper()
	d, n := &desk{t: t, store: store, clock: &clock{t: noon}}, new(notes)
	m, err := New(Options{Store: store, Epochs: store.epochs, Dir: dir, Now: d.clock.now, Log: func() *slog.Logger { return slog.New(slog.NewTextHandler(n, nil)) }})
	if err != nil {
		t.Fatal(err)
	}
	d.Meter = m
	t.Cleanup(m.Close)
	return d, n
}

// obstruct makes it impossible to keep or drop a batch of d, until callOff is called.
func (d *desk) obstruct(number int64) (callOff func()) {
	d.t.Helper()
	path := d.spool.path(&storage.UsageBatch{Node: d.node, Number: number})
	if err := os.MkdirAll(filepath.Join(path, "in the way"), 0o700); err != nil {
		d.t.Fatal(err)
	}
	return func() {
		d.t.Helper()
		if err := os.RemoveAll(path); err != nil {
			d.t.Fatal(err)
		}
	}
}

// TestCutWaits checks that without a directory one batch waits at a time, and with one no more rows than there is room
// for. Further rows must still be added up.
func TestCutWaits(t *testing.T) {
	for name, c := range map[string]struct {
		dir      string
		underway int
		batches  int
	}{
		"in memory":              {"", 0, 1},
		"in a directory":         {t.TempDir(), 0, 4},
		"with room for one more": {t.TempDir(), maxRows - 2, 2},
		"with no room":           {t.TempDir(), maxRows - 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			store := newMemory()
			d := in(t, store, c.dir)
			d.reserve(call(1)).Release() // the budgets are known
			store.fail(always(away))
			d.book.underway = c.underway
			for range 4 {
				d.use(1)
				if err := d.Flush(t.Context()); !errors.Is(err, errAway) {
					t.Errorf("%v", err)
				}
			}
			if len(d.queue) != c.batches {
				t.Errorf("%d batches wait, want %d", len(d.queue), c.batches)
			}
			store.fail(always(works))
			d.flush()
			if n := store.total(); n.Requests != 4 {
				t.Errorf("%+v", n)
			}
		})
	}
}

// TestAdopted checks that the batches of an earlier process count as waiting, and are looked for once.
func TestAdopted(t *testing.T) {
	dir, store := t.TempDir(), newMemory()
	earlier := in(t, store, dir)
	earlier.use(1)
	earlier.save()
	earlier.kill()
	if err := os.WriteFile(filepath.Join(dir, "a.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d, log := noted(t, store, dir)
	store.fail(always(away))
	for range 2 {
		if err := d.Flush(t.Context()); !errors.Is(err, errAway) {
			t.Errorf("%v", err)
		}
		if s := d.Stats(); s.Rows != 1 || len(d.queue) != 1 {
			t.Errorf("%+v, %d batches", s, len(d.queue))
		}
	}
	store.fail(always(works))
	d.flush()
	d.use(1)
	d.flush()
	if s, n := d.Stats(), store.total(); s.Rows != 0 || s.Batches != 2 || n.Requests != 2 {
		t.Errorf("%+v, %+v", s, n)
	}
	if text := log.String(); strings.Count(text, "level=") != 1 || !strings.Contains(text, "not all readable") || !strings.Contains(text, "a.json") {
		t.Errorf("log: %s", text)
	}
}

// TestNothingToNote checks that nothing is logged while there is no failure.
func TestNothingToNote(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		store := newMemory()
		store.put(budget("b", wholeOrganization, storage.BudgetDay, 10))
		d, log := noted(t, store, dir)
		d.use(9) // the alert goes nowhere
		d.flush()
		d.use(1)
		d.Close()
		if text := log.String(); text != "" || store.total().Requests != 2 {
			t.Errorf("log: %s", text)
		}
	}
}

// TestKeptLater cannot keep a batch at first, behind one that an earlier process has left. The batch must not be
// forgotten when the other one is sent meanwhile.
func TestKeptLater(t *testing.T) {
	dir, store := t.TempDir(), newMemory()
	earlier := in(t, store, dir)
	earlier.use(1)
	earlier.save()
	earlier.kill()

	d, log := noted(t, store, dir)
	d.reserve(call(1)).Release() // the budgets are known
	store.fail(always(away))
	if err := d.Flush(t.Context()); !errors.Is(err, errAway) { // the batch left before is sent first
		t.Fatal(err)
	}
	callOff := d.obstruct(1)
	d.use(2)
	faults := []fault{works, away}
	store.fail(func() fault {
		defer func() { faults = faults[1:] }()
		return faults[0]
	})
	if err := d.Flush(t.Context()); !errors.Is(err, errAway) || store.total().Cost != 1 {
		t.Fatalf("%v, %+v", err, store.total())
	}
	if text := log.String(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, "is in memory alone") {
		t.Errorf("log: %s", text)
	}
	callOff()
	store.fail(always(away))
	d.save()
	d.kill()
	store.fail(always(works))
	in(t, store, dir).flush()
	if n := store.total(); n.Cost != 3 {
		t.Errorf("%+v", n)
	}
}

// TestSentBeforeKept sends a batch that could not be kept. It must not be kept afterwards, and the failure to drop it
// is logged.
func TestSentBeforeKept(t *testing.T) {
	store := newMemory()
	d, log := noted(t, store, t.TempDir())
	callOff := d.obstruct(1)
	d.use(1)
	d.flush()
	if text := log.String(); !strings.Contains(text, "cannot be removed") {
		t.Errorf("log: %s", text)
	}
	callOff()
	d.save()
	if files, err := os.ReadDir(d.spool.dir); err != nil || len(files) != 0 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

// TestSetAside checks that the log names owner and place of everything that the store cannot keep.
func TestSetAside(t *testing.T) {
	refused := &storage.UsageRefused{
		Usage: []storage.Usage{{OrganizationID: "globex"}}, Spends: []storage.BudgetSpend{{OrganizationID: acme}, {OrganizationID: acme}}, Reason: storage.ErrText,
	}
	for name, c := range map[string]struct{ dir, want string }{
		"in a directory":      {t.TempDir(), "is set aside"},
		"without a directory": {"", "is lost"},
		"no directory":        {filepath.Join(os.DevNull, "x"), "is lost"},
	} {
		d, log := noted(t, newMemory(), c.dir)
		d.setAside(&storage.UsageBatch{Node: d.node, Number: 1}, refused)
		text := log.String()
		if !strings.Contains(text, c.want) || !strings.Contains(text, "rows=3 organizations=\"[acme globex]\"") || strings.Count(text, "level=") != 1 {
			t.Errorf("%s: log: %s", name, text)
		}
		if fails := name == "no directory"; strings.Contains(text, " error=") != fails || strings.Contains(text, " file=") != (c.want == "is set aside") {
			t.Errorf("%s: log: %s", name, text)
		}
		if s := d.Stats(); s.Aside != 3 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestPauses checks that a store that is away is asked after 1, 2, 4 rounds and so on. A slow store, which takes a
// batch now and then, is asked in each round.
func TestPauses(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		d, log := noted(t, store, dir)
		start := time.Now()
		d.use(1)
		elsewhere := call(1) // one goroutine is enough for all
		elsewhere.Organization = "elsewhere"
		d.reserve(elsewhere).Release()
		var asked []int // in rounds
		note := func() { asked = append(asked, int(time.Since(start)/flushEvery)) }
		store.fail(func() fault { note(); return away })
		time.Sleep(72 * flushEvery)
		synctest.Wait()
		if diff := cmp.Diff([]int{1, 3, 7, 15, 31, 51, 71}, asked); diff != "" {
			t.Error(diff)
		}
		if text := log.String(); strings.Count(text, "usage waits") != len(asked) || !strings.Contains(text, "again_in=6s") {
			t.Errorf("log: %s", text)
		}
		for range 3 { // four batches wait
			store.fail(always(works))
			d.reserve(call(1)).Settle(Tokens{Input: 1})
			store.fail(always(away))
			time.Sleep(flushEvery)
			synctest.Wait()
		}
		asked = nil
		store.fail(func() fault {
			note()
			if len(asked)%2 == 0 {
				return away
			}
			return works
		})
		time.Sleep(longestPause * flushEvery)
		synctest.Wait()
		if diff := cmp.Diff([]int{91, 91, 92, 92, 93, 93, 94}, asked); diff != "" {
			t.Error(diff)
		}
		store.fail(always(works))
		d.Close()
		if n := store.total(); n.Requests != 4 {
			t.Errorf("%+v", n)
		}
	})
}

// TestToldAtOnce checks that alerts do not wait for the next round.
func TestToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		store.put(budget("b", wholeOrganization, storage.BudgetDay, 100))
		d := newDesk(t, store)
		defer d.Close()
		d.use(90)
		synctest.Wait()
		if len(d.told) != 1 {
			t.Errorf("%+v", d.told)
		}
	})
}

// TestCloseTells checks that alerts of the last moment are sent.
func TestCloseTells(t *testing.T) {
	store := newMemory()
	store.put(budget("b", wholeOrganization, storage.BudgetDay, 100))
	d := newDesk(t, store)
	d.reserve(call(1)).Release()
	d.stop() // the goroutine sends no more alerts
	d.running.Wait()
	d.use(90)
	d.Close()
	if len(d.told) != 1 {
		t.Errorf("%+v", d.told)
	}
	again := newDesk(t, store)
	again.Close()
	again.Start()
	if again.started {
		t.Error("it was started after its end")
	}
}

// TestCloseWaits checks that no work of a Meter continues after Close.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		d := newDesk(t, store)
		d.use(1)
		logging := make(chan struct{})
		d.log = func() *slog.Logger { <-logging; return slog.New(slog.DiscardHandler) }
		store.fail(always(away))
		time.Sleep(flushEvery)
		synctest.Wait() // the goroutine logs
		store.fail(always(works))
		closed := make(chan struct{})
		go func() { d.Close(); close(closed) }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("the goroutine goes on")
		default:
		}
		close(logging)
		<-closed
	})
}

// TestLastWords checks the last log message: data that is not in the store is reported as lost, or with the place where
// it waits.
func TestLastWords(t *testing.T) {
	const waits, lost = "usage waits for the next start", "usage is lost: the store did not take it"
	for name, c := range map[string]struct {
		dir      string
		obstruct bool
		want     string
	}{
		"in memory":                  {"", false, lost},
		"in a directory":             {t.TempDir(), false, waits},
		"in a directory that is not": {t.TempDir(), true, lost},
	} {
		store := newMemory()
		d, log := noted(t, store, c.dir)
		d.use(1)
		if c.obstruct {
			d.obstruct(1)
		}
		store.fail(always(away))
		d.Close()
		lines := slices.DeleteFunc(strings.Split(log.String(), "\n"), func(line string) bool { return !strings.Contains(line, "gateway's end") })
		if len(lines) != 1 || !strings.Contains(lines[0], c.want) || !strings.Contains(lines[0], "rows=1") {
			t.Errorf("%s: log: %s", name, log)
		}
	}
}

// TestLastVisitIsTaken settles a call after the end, while a visit to the store takes too long.
func TestLastVisitIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, log := noted(t, newMemory(), "")
		late := d.reserve(call(5))
		d.Close()
		if err := d.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		asReserved(late)
		if waited := time.Since(before); waited != 2*storeTimeout {
			t.Errorf("it waited for %s", waited)
		}
		if text := log.String(); !strings.Contains(text, "usage is lost: the store did not answer") || !strings.Contains(text, "rows=1") {
			t.Errorf("log: %s", text)
		}
		d.leave()
	})
}
