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

// ServerDeleted asks the provider to forget all tokens of a deleted server, in the background.
func (b *Broker) ServerDeleted(ctx context.Context, d storage.DeletedServer) {
	if d.Client == nil {
		return
	}
	for _, c := range d.Connections {
		b.retries.forget(c.ConnectionKey)
	}
	auth, err := b.auth(d.Server, *d.Client)
	if err != nil {
		b.log.Warn("tokens cannot be revoked", "organization", d.Server.OrganizationID, "server", d.Server.Slug, "error", err.Error())
		return
	}
	ctx = context.WithoutCancel(ctx)
	b.background(func() {
		var all errgroup.Group
		all.SetLimit(revokers)
		for _, c := range d.Connections {
			if !issuedTo(c, *d.Client) {
				continue
			}
			all.Go(func() error {
				b.revokeUnsaved(ctx, c.ConnectionKey)
				g, err := b.openGrant(c)
				switch {
				case err == nil:
					b.revokeNow(ctx, d.Server, *d.Client, auth, g)
				case !errors.Is(err, errNothingStored):
					b.notRevoked(c, err)
				}
				return nil
			})
		}
		_ = all.Wait() // errors are logged where they happen
	})
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
