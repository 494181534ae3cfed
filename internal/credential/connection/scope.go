package connection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/storage"
)

// unnamed stands in a connection's WantedScope for a missing permission whose scope the upstream did not name. It
// contains no scope: the next connect asks for the granted scopes, and the provider's page may let the user grant more.
const unnamed = " "

// Want notes that the upstream asked for scopes that the user's connection does not give (RFC 6750 section 3.1,
// insufficient_scope). The next connect then asks for them too. Only the user can grant them. Scopes are
// blank-separated. If there is no scope, or none that can be asked for, Want only notes that something is missing. It
// notes at most once a minute for a connection, which wants twenty scopes at most. Errors are the store's.
func (b *Broker) Want(ctx context.Context, key storage.ConnectionKey, scope string) error {
	c, err := b.store.Connection(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading connection: %w", err)
	}
	if widened(c, scope) == c.WantedScope || !b.wants.due(key, b.now()) {
		return nil
	}
	_, err = b.store.UpdateConnection(ctx, key, func(_ context.Context, c *storage.Connection) error {
		c.WantedScope = widened(*c, scope)
		return nil
	})
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		b.wants.forget(key)
		return fmt.Errorf("noting the scopes that the server wants: %w", err)
	}
	return nil
}

// GivesEnough reports whether the upstream has missed no permission since the user of key connected. Errors are the
// store's.
func (b *Broker) GivesEnough(ctx context.Context, key storage.ConnectionKey) (bool, error) {
	c, err := b.store.Connection(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading connection: %w", err)
	}
	return c.WantedScope == "", nil
}

// widened adds scopes to those that a connection wants. It leaves out granted scopes. To ask for them again would
// change nothing, and would send the user to the provider again and again.
func widened(c storage.Connection, scope string) string {
	granted, asked := strings.Fields(c.Scope), strings.Fields(scope)
	missing := slices.DeleteFunc(slices.Clone(asked), func(s string) bool { return slices.Contains(granted, s) })
	if len(asked) > 0 && len(missing) == 0 {
		return c.WantedScope
	}
	wanted, err := oauth.Union(strings.Fields(c.WantedScope), missing)
	if err != nil || len(wanted) == 0 {
		return cmp.Or(c.WantedScope, unnamed)
	}
	return strings.Join(wanted[:min(len(wanted), maxWanted)], " ")
}

// allRegistered is the end of a scope with which Entra ID grants everything that the app is registered for.
const allRegistered = "/.default"

// scopesFor returns the scopes for a connect. If the upstream wanted more, it returns the granted scopes together with
// the wanted ones: without them a provider may grant the new scope alone. It adds nothing to a scope for everything
// that the app is registered for. Entra ID refuses that scope beside others (AADSTS70011), and the user could not
// connect any more.
func scopesFor(client storage.OAuthClient, former storage.Connection) []string {
	all := slices.ContainsFunc(client.Scopes, func(scope string) bool { return strings.HasSuffix(scope, allRegistered) })
	if former.WantedScope == "" || all {
		return client.Scopes
	}
	scopes, err := oauth.Union(client.Scopes, strings.Fields(former.Scope), strings.Fields(former.WantedScope))
	if err != nil {
		return slices.Clone(client.Scopes)
	}
	return scopes
}
