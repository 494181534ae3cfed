package storagetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// status reads one user's status of one server, through a list and through a filter on the same status.
func (b *bundle) status(t *testing.T, key storage.ConnectionKey, now time.Time) storage.ConnectionStatus {
	t.Helper()
	f := storage.ServerFilter{OrganizationID: key.OrganizationID, UserID: key.UserID, ID: key.ServerID, Now: now, Page: storage.PageRequest{Number: 1, Limit: 10}}
	page, err := b.Servers(t.Context(), f)
	noError(t, err)
	equal(t, len(page.Items), 1)
	status := page.Items[0].ConnectionStatus
	for _, s := range []storage.ConnectionStatus{storage.ConnectionAvailable, storage.ConnectionPending, storage.ConnectionConnected, storage.ConnectionError} {
		f.ConnectionStatuses = []storage.ConnectionStatus{s}
		page, err := b.Servers(t.Context(), f)
		noError(t, err)
		if (page.Total == 1) != (s == status) {
			t.Fatalf("status %s, but the filter on %s finds %d", status, s, page.Total)
		}
	}
	return status
}

func testConnectionStatus(t *testing.T, b *bundle) {
	open := entry("Open")
	open.RequiresAuth = false
	noProvider := entry("No provider")
	noProvider.Provider = storage.ProviderNone
	exchange := entry("Exchange")
	exchange.Provider = storage.ProviderTokenExchange
	client := entry("Client")
	client.Provider = storage.ProviderClientCredentials
	workload := entry("Workload")
	workload.Provider = storage.ProviderWorkloadIdentity
	noError(t, b.SyncDirectory(t.Context(), storage.SourceConfig, []storage.DirectoryEntry{open, noProvider, exchange, client, workload}, start))

	type state struct {
		name       string
		entry      string
		lifecycle  storage.ServerStatus
		connection storage.ConnectionStatus // "": none
		noSecret   bool
		attempt    time.Duration // its lifetime, begun an hour ago; 0: none
		want       storage.ConnectionStatus
	}
	for _, c := range []state{
		{name: "nothing", want: storage.ConnectionAvailable},
		{name: "attempt", attempt: 2 * time.Hour, want: storage.ConnectionPending},
		{name: "attempt that ends now", attempt: time.Hour, want: storage.ConnectionAvailable},
		{name: "connected", connection: storage.ConnectionConnected, want: storage.ConnectionConnected},
		{name: "connected and attempt", connection: storage.ConnectionConnected, attempt: 2 * time.Hour, want: storage.ConnectionConnected},
		{name: "error", connection: storage.ConnectionError, noSecret: true, want: storage.ConnectionError},
		{name: "error with a credential kept", connection: storage.ConnectionError, want: storage.ConnectionError},
		{name: "error and attempt", connection: storage.ConnectionError, noSecret: true, attempt: 2 * time.Hour, want: storage.ConnectionPending},
		{name: "error and expired attempt", connection: storage.ConnectionError, noSecret: true, attempt: time.Hour - time.Second, want: storage.ConnectionError},
		{name: "pending server", lifecycle: storage.ServerPending, connection: storage.ConnectionConnected, want: storage.ConnectionPending},
		{name: "failing server", lifecycle: storage.ServerError, connection: storage.ConnectionConnected, want: storage.ConnectionPending},
		{name: "no authentication", entry: open.ID, want: storage.ConnectionConnected},
		{name: "no provider", entry: noProvider.ID, want: storage.ConnectionConnected},
		{name: "token exchange", entry: exchange.ID, want: storage.ConnectionConnected},
		{name: "token exchange, pending server", entry: exchange.ID, lifecycle: storage.ServerPending, want: storage.ConnectionPending},
		{name: "client credentials", entry: client.ID, want: storage.ConnectionConnected},
		{name: "client credentials, pending server", entry: client.ID, lifecycle: storage.ServerPending, want: storage.ConnectionPending},
		{name: "client credentials, failing server", entry: client.ID, lifecycle: storage.ServerError, want: storage.ConnectionPending},
		{name: "workload identity", entry: workload.ID, want: storage.ConnectionConnected},
		{name: "no authentication, pending server", entry: open.ID, lifecycle: storage.ServerPending, want: storage.ConnectionPending},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := b.newServer(b.orgA, c.name, "s-"+newID()[24:])
			if c.entry != "" {
				v.DirectoryID = c.entry
			}
			if c.lifecycle != "" {
				v.Status = c.lifecycle
			}
			noError(t, b.CreateServer(t.Context(), v))
			key := storage.ConnectionKey{OrganizationID: b.orgA, UserID: b.userA1, ServerID: v.ID}
			if c.connection != "" {
				x := connection(key)
				x.Status = c.connection
				if c.noSecret {
					x.SealedCredential = nil
				}
				_, err := b.PutConnection(t.Context(), x)
				noError(t, err)
			}
			if c.attempt != 0 {
				a := attempt(key)
				a.CreatedAt, a.ExpiresAt = start.Add(-time.Hour), start.Add(-time.Hour+c.attempt)
				noError(t, b.CreateAttempt(t.Context(), a))
			}
			equal(t, b.status(t, key, start), c.want)

			// O07, O08: another user's state is their own.
			want := storage.ConnectionAvailable
			if v.Status != storage.ServerActive {
				want = storage.ConnectionPending
			} else if c.entry != "" {
				want = storage.ConnectionConnected
			}
			key.UserID = b.userA2
			equal(t, b.status(t, key, start), want)
		})
	}
}

