package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
	"github.com/durward-gateway/durward/storage/records"
)

// heardBy collects the changes that a store reports to its listeners.
func heardBy(s *Store) chan string {
	heard := make(chan string, 1000)
	s.OnChange(func(organization string) { heard <- organization })
	return heard
}

// next waits until it is told that the organization has changed. That everything may have, a feed can say at any moment: on a
// busy machine a poll may not end in time.
func next(t *testing.T, heard chan string, want string) {
	t.Helper()
	for end := time.After(patient); ; {
		select {
		case got := <-heard:
			if got == want {
				return
			}
			if got != "" {
				t.Fatalf("%q has changed, not %q", got, want)
			}
		case <-end:
			t.Fatalf("nobody told that %q has changed", want)
		}
	}
}

// nothingTold checks that only the changes are reported for which do has asked with next. "Everything has changed" is
// also reported where a poll does not end in time, and then that feed reports anew the changes that it finds; but not
// each time.
func nothingTold(t *testing.T, do func(), feeds ...chan string) {
	t.Helper()
	for range 5 {
		do()
		everything := false
		for _, heard := range feeds {
			var told []string
			for len(heard) > 0 {
				told = append(told, <-heard)
			}
			if slices.Contains(told, "") {
				everything = true
			} else if len(told) > 0 {
				t.Errorf("that these have changed was told once more: %q", told)
			}
		}
		if !everything {
			return
		}
	}
	t.Error("each time it was told that everything has changed")
}

// Z-N01: every node tells its listeners, once, of a commit of one node. The test has its own server: another test's
// open transaction would make a feed begin with earlier changes.
func TestFeed(t *testing.T) {
	t.Parallel()
	dsn := pgtest.NewServer(t).URL()
	first := openAt(t, dsn, Options{Timeout: patient})
	a, b := seed(t, first, "a"), seed(t, first, "b")
	second, third := openAt(t, dsn, Options{Timeout: patient}), openAt(t, dsn, Options{Timeout: patient})
	own, other, another := heardBy(first), heardBy(second), heardBy(third)
	for _, c := range []storage.Connection{a, b, a} {
		if err := put(first, c); err != nil {
			t.Fatal(err)
		}
		next(t, own, c.OrganizationID)
		next(t, other, c.OrganizationID)
		next(t, another, c.OrganizationID)
	}
	entries := 0
	nothingTold(t, func() {
		entries++
		entry := storage.DirectoryEntry{ID: "e", Name: fmt.Sprint("E", entries), Slug: "e"}
		if err := second.SyncDirectory(t.Context(), storage.SourceCatalogue, []storage.DirectoryEntry{entry}, start); err != nil {
			t.Fatal(err)
		}
		for _, heard := range []chan string{own, other, another} {
			next(t, heard, "")
		}
		poll(t, first, second, third) // a poll finds changes that were reported before
	}, own, other, another)
}

// TestCloseDisconnects checks that a feed leaves no connection behind when it is closed before its goroutine began to
// follow: a store that is closed just after it was opened.
func TestCloseDisconnects(t *testing.T) {
	t.Parallel()
	f, _ := quietFeed(t, pgtest.Copy(t, migrated))
	conn := f.conn
	closed, stop := context.WithCancel(t.Context())
	stop()
	f.run(closed)
	if !conn.IsClosed() {
		t.Error("the connection of a closed feed is open")
	}
}

// poll waits until feeds have polled twice since now.
func poll(t *testing.T, stores ...*Store) {
	t.Helper()
	for _, s := range stores {
		polls := func() int {
			heard := s.feed.Load()
			heard.mu.Lock()
			defer heard.mu.Unlock()
			return heard.poll
		}
		deadline := time.After(patient)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for enough := polls() + 3; polls() < enough; {
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatal("the feed does not poll")
			}
		}
	}
}

