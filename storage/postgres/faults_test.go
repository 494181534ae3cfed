package postgres

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
	"github.com/durward-gateway/durward/storage/records"
)

// patient bounds waiting in these tests: at least ten times the time that a loaded machine needs.
const patient = time.Minute

// wantUnavailable wants an error in the words that callers branch on and people read.
func wantUnavailable(t *testing.T, err error, says string) {
	t.Helper()
	if !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want that the store is unavailable: %s", err, says)
	}
}

// put writes a connection.
func put(s *Store, c storage.Connection) error {
	_, err := s.PutConnection(untold(context.Background()), c)
	return err
}

// untold returns a context for writes that end credentials of which no provider is told.
func untold(ctx context.Context) context.Context {
	return storage.WithEnding(ctx, func(context.Context, storage.Ended) ([]storage.Revocation, error) { return nil, nil })
}

func read(s *Store, c storage.Connection) error {
	_, err := s.Connection(context.Background(), c.ConnectionKey)
	return err
}

// TestPingTakesNoLock checks that Ping waits for no write, and makes no write wait.
func TestPingTakesNoLock(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	s := openAt(t, dsn, Options{})
	other, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.WithoutCancel(t.Context()))
	if _, err := other.Exec(t.Context(), `SELECT pg_advisory_lock($1)`, int64(keyOf(records.Lock{Kind: records.OrganizationLock}))); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// Z-F02: the server crashes and comes back; the store says so, and works again by itself.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t)
	s := openAt(t, server.URL(), Options{Timeout: patient})
	c := seed(t, s, "a")
	for range 3 {
		server.Stop(t)
		wantUnavailable(t, read(s, c), "")
		wantUnavailable(t, put(s, c), "cannot be reached")
		wantUnavailable(t, s.Ping(t.Context()), "")
		_, err := s.UpdateConnection(t.Context(), c.ConnectionKey, func(context.Context, *storage.Connection) error { return nil })
		wantUnavailable(t, err, "cannot be reached")
		server.Start(t)
		if err := errors.Join(s.Ping(t.Context()), read(s, c), put(s, c)); err != nil {
			t.Error(err)
		}
		c, err = s.UpdateConnection(t.Context(), c.ConnectionKey, func(_ context.Context, c *storage.Connection) error { c.Reason += "x"; return nil })
		if err != nil {
			t.Error(err)
		}
	}
}

// Z-F06: connections that were ended from outside are made anew; no caller notices.
func TestTerminatedConnections(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t)
	s := openAt(t, server.URL(), Options{Timeout: patient})
	c := seed(t, s, "a")
	for range 10 {
		server.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'durward_test'`)
		if err := read(s, c); err != nil {
			t.Fatal(err)
		}
		server.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'durward_test'`)
		if err := put(s, c); err != nil {
			t.Fatal(err)
		}
	}
}

// Z-F07: a database that was made read-only can be read.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t)
	s := openAt(t, server.URL(), Options{Timeout: patient})
	c := seed(t, s, "a")
	server.Stop(t)
	server.Start(t, "default_transaction_read_only=on")
	if err := read(s, c); err != nil {
		t.Error(err)
	}
	wantUnavailable(t, put(s, c), "read-only")
	wantUnavailable(t, s.Ping(t.Context()), "read-only")
	reader := openAt(t, server.URL(), Options{Timeout: patient})
	if err := read(reader, c); err != nil {
		t.Error(err)
	}
}

// Z-F07: a database whose disk is full says so, and is read from. The words are the server's; no disk is filled.
func TestFull(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	s := openAt(t, dsn, Options{Timeout: patient})
	c := seed(t, s, "a")
	execute(t, pgtest.Superuser(t, dsn), `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
		CREATE TRIGGER full_disk BEFORE INSERT ON change_log EXECUTE FUNCTION full_disk()`)
	wantUnavailable(t, put(s, c), "the database's disk is full")
	if err := read(s, c); err != nil {
		t.Error(err)
	}
	execute(t, pgtest.Superuser(t, dsn), `DROP FUNCTION full_disk() CASCADE`)
	if err := put(s, c); err != nil {
		t.Error(err)
	}
}

// Z-F05: the facts of a standby may be old, and it does not know how old: it is skipped on the way to its primary,
// and a node with only a standby has no database. Neither cached facts nor the lease outlive their primary there.
func TestStandby(t *testing.T) {
	t.Parallel()
	primary := pgtest.NewServer(t)
	c := seed(t, openAt(t, primary.URL(), Options{Timeout: patient}), "a")
	standby := primary.NewStandby(t)
	for _, attributes := range []string{"any", "prefer-standby", "read-only", "read-write"} {
		s, err := Open(t.Context(), standby.URL()+"&target_session_attrs="+attributes, Options{Timeout: patient})
		if err == nil {
			_ = s.Close()
		}
		wantUnavailable(t, err, "standby")
	}
	both, err := url.Parse(standby.URL())
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(primary.URL())
	if err != nil {
		t.Fatal(err)
	}
	both.Host += "," + address.Host
	s := openAt(t, both.String(), Options{Timeout: patient})
	if err := errors.Join(read(s, c), put(s, c), s.Ping(t.Context())); err != nil {
		t.Error(err)
	}
	primary.Stop(t)
	wantUnavailable(t, read(s, c), "")
	wantUnavailable(t, s.Ping(t.Context()), "standby")
}

