package rekey

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/ops/storemigrate"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
	"github.com/durward-gateway/durward/storage/sqlite"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
	"github.com/durward-gateway/durward/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Main{M: m}) }

const patient = time.Minute

func newMaster(t *testing.T) seal.MasterKey {
	t.Helper()
	m, err := seal.ParseMasterKey(seal.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// ring opens a store's data keys as a gateway does.
func ring(t *testing.T, store storage.DataKeys, masters ...seal.MasterKey) *seal.Keyring {
	t.Helper()
	k, err := seal.OpenKeyring(t.Context(), masters, store, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// filled returns a SQLite store with rows in every table, with sealed secrets. The secrets of row i contain their
// place.
func filled(t *testing.T, master seal.MasterKey, rows int) (path string, store *sqlite.Store) {
	t.Helper()
	path = sqlitetest.Path(t)
	store = sqlitetest.OpenAt(t, path, sqlite.Options{Timeout: patient})
	k := ring(t, store, master)
	tables, err := store.Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tables = slices.DeleteFunc(tables, func(table storage.Table) bool { return table.Name == "data_keys" })
	db, err := sql.Open("sqlite", "file:"+path+"?_foreign_keys=1")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	storagetest.FillTables(t, db, tables, rows, func(table storage.Table, column string, row []any) (any, bool) {
		for _, c := range columns {
			if c.table != table.Name || c.column != column || row[table.Column(column)] == nil {
				continue
			}
			place := c.place(fields(table, row))
			sealed, err := k.Seal([]byte(fmt.Sprint(place)), place)
			if err != nil {
				t.Fatal(err)
			}
			return sealed, true
		}
		return nil, false
	})
	return path, store
}

// TestEveryColumnIsKnown checks that every sealed column, also of a future migration, is sealed anew.
func TestEveryColumnIsKnown(t *testing.T) {
	t.Parallel()
	_, store := filled(t, newMaster(t), 1)
	tables, err := store.Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var there, known []string
	for _, table := range tables {
		for _, c := range table.Columns {
			if strings.HasPrefix(c.Name, "sealed") {
				there = append(there, table.Name+"."+c.Name)
			}
		}
	}
	for _, c := range columns {
		known = append(known, c.table+"."+c.column)
	}
	slices.Sort(there)
	slices.Sort(known)
	if diff := cmp.Diff(there, known); diff != "" {
		t.Errorf("(-schema +known)\n%s", diff)
	}
}

// check opens every sealed value with a keyring and counts them by the version of their key.
func check(t *testing.T, store Store, k *seal.Keyring) map[uint32]int {
	t.Helper()
	versions := make(map[uint32]int)
	err := each(t.Context(), store, nil, func(table storage.Table, row []any, at int, place seal.AD) error {
		sealed := row[at].([]byte)
		versions[binary.BigEndian.Uint32(sealed[1:])]++ // behind the format
		if plain, err := k.Open(sealed, place); err != nil || string(plain) != fmt.Sprint(place) {
			t.Errorf("%s %v: %q, %v", table.Name, table.KeyOf(row), plain, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return versions
}

// TestRewrap covers L12: a new master key takes over, and the former one becomes useless. Sealed and issued values stay
// good.
func TestRewrap(t *testing.T) {
	t.Parallel()
	former, next := newMaster(t), newMaster(t)
	_, store := filled(t, former, 4)
	running := ring(t, store, former)
	digest, token := running.Digester("api key").Sum([]byte("key")), running.Sealer("session").Seal([]byte("s"), nil)

	if _, err := Rewrap(t.Context(), store, []seal.MasterKey{next}); err == nil || !strings.Contains(err.Error(), former.ID()) {
		t.Errorf("without the former key: %v", err)
	}
	for _, want := range []int{1, 0} {
		if n, err := Rewrap(t.Context(), store, []seal.MasterKey{next, former}); err != nil || n != want {
			t.Errorf("%d data keys, %v; want %d", n, err, want)
		}
	}
	check(t, store, running)
	after := ring(t, store, next)
	check(t, store, after)
	if !bytes.Equal(after.Digester("api key").Sum([]byte("key")), digest) {
		t.Error("API keys are no good any more")
	}
	if _, err := after.Sealer("session").Open(token, nil); err != nil {
		t.Errorf("a token is no good any more: %v", err)
	}
	if _, err := seal.OpenKeyring(t.Context(), []seal.MasterKey{former}, store, time.Now); err == nil {
		t.Error("the former master key opens the store")
	}
	keys, err := store.DataKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := store.RewrapDataKey(t.Context(), keys[0], []byte("what it is not")); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("a wrapping that somebody else has replaced is replaced: %v", err)
	}
}

// TestReseal checks that everything is sealed anew beside gateways that read and write all the time. None of them may
// fail to open a value, and an interruption loses nothing.
func TestReseal(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T, path string) Store{
		"sqlite": func(t *testing.T, path string) Store { // in the role of another process
			s, err := sqlite.Open(t.Context(), path, sqlite.Options{Timeout: patient})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
		"postgres": openCopy,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const rows = 30
			master := newMaster(t)
			path, first := filled(t, master, rows)
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			store := open(t, path)
			gateway := ring(t, store, master)
			before := check(t, store, gateway)
			if version, err := AddDataKey(t.Context(), store, master, time.Now()); err != nil || version != 2 {
				t.Fatal(version, err)
			}
			stop := make(chan struct{})
			var opened, written atomic.Int64
			var load sync.WaitGroup
			for n := range 4 {
				load.Go(func() {
					for i := 0; ; i++ {
						select {
						case <-stop:
							return
						default:
						}
						use(t, store, gateway, n*1000+i, &opened, &written)
					}
				})
			}
			rotating := ring(t, store, master)
			if rotating.Newest() != 2 {
				t.Fatal("the new key is not known")
			}
			interrupted, cancel := context.WithCancel(t.Context())
			if _, err := Reseal(interrupted, store, rotating, func(Progress) { cancel() }); !errors.Is(err, context.Canceled) {
				t.Errorf("interrupted: %v", err)
			}
			var pass Pass
			for tries := 0; ; tries++ {
				var err error
				if pass, err = Reseal(t.Context(), store, rotating, nil); err != nil {
					t.Fatal(err)
				}
				if tries == 2 {
					close(stop) // from here on no code seals with the former key
					load.Wait()
				}
				if tries > 2 && pass.Resealed == 0 {
					break
				}
			}
			if opened.Load() == 0 || written.Load() == 0 {
				t.Errorf("beside it %d values were opened and %d written", opened.Load(), written.Load())
			}
			if n, err := Older(t.Context(), store, rotating); err != nil || n != 0 {
				t.Errorf("%d values are sealed with the former key, %v", n, err)
			}
			after := check(t, store, gateway)
			if after[1] != 0 || after[2] != before[1] || before[1] < 100 {
				t.Errorf("versions before %v, after %v", before, after)
			}
		})
	}
}

// openCopy returns the store in PostgreSQL.
func openCopy(t *testing.T, path string) Store {
	t.Helper()
	source, err := sqlite.OpenExclusively(t.Context(), path, sqlite.Options{Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	dsn := pgtest.Database(t)
	target, err := postgres.OpenArrival(t.Context(), dsn, postgres.Options{Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if _, err := storemigrate.Copy(t.Context(), source, target, storemigrate.Options{}); err != nil {
		t.Fatal(err)
	}
	s, err := postgres.Open(t.Context(), dsn, postgres.Options{Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestBroken checks that values that cannot be opened are reported and left alone. They must not keep other values from
// being sealed anew, nor block the next rotation.
func TestBroken(t *testing.T) {
	t.Parallel()
	master := newMaster(t)
	path, store := filled(t, master, 5)
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `UPDATE servers SET sealed_client_secret = x'0100000001' WHERE sealed_client_secret IS NOT NULL`); err != nil {
		t.Fatal(err)
	}
	if _, err := AddDataKey(t.Context(), store, master, time.Now()); err != nil {
		t.Fatal(err)
	}
	rotating := ring(t, store, master)
	if n, err := Older(t.Context(), store, rotating); err != nil || n == 0 {
		t.Errorf("before: %d values are left, %v", n, err)
	}
	pass, err := Reseal(t.Context(), store, rotating, nil)
	if n, err := Older(t.Context(), store, rotating); err != nil || n != 0 {
		t.Errorf("after: %d values are left, %v", n, err)
	}
	if err != nil || len(pass.Broken) != 4 || pass.Broken[0].Table != "servers" || pass.Resealed != pass.Sealed-4 || pass.Resealed == 0 {
		t.Errorf("%+v, %v", pass, err)
	}
}

// use opens a connection's credential, and now and then writes it anew, as a gateway does.
func use(t *testing.T, store Store, gateway *seal.Keyring, i int, opened, written *atomic.Int64) {
	connections := store.(storage.Connections)
	tables, err := store.Tables(t.Context())
	if err != nil {
		t.Error(err)
		return
	}
	at := slices.IndexFunc(tables, func(table storage.Table) bool { return table.Name == "connections" })
	page, err := store.Rows(t.Context(), tables[at], nil, 120)
	if err != nil {
		t.Error(err)
		return
	}
	f := fields(tables[at], page[i%len(page)])
	key := storage.ConnectionKey{OrganizationID: f("organization_id"), UserID: f("user_id"), ServerID: f("server_id")}
	place := seal.ConnectionPlace(key.OrganizationID, key.UserID, key.ServerID)
	c, err := connections.Connection(t.Context(), key)
	if err != nil {
		t.Error(err)
		return
	}
	if c.SealedCredential == nil {
		return
	}
	plain, err := gateway.Open(c.SealedCredential, place)
	if err != nil {
		t.Errorf("a credential does not open: %v", err)
		return
	}
	opened.Add(1)
	if i%5 > 0 {
		return
	}
	_, err = connections.UpdateConnection(t.Context(), key, func(_ context.Context, c *storage.Connection) (err error) {
		c.SealedCredential, err = gateway.Seal(plain, place)
		return err
	})
	if err != nil {
		t.Error(err)
		return
	}
	written.Add(1)
}