// quietFeed returns a feed without notifications, and the changes that it reports.
func quietFeed(t *testing.T, dsn string) (f *feed, told *[]string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	told = new([]string)
	f = &feed{conn: conn, now: time.Now, clock: time.Now, drift: func(time.Duration) {}, told: make(map[int64]int), notify: func(o string) { *told = append(*told, o) }}
	if err := conn.QueryRow(t.Context(), positionSQL).Scan(&f.position, new(int64)); err != nil {
		t.Fatal(err)
	}
	// Transactions that other tests have open elsewhere on the server hold the position back: changes reported
	// because of that are old.
	if err := f.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	*told = nil
	return f, told
}

// Z-N02: without any notification, polls find every change once, also the one that got its number before others and
// committed after them.
func TestPollsFindWhatCommitsLate(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	s := openAt(t, dsn, Options{Timeout: patient})
	a, b := seed(t, s, "a"), seed(t, s, "b")
	f, told := quietFeed(t, dsn)
	want := func(organizations ...string) {
		t.Helper()
		*told = nil
		for range 2 {
			if err := f.read(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(organizations, *told); diff != "" {
			t.Errorf("(-want +told)\n%s", diff)
		}
	}
	numbered, commit := make(chan struct{}), make(chan struct{})
	var late sync.WaitGroup
	late.Go(func() {
		if err := writeOf(context.Background(), s, "a", func(ctx context.Context, tx *writeTx) error {
			_, err := tx.Change(ctx, a.OrganizationID)
			close(numbered)
			<-commit
			return err
		}); err != nil {
			t.Error(err)
		}
	})
	<-numbered
	if err := put(s, b); err != nil {
		t.Fatal(err)
	}
	want("b")
	close(commit)
	late.Wait()
	want("a")
	want()
}

// Z-N02: a feed whose connection broke has everything count as changed, and continues.
func TestFeedReconnects(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t)
	first, second := openAt(t, server.URL(), Options{Timeout: patient}), openAt(t, server.URL(), Options{Timeout: patient})
	c := seed(t, first, "a")
	poll(t, second)
	heard := heardBy(second)
	server.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'durward_test'`)
	next(t, heard, "")
	if err := put(first, c); err != nil {
		t.Fatal(err)
	}
	next(t, heard, "a")
}

// Anybody who may connect to the database may notify, and guess numbers. Nothing is reported on such a notification,
// and a change that is made later under that number is reported.
func TestForgedNotifications(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	first, second := openAt(t, dsn, Options{Timeout: patient}), openAt(t, dsn, Options{Timeout: patient})
	c := seed(t, first, "a")
	poll(t, second)
	heard := heardBy(second)
	nothingTold(t, func() {
		execute(t, pgtest.Superuser(t, dsn), `SELECT pg_notify('durward_changes', n::text), pg_notify('durward_changes', n || ' b'), pg_notify('durward_changes', 'x')
			FROM generate_series((SELECT max(seq) + 1 FROM change_log), (SELECT max(seq) + 20 FROM change_log)) n`)
		poll(t, second)
	}, heard)
	if err := put(first, c); err != nil {
		t.Fatal(err)
	}
	next(t, heard, "a")
}

// After a crash the server gives numbers anew that it had given to changes of which it kept nothing.
func TestNumbersGivenAnew(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t)
	first, second := openAt(t, server.URL(), Options{Timeout: patient}), openAt(t, server.URL(), Options{Timeout: patient})
	c := seed(t, first, "a")
	poll(t, second)
	heard := heardBy(second)
	if err := put(first, c); err != nil {
		t.Fatal(err)
	}
	next(t, heard, "a")
	server.Exec(t, `DELETE FROM change_log WHERE seq = (SELECT max(seq) FROM change_log)`)
	server.Exec(t, `SELECT setval(pg_get_serial_sequence('change_log', 'seq'), (SELECT max(seq) FROM change_log))`)
	server.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'durward_test'`)
	next(t, heard, "")
	if err := put(first, c); err != nil {
		t.Fatal(err)
	}
	next(t, heard, "a")
}