// Z-F06: while slow work holds all of the other connections, callers are still told apart.
func TestReservedConnections(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Timeout: patient, MaxConns: MinConns})
	c := seed(t, s, "a")
	hold, holding := make(chan struct{}), make(chan struct{}, 100)
	var all sync.WaitGroup
	for range s.main.Config().MaxConns {
		all.Go(func() {
			if err := s.readSnapshot(context.Background(), s.main, records.Of("a"), func(context.Context, records.Querier) error {
				holding <- struct{}{}
				<-hold
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	for range s.main.Config().MaxConns {
		<-holding
	}
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error)
	go func() {
		_, err := s.Connection(ctx, c.ConnectionKey)
		waiting <- err
	}()
	claim := storage.UserClaim{OrganizationID: "a", Issuer: "https://id.example.com", Subject: "somebody new", DerivedID: "new", Kind: storage.UserPerson}
	if _, err := s.ResolveUser(t.Context(), claim, start); err != nil {
		t.Error(err)
	}
	if _, err := s.APIKeyByHMAC(t.Context(), make([]byte, storage.APIKeyHMACSize)); !errors.Is(err, storage.ErrNotFound) {
		t.Error(err)
	}
	select {
	case err := <-waiting:
		t.Errorf("other work had a connection: %v", err)
	default:
	}
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(hold)
	all.Wait()
}

// Z-F06: unused connections go back to the server, whichever pool opened them: others may need them.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Timeout: patient, idle: 200 * time.Millisecond})
	c := seed(t, s, "a")
	if _, err := s.APIKeyByHMAC(t.Context(), make([]byte, storage.APIKeyHMACSize)); !errors.Is(err, storage.ErrNotFound) {
		t.Error(err)
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for s.main.Stat().TotalConns()+s.authenticate.Stat().TotalConns() > 0 {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal("connections stay open")
		}
	}
	if _, err := s.Connection(t.Context(), c.ConnectionKey); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// Z-F04: a statement that takes too long is given up, on the server too.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	patientStore := openAt(t, dsn, Options{Timeout: patient})
	c := seed(t, patientStore, "a")
	s := openAt(t, dsn, Options{Timeout: 2 * time.Second})
	err := writeOf(t.Context(), patientStore, "a", func(context.Context, *writeTx) error {
		wantUnavailable(t, put(s, c), "")
		return storage.ErrNotFound
	})
	if !errors.Is(err, storage.ErrNotFound) {
		t.Error(err)
	}
	if err := put(patientStore, c); err != nil {
		t.Error(err)
	}
	err = s.read(t.Context(), s.main, records.Of("a"), func(ctx context.Context, q records.Querier) error {
		_, err := records.One(ctx, q, records.ScanInt, `SELECT 1 FROM pg_sleep(600)`)
		return err
	})
	wantUnavailable(t, err, "in time")
}

// A deadlock that the server finds costs a try, not the write.
func TestDeadlocksAreRetried(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Timeout: patient})
	for _, o := range []string{"a", "b"} {
		seed(t, s, o)
	}
	var all, met sync.WaitGroup
	met.Add(2)
	for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		all.Go(func() {
			first := true
			if err := s.write(context.Background(), s.main, records.Everyone, noLock, func(ctx context.Context, tx *writeTx) error {
				for i, o := range order {
					if _, err := tx.Exec(ctx, `UPDATE servers SET client_id = client_id || 'x' WHERE organization_id = $1`, o); err != nil {
						return err
					}
					if i == 0 && first {
						first = false
						met.Done()
						met.Wait()
					}
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, o := range []string{"a", "b"} {
		v, err := s.ServerBySlug(t.Context(), o, "notes")
		if err != nil || v.ClientID != "xx" {
			t.Errorf("%s: %q, error %v", o, v.ClientID, err)
		}
	}
}

// Text that PostgreSQL cannot keep is refused whole, and finds nothing.
func TestUnstorableText(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	c := seed(t, s, "a")
	for _, text := range []string{"\x00", "before\x00after", "\xff"} {
		c.Reason = text
		if _, err := s.PutConnection(untold(t.Context()), c); !errors.Is(err, storage.ErrText) {
			t.Errorf("%q: %v", text, err)
		}
		if _, err := s.ServerBySlug(t.Context(), "a", text); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
