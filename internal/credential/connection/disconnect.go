package connection

import (
	"context"
	"fmt"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// Disconnect deletes a connection together with its attempts. Afterwards it asks the provider to revoke the tokens (RFC
// 7009), in the background, for up to a day. It returns storage.ErrNotFound when there is no connection.
func (b *Broker) Disconnect(ctx context.Context, key storage.ConnectionKey) error {
	e := b.newEnding()
	if _, err := b.store.DeleteConnection(e.in(ctx), key); err != nil {
		return fmt.Errorf("deleting connection: %w", err)
	}
	b.retries.forget(key)
	e.told()
	b.revokeUnsaved(ctx, key)
	return nil
}

// DeleteServer deletes a server as storage.Servers does. It also asks the provider to revoke all tokens of the server,
// in the background.
func (b *Broker) DeleteServer(ctx context.Context, organization, id, by string, now time.Time) (storage.DeletedServer, error) {
	in, told := Ending(ctx, b)
	d, err := b.store.DeleteServer(in, organization, id, by, now)
	if err != nil {
		return d, err
	}
	told(ctx, []storage.DeletedServer{d})
	return d, nil
}

// Ending returns a context in which a broker's store deletes servers, and the function that must be called once that is
// committed. It asks the providers to revoke all tokens of the servers, in the background.
func Ending(ctx context.Context, b *Broker) (context.Context, func(ctx context.Context, deleted []storage.DeletedServer)) {
	e := b.newEnding()
	return e.in(ctx), func(ctx context.Context, deleted []storage.DeletedServer) {
		e.told()
		for _, d := range deleted {
			b.forget(ctx, d.Connections)
		}
	}
}

// OffboardUser ends everything of a user in a broker's store as storage.Identities does. The broker also asks the
// providers to revoke all tokens of the user, in the background.
func OffboardUser(ctx context.Context, b *Broker, r storage.OffboardRequest) (storage.Offboarding, error) {
	all, err := Offboard(ctx, b, func(ctx context.Context) ([]storage.Offboarding, error) {
		o, err := b.store.OffboardUser(ctx, r)
		return []storage.Offboarding{o}, err
	})
	if err != nil {
		return storage.Offboarding{}, err
	}
	return all[0], nil
}

// Offboard does the work of OffboardUser for the users that a write ends everything of, which calls the store with the
// context that it gets.
func Offboard(ctx context.Context, b *Broker, write func(ctx context.Context) ([]storage.Offboarding, error)) ([]storage.Offboarding, error) {
	e := b.newEnding()
	all, err := write(e.in(ctx))
	if err != nil {
		return nil, err
	}
	e.told()
	for i := range all {
		b.forget(ctx, all[i].Ended)
	}
	return all, nil
}

// forget drops what this process knows about deleted connections, and revokes the tokens that no store has taken.
func (b *Broker) forget(ctx context.Context, deleted []storage.Connection) {
	for _, c := range deleted {
		b.retries.forget(c.ConnectionKey)
		b.revokeUnsaved(context.WithoutCancel(ctx), c.ConnectionKey)
	}
}

// background runs f independently of any request. Close waits for f for a limited time. After Close, f does not run and
// background returns false.
func (b *Broker) background(f func()) (runs bool) {
	if !b.begin() {
		return false
	}
	go func() {
		defer b.work.Done()
		f()
	}()
	return true
}