// Z-F03: a node hears of its own change although its commit was not answered, also when the change appears after the
// commit was given up. Here it waits for a standby that is away.
func TestUnansweredCommitIsTold(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t)
	c := seed(t, openAt(t, server.URL(), Options{Timeout: patient}), "a")
	s := openAt(t, server.URL(), Options{Timeout: 3 * time.Second})
	heard := heardBy(s)
	server.Exec(t, `ALTER SYSTEM SET synchronous_standby_names = 'away'`)
	server.Exec(t, `SELECT pg_reload_conf()`)
	for { // the server takes a moment to read its settings
		c.Reason += "x"
		if err := put(s, c); err != nil {
			wantUnavailable(t, err, "in time")
			break
		}
		next(t, heard, "a")
	}
	for {
		next(t, heard, "a")
		if is, err := s.Connection(t.Context(), c.ConnectionKey); err == nil && is.Reason == c.Reason {
			return
		}
	}
}

// Z-N03: a node that has not heard of the others for too long says so.
func TestStaleFeed(t *testing.T) {
	t.Parallel()
	now := start
	f := &feed{now: func() time.Time { return now }, heard: start}
	if now = start.Add(heardWithin); f.stale() != nil {
		t.Error("it is stale too early")
	}
	now = now.Add(time.Millisecond)
	wantUnavailable(t, f.stale(), "other nodes")
	// Why is known since the connection broke, and is told.
	f.translate = new(Store).translate
	_, err := pgx.Connect(t.Context(), "postgres://nobody@127.0.0.1:1/nowhere")
	f.failed(t.Context(), err)
	wantUnavailable(t, f.stale(), "is not known for 10s: the database cannot be reached")
}

// Z-N03: then everything that is kept counts as changed, and reads are refused until the others are heard of again.
func TestStaleFeedEndsWhatIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var told atomic.Int64
		f := &feed{now: time.Now, heard: began, notify: func(string) { told.Add(1) }}
		ctx, cancel := context.WithCancel(t.Context())
		f.running.Go(func() { f.expire(ctx) })
		s := new(Store)
		s.feed.Store(f)
		time.Sleep(heardWithin)
		synctest.Wait()
		if err := s.fresh(); told.Load() != 0 || err != nil {
			t.Errorf("after %v: %d times, %v", time.Since(began), told.Load(), err)
		}
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
		if told.Load() != 1 {
			t.Errorf("after %v: %d times", time.Since(began), told.Load())
		}
		for _, err := range []error{
			s.read(ctx, s.main, "=a", nil), s.read(ctx, s.authenticate, "=a", nil), s.readSnapshot(ctx, s.main, "=a", nil), s.Ping(ctx),
		} {
			wantUnavailable(t, err, "other nodes")
		}
		f.mu.Lock()
		f.heard = time.Now()
		f.mu.Unlock()
		time.Sleep(heardWithin - time.Second)
		synctest.Wait()
		if err := s.fresh(); told.Load() != 1 || err != nil {
			t.Errorf("heard again: %d times, %v", told.Load(), err)
		}
		cancel()
		f.running.Wait()
	})
}

// The change log does not grow for ever.
func TestChangeLogIsPruned(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	s := openAt(t, dsn, Options{Timeout: patient})
	if err := s.write(t.Context(), s.main, records.Everyone, noLock, func(ctx context.Context, tx *writeTx) error {
		_, err := tx.Exec(ctx, `INSERT INTO change_log (organization_id, epoch) SELECT 'a', n FROM generate_series(1, 10500) n`)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	f, _ := quietFeed(t, dsn)
	f.poll = pruneEvery - 1
	if err := f.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := texts(t, s, records.Everyone, `SELECT count(*)::text FROM change_log`); left[0] != "10000" {
		t.Errorf("%s changes are left", left[0])
	}
}