func testConnections(t *testing.T, b *bundle) {
	ctx := t.Context()
	key := b.connectionA1
	_, err := b.Connection(ctx, key)
	wantError(t, err, storage.ErrNotFound)
	_, err = b.DeleteConnection(untold(ctx), key)
	wantError(t, err, storage.ErrNotFound)

	c := connection(key)
	noError(t, b.CreateConnection(ctx, c))
	first, err := b.Connection(ctx, key)
	noError(t, err)
	c.Version = first.Version
	equal(t, first, c)
	wantConflict(t, b.CreateConnection(ctx, connection(key)), "connection")
	got, err := b.Connection(ctx, key)
	noError(t, err)
	equal(t, got, c)

	// Put replaces everything, absent members included.
	bare := storage.Connection{ConnectionKey: key, ID: c.ID, Status: storage.ConnectionError, Kind: storage.ProviderAPIKey}
	put, err := b.PutConnection(untold(ctx), bare)
	noError(t, err)
	got, err = b.Connection(ctx, key)
	noError(t, err)
	equal(t, got, put)
	if got.Version == first.Version {
		t.Error("the version did not change")
	}
	bare.Version = got.Version
	equal(t, got, bare)
	if got.SealedCredential != nil || !got.ExpiresAt.IsZero() {
		t.Errorf("nothing became %#v and %v", got.SealedCredential, got.ExpiresAt)
	}

	// Deletion returns the former state, and deletes the attempts too.
	a, theirs := attempt(key), attempt(storage.ConnectionKey{OrganizationID: b.orgA, UserID: b.userA2, ServerID: key.ServerID})
	noError(t, b.CreateAttempt(ctx, a))
	noError(t, b.CreateAttempt(ctx, theirs))
	deleted, err := b.DeleteConnection(untold(ctx), key)
	noError(t, err)
	equal(t, deleted, got)
	_, err = b.TakeAttempt(ctx, a.StateHash, start)
	wantError(t, err, storage.ErrNotFound)
	_, err = b.TakeAttempt(ctx, theirs.StateHash, start)
	noError(t, err)

	// A version never comes back, not even after a deletion.
	again := b.connect(t, key)
	if again.Version == first.Version || again.Version == got.Version {
		t.Errorf("version %d came back", again.Version)
	}

	// These are two connections with one id.
	twin := connection(storage.ConnectionKey{OrganizationID: b.orgA, UserID: b.userA2, ServerID: key.ServerID})
	twin.ID = again.ID
	wantConflict(t, b.CreateConnection(ctx, twin), "id")

	for _, gone := range []storage.ConnectionKey{
		{OrganizationID: b.orgA, UserID: b.userA1, ServerID: b.unknown},
		{OrganizationID: b.orgA, UserID: b.unknown, ServerID: b.serverA.ID},
		{OrganizationID: b.unknown, UserID: b.userA1, ServerID: b.serverA.ID},
	} {
		wantError(t, b.CreateConnection(ctx, connection(gone)), storage.ErrNotFound)
		_, err = b.PutConnection(ctx, connection(gone))
		wantError(t, err, storage.ErrNotFound)
		wantError(t, b.CreateAttempt(ctx, attempt(gone)), storage.ErrNotFound)
	}
}

