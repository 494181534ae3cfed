package broker

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/durward-gateway/durward/internal/oauthflow"
	"github.com/durward-gateway/durward/storage"
)

// Disconnect deletes a connection with its attempts. Once that is done the provider is asked to forget the tokens
// (RFC 7009), in the background, for a day if need be. storage.ErrNotFound when there is no connection.
func (b *Broker) Disconnect(ctx context.Context, key storage.ConnectionKey) error {
	was, err := b.store.DeleteConnection(ctx, key)
	if err != nil {
		return fmt.Errorf("deleting connection: %w", err)
	}
	b.retries.forget(key)
	b.revokeConnection(ctx, was)
	return nil
}

// ServerDeleted asks the provider to forget all tokens of a deleted server, in the background. All of it is stored before the
// provider is asked for the first time: it may take long, or not answer.
func (b *Broker) ServerDeleted(ctx context.Context, d storage.DeletedServer) {
	ctx = context.WithoutCancel(ctx)
	for _, c := range d.Connections {
		b.retries.forget(c.ConnectionKey)
		b.revokeUnsaved(ctx, c.ConnectionKey)
	}
	if d.Client == nil {
		return
	}
	auth, err := b.auth(d.Server, *d.Client)
	if err != nil {
		b.notRevoked(storage.Connection{ConnectionKey: storage.ConnectionKey{OrganizationID: d.Server.OrganizationID, ServerID: d.Server.ID}}, err)
		return
	}
	b.background(func() {
		var all errgroup.Group
		for _, try := range b.keepAll(ctx, d, auth) {
			all.Go(func() error { try(); return nil }) // errors are logged where they happen
		}
		_ = all.Wait()
	})
}

// keepAll stores what the provider of a deleted server is to be told, and returns what tells it.
func (b *Broker) keepAll(ctx context.Context, d storage.DeletedServer, auth oauthflow.ClientAuth) (tries []func()) {
	for _, c := range d.Connections {
		if !issuedTo(c, *d.Client) {
			continue
		}
		g, err := b.openGrant(c)
		if err != nil {
			if !errors.Is(err, errNothingStored) {
				b.notRevoked(c, err)
			}
			continue
		}
		if v, told := b.keepRevocation(ctx, d.Server, *d.Client, auth, g); told != nil {
			tries = append(tries, func() { b.tryRevocation(ctx, v, told) })
		}
	}
	return tries
}

// revokeConnection asks the provider to forget the tokens of a connection that is no longer stored, those that were not stored yet
// included.
func (b *Broker) revokeConnection(ctx context.Context, c storage.Connection) {
	b.revokeUnsaved(ctx, c.ConnectionKey)
	g, err := b.openGrant(c)
	if c.Kind != storage.ProviderOAuth2 || errors.Is(err, errNothingStored) {
		return
	}
	if err != nil {
		b.notRevoked(c, err)
		return
	}
	ctx, cancel := b.apart(ctx, revokeDeadline)
	defer cancel()
	client, err := b.store.OAuthClient(ctx, c.OrganizationID, c.ServerID)
	if err == nil && !issuedTo(c, client) {
		err = errors.New("they were issued to another client")
	}
	var auth oauthflow.ClientAuth
	var s storage.Server
	if err == nil {
		if s, err = b.store.Server(ctx, c.OrganizationID, c.ServerID); err == nil {
			auth, err = b.auth(s, client)
		}
	}
	if err != nil {
		b.notRevoked(c, err)
		return
	}
	b.revoke(ctx, s, client, auth, g)
}

func (b *Broker) notRevoked(c storage.Connection, cause error) {
	b.count(NotRevoked)
	b.log.Warn("tokens cannot be revoked", "organization", c.OrganizationID, "server", c.ServerID, "error", cause.Error())
}

// issuedTo reports whether the client may speak of the connection's tokens: nobody else is told them.
func issuedTo(c storage.Connection, client storage.OAuthClient) bool {
	return c.Kind == storage.ProviderOAuth2 && c.ClientID == client.ClientID && c.Issuer == client.Issuer
}

// background runs f apart from any request. Close waits for it, within bounds; after Close f does not run.
func (b *Broker) background(f func()) {
	if !b.begin() {
		return
	}
	go func() {
		defer b.work.Done()
		f()
	}()
}