func testUpdateConnection(t *testing.T, b *bundle) {
	ctx := t.Context()
	key := b.connectionA1
	_, err := b.UpdateConnection(ctx, key, func(context.Context, *storage.Connection) error {
		t.Error("edit was called without a connection")
		return nil
	})
	wantError(t, err, storage.ErrNotFound)

	want := b.connect(t, key)
	updated, err := b.UpdateConnection(ctx, key, func(_ context.Context, c *storage.Connection) error {
		equal(t, *c, want)
		c.SealedCredential[0]++ // in place
		c.Scope, c.WantedScope, c.ExpiresAt, c.UpdatedAt = "read write", "admin", start.Add(2*time.Hour), start.Add(time.Minute)
		c.ConnectionKey, c.Version = b.connectionB1, 99
		return nil
	})
	noError(t, err)
	want.SealedCredential[0]++
	want.Scope, want.WantedScope, want.ExpiresAt, want.UpdatedAt = "read write", "admin", start.Add(2*time.Hour), start.Add(time.Minute)
	if updated.Version == want.Version {
		t.Error("the version did not change")
	}
	want.Version = updated.Version
	equal(t, updated, want)
	got, err := b.Connection(ctx, key)
	noError(t, err)
	equal(t, got, want)

	refusal := errors.New("refused")
	_, err = b.UpdateConnection(ctx, key, func(_ context.Context, c *storage.Connection) error {
		c.SealedCredential[0], c.Scope = 0, "never"
		return refusal
	})
	if err != refusal {
		t.Errorf("got %v, want the edit's own error", err)
	}
	got, err = b.UpdateConnection(ctx, key, func(context.Context, *storage.Connection) error { return nil })
	noError(t, err)
	equal(t, got, want)
}

func testExclusiveEdits(t *testing.T, b *bundle) {
	key := b.connectionA1
	b.connect(t, key)
	other := storage.ConnectionKey{OrganizationID: b.orgA, UserID: b.userA2, ServerID: b.serverA.ID}
	b.connect(t, other)

	var inside atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 8 {
				_, err := b.UpdateConnection(t.Context(), key, func(ctx context.Context, c *storage.Connection) error {
					if inside.Add(1) != 1 {
						t.Error("two edits of one connection at once")
					}
					// The store continues to work while an edit talks to the provider: other connections, other
					// writes.
					if _, err := b.UpdateConnection(ctx, other, func(_ context.Context, c *storage.Connection) error {
						c.Scope += "y"
						return nil
					}); err != nil {
						t.Error(err)
					}
					c.Scope += "x"
					inside.Add(-1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for k, letter := range map[storage.ConnectionKey]string{key: "x", other: "y"} {
		c, err := b.Connection(t.Context(), k)
		noError(t, err)
		equal(t, c.Scope, "read"+strings.Repeat(letter, 64))
	}

	// Put and Delete wait for the edit too: neither overwrites a state that it does not know.
	editing, finish := make(chan struct{}), make(chan struct{})
	all.Go(func() {
		if _, err := b.UpdateConnection(t.Context(), key, func(_ context.Context, c *storage.Connection) error {
			close(editing)
			<-finish
			c.Scope = "rotated"
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	<-editing
	deleted := make(chan storage.Connection, 1)
	all.Go(func() {
		c, err := b.DeleteConnection(untold(t.Context()), key)
		if err != nil {
			t.Error(err)
		}
		deleted <- c
	})
	select {
	case <-deleted:
		t.Error("the connection was deleted under an edit")
	default:
	}
	close(finish)
	equal(t, (<-deleted).Scope, "rotated")
	all.Wait()
}

func testEditOutlivesCaller(t *testing.T, b *bundle) {
	b.connect(t, b.connectionA1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stored, err := b.UpdateConnection(ctx, b.connectionA1, func(_ context.Context, c *storage.Connection) error {
		cancel() // the client leaves after the provider has rotated the refresh token
		c.SealedCredential = []byte("rotated")
		return nil
	})
	noError(t, err)
	got, err := b.Connection(t.Context(), b.connectionA1)
	noError(t, err)
	equal(t, got, stored)
	equal(t, string(got.SealedCredential), "rotated")
}

func testEditPanics(t *testing.T, b *bundle) {
	want := b.connect(t, b.connectionA1)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = b.UpdateConnection(t.Context(), b.connectionA1, func(_ context.Context, c *storage.Connection) error {
			c.Scope = "never"
			panic("edit")
		})
	}()
	got, err := b.UpdateConnection(t.Context(), b.connectionA1, func(context.Context, *storage.Connection) error { return nil })
	noError(t, err)
	equal(t, got, want)
}

func testEditOfDeleted(t *testing.T, b *bundle) {
	for _, change := range []string{"changed", "read"} {
		b.connect(t, b.connectionA1)
		_, err := b.UpdateConnection(t.Context(), b.connectionA1, func(ctx context.Context, c *storage.Connection) error {
			if _, err := b.DeleteServer(untold(ctx), b.orgA, b.serverA.ID, "", start); err != nil {
				t.Error(err)
			}
			c.Scope = change
			return nil
		})
		wantError(t, err, storage.ErrNotFound)
		_, err = b.Connection(t.Context(), b.connectionA1)
		wantError(t, err, storage.ErrNotFound)
		noError(t, b.CreateServer(t.Context(), b.serverA))
		_, err = b.Connection(t.Context(), b.connectionA1)
		wantError(t, err, storage.ErrNotFound)
	}
}

func testEditWaitEnds(t *testing.T, b *bundle) {
	key := b.connectionA1
	b.connect(t, key)
	editing, finish := make(chan struct{}), make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := b.UpdateConnection(t.Context(), key, func(context.Context, *storage.Connection) error {
			close(editing)
			<-finish
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	<-editing
	canceled, cancel := context.WithCancel(t.Context())
	expired, stop := context.WithDeadline(t.Context(), time.Now())
	defer stop()
	cancel()
	for ctx, want := range map[context.Context]error{canceled: context.Canceled, expired: storage.ErrUnavailable} {
		_, err := b.UpdateConnection(ctx, key, func(context.Context, *storage.Connection) error {
			t.Error("edit ran beside another")
			return nil
		})
		wantError(t, err, want)
		_, err = b.PutConnection(untold(ctx), connection(key))
		wantError(t, err, want)
	}
	_, err := b.Connection(t.Context(), key) // reads do not wait
	noError(t, err)
	close(finish)
	all.Wait()
}

func testAttempts(t *testing.T, b *bundle) {
	ctx := t.Context()
	a := attempt(b.connectionA1)
	noError(t, b.CreateAttempt(ctx, a))
	wantConflict(t, b.CreateAttempt(ctx, a), "state")
	got, err := b.TakeAttempt(ctx, a.StateHash, start.Add(time.Minute))
	noError(t, err)
	equal(t, got, a)
	_, err = b.TakeAttempt(ctx, a.StateHash, start.Add(time.Minute))
	wantError(t, err, storage.ErrNotFound)
	for _, unknown := range [][]byte{nil, {}, []byte(newID()), []byte("' OR 1=1 --")} {
		_, err = b.TakeAttempt(ctx, unknown, start)
		wantError(t, err, storage.ErrNotFound)
	}

	// Expired ones cannot be taken, and are deleted when the next attempt comes. Others of the same key stay.
	old, fresh, next := attempt(b.connectionA1), attempt(b.connectionA1), attempt(b.connectionA1)
	old.ExpiresAt = start.Add(time.Second)
	noError(t, b.CreateAttempt(ctx, old))
	noError(t, b.CreateAttempt(ctx, fresh))
	_, err = b.TakeAttempt(ctx, old.StateHash, old.ExpiresAt)
	wantError(t, err, storage.ErrNotFound)
	next.CreatedAt = start.Add(time.Minute)
	noError(t, b.CreateAttempt(ctx, next))
	_, err = b.TakeAttempt(ctx, old.StateHash, start) // not even by a clock that lags
	wantError(t, err, storage.ErrNotFound)
	for _, live := range []storage.Attempt{fresh, next} {
		_, err = b.TakeAttempt(ctx, live.StateHash, start.Add(2*time.Minute))
		noError(t, err)
	}

	// There are never more than MaxAttempts of a key: the oldest are deleted.
	var many []storage.Attempt
	for i := range storage.MaxAttempts + 2 {
		next := attempt(b.connectionA1)
		next.ExpiresAt = start.Add(time.Hour + time.Duration(i)*time.Second)
		noError(t, b.CreateAttempt(ctx, next))
		many = append(many, next)
	}
	for i, a := range many {
		_, err = b.TakeAttempt(ctx, a.StateHash, start.Add(2*time.Minute))
		if gone := i < 2; gone != errors.Is(err, storage.ErrNotFound) {
			t.Errorf("attempt %d: %v", i, err)
		}
	}

	// Disconnecting cancels an attempt, although nothing is stored yet.
	off := attempt(b.connectionA1)
	noError(t, b.CreateAttempt(ctx, off))
	_, err = b.DeleteConnection(untold(ctx), b.connectionA1)
	wantError(t, err, storage.ErrNotFound)
	_, err = b.TakeAttempt(ctx, off.StateHash, start.Add(time.Minute))
	wantError(t, err, storage.ErrNotFound)

	// An attempt does not disturb the stored connection.
	c := b.connect(t, b.connectionA1)
	noError(t, b.CreateAttempt(ctx, attempt(b.connectionA1)))
	read, err := b.Connection(ctx, b.connectionA1)
	noError(t, err)
	equal(t, read, c)
}

func testAttemptRace(t *testing.T, b *bundle) {
	a := attempt(b.connectionA1)
	noError(t, b.CreateAttempt(t.Context(), a))
	var taken atomic.Int32
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			switch got, err := b.TakeAttempt(t.Context(), a.StateHash, start); {
			case err == nil:
				taken.Add(1)
				if got.ConnectionID != a.ConnectionID {
					t.Errorf("got %+v", got)
				}
			case !errors.Is(err, storage.ErrNotFound):
				t.Error(err)
			}
		})
	}
	all.Wait()
	equal(t, taken.Load(), 1)
}

func testDataKeys(t *testing.T, b *bundle) {
	ctx := t.Context()
	keys, err := b.DataKeys(ctx)
	noError(t, err)
	equal(t, len(keys), 0)
	var want []storage.DataKey
	for version := 1; version <= 3; version++ {
		want = append(want, storage.DataKey{Version: version, MasterKeyID: "master", Wrapped: []byte{byte(version), 0, 0xff}, CreatedAt: start})
	}
	for _, i := range []int{1, 0, 2} {
		noError(t, b.AddDataKey(ctx, want[i]))
	}
	keys, err = b.DataKeys(ctx)
	noError(t, err)
	equal(t, keys, want)
	wantConflict(t, b.AddDataKey(ctx, storage.DataKey{Version: 2, MasterKeyID: "other", Wrapped: []byte{1}, CreatedAt: start}), "version")

	// Of two nodes that both make the first key one wins.
	var won atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := b.AddDataKey(ctx, storage.DataKey{Version: 9, Wrapped: []byte{1}}); err == nil {
				won.Add(1)
			} else if !errors.Is(err, storage.ErrConflict) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	equal(t, won.Load(), 1)
}

// testServerConnections checks that the connections to a server are listed with their users, each once.
func testServerConnections(t *testing.T, b *bundle) {
	ctx := t.Context()
	second := storage.ConnectionKey{OrganizationID: b.orgA, UserID: b.userA2, ServerID: b.serverA.ID}
	first := b.connect(t, b.connectionA1)
	b.connect(t, second)
	b.connect(t, b.connectionB1)
	list := func(organization, server, after string, limit int) []storage.UserConnection {
		t.Helper()
		all, err := b.ServerConnections(ctx, storage.ConnectionFilter{OrganizationID: organization, ServerID: server, After: after, Limit: limit})
		noError(t, err)
		return all
	}
	all := list(b.orgA, b.serverA.ID, "", 10)
	if len(all) != 2 || all[0].UserID >= all[1].UserID {
		t.Fatalf("%v", all)
	}
	at := slices.IndexFunc(all, func(c storage.UserConnection) bool { return c.UserID == b.userA1 })
	equal(t, all[at], storage.UserConnection{
		UserID: b.userA1, Status: first.Status, Kind: first.Kind, Scope: first.Scope, Reason: first.Reason, CreatedAt: first.CreatedAt, UpdatedAt: first.UpdatedAt,
	})
	equal(t, list(b.orgA, b.serverA.ID, "", 1), all[:1])
	equal(t, list(b.orgA, b.serverA.ID, all[0].UserID, 10), all[1:])
	equal(t, len(list(b.orgA, b.serverA.ID, all[1].UserID, 10)), 0)
	for _, key := range [][2]string{{b.orgB, b.serverA.ID}, {b.orgA, b.serverB.ID}, {b.orgA, b.unknown}, {b.unknown, b.serverA.ID}} {
		if got := list(key[0], key[1], "", 10); len(got) != 0 {
			t.Errorf("O01 %v: %v", key, got)
		}
	}
}
