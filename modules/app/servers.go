package app

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/mcp/pinning"
	"github.com/durward-gateway/durward/internal/mcp/sighting"
	"github.com/durward-gateway/durward/internal/ops/probe"
	"github.com/durward-gateway/durward/internal/policy/evaluator"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// noteTimeout is the longest time for writing a note about a server.
const noteTimeout = 30 * time.Second

// bindServers makes the parts that know servers, from the core's other parts.
func (c *Core) bindServers(pins *settings.PinRules) {
	r := c.resources
	c.Evaluator = evaluator.New(evaluator.Options{Memory: r.servers, Store: r.store})
	c.Pins = pinning.New(pinning.Options{
		Memory: r.pins, Store: r.store, Hold: r.hold, Enforce: pins != nil && pins.Enforce, Log: c.Log, Now: time.Now,
		Record: func(ctx context.Context, organization string, e storage.AuditEntry) error {
			return c.Audit.Event(ctx, organization, e)
		},
	})
	c.Sightings = sighting.New(sighting.Options{Store: c.Store, Beside: c.beside, Unreachable: unreachable, Log: c.Log, Now: time.Now})
}

func unreachable(address *url.URL, err error) string {
	_, problem := probe.Words(address, netguard.Cause(err))
	return problem
}

// beside writes a note in the background. It reports false when the configuration is about to close.
func (c *Core) beside(write func(ctx context.Context)) bool {
	if !c.pin() {
		return false
	}
	go func() {
		defer c.unpin()
		ctx, cancel := context.WithTimeout(context.Background(), noteTimeout)
		defer cancel()
		write(ctx)
	}()
	return true
}

// ResolveServer sets the call's server to the one of that name in the caller's organization. Errors are the store's.
func (c *Call) ResolveServer(ctx context.Context, slug string) error {
	found, err := c.Core.Evaluator.Server(ctx, c.Party().Asker(), slug)
	if err != nil {
		return err
	}
	c.Server, c.Known = found.Server(), found
	return nil
}

// RenewServer reads the call's server again when something of its organization was written since. Errors are
// storage.ErrNotFound when the server is gone, and *streams.Ended when the caller's tokens were revoked.
func (c *Call) RenewServer(ctx context.Context) error {
	if err := c.renewStanding(ctx); err != nil {
		return err
	}
	now, err := c.Core.Evaluator.Renew(ctx, c.Party().Asker(), c.Known)
	if err != nil {
		return err
	}
	c.Server, c.Known = now.Server(), now
	return nil
}

// ServerURL returns the server's own address. Other requests share it: it must not be changed.
func (c *Call) ServerURL() (*url.URL, error) {
	if c.Known.Server() == c.Server {
		return c.Known.URL()
	}
	return url.Parse(c.Server.Entry.URL)
}

// WantsCredential notes, for the administrator, that the call's server asks for a credential although its directory entry names
// none.
func (c *Call) WantsCredential(logger *zap.Logger) {
	logger.Warn("forwarding", zap.String("server", c.Server.Slug), zap.Error(connection.ErrCredentialWanted),
		zap.String("advice", "set `provider` of the server's directory entry: oauth2, bearer_token, api_key or basic_auth"))
	c.Core.Sightings.WantsCredential(c.Server, c.Known.Sight())
}

// readOnlyEntries makes the shipped and the configured templates.
func (a *App) readOnlyEntries(core *Core) (map[storage.Source][]storage.DirectoryEntry, error) {
	shipped, err := directory.Catalogue()
	if err != nil {
		return nil, err
	}
	records, err := a.Directory.Records()
	if err != nil {
		return nil, err
	}
	if development := a.Development(); development != nil {
		records = append(records, development.Records()...)
	}
	configured, err := directory.ReadOnly(records, storage.SourceConfig, core.CheckUpstream)
	if err != nil {
		return nil, err
	}
	return map[storage.Source][]storage.DirectoryEntry{storage.SourceCatalogue: shipped, storage.SourceConfig: configured}, nil
}

// syncDirectory brings the store's read-only templates up to date. development may be nil.
func (c *Core) syncDirectory(ctx context.Context, development DevelopmentIdentity) error {
	for source, entries := range c.directory {
		if err := c.Store.SyncDirectory(ctx, source, entries, time.Now()); err != nil {
			return fmt.Errorf("storing the server directory: %w", err)
		}
	}
	if development != nil {
		if err := development.Seed(ctx, c.seeding()); err != nil {
			return err
		}
	}
	stored := digest(c.directory)
	c.resources.templates.Store(&stored)
	c.Readiness.Stored()
	return nil
}

func (c *Core) seeding() Seeding {
	return Seeding{
		Store: c.Store, Keyring: c.Keyring, Broker: c.Broker, Configured: c.models.ConfiguredModels(),
		At: func(now func() time.Time) (storage.Store, *record.Recorder) {
			then := c.Audit.At(now)
			return record.NewStore(c.resources.store, then), then
		},
	}
}

// storedBefore reports whether an earlier configuration has stored exactly these templates. If so, a node stays ready
// when it gets another configuration while its database is read-only.
func (c *Core) storedBefore() bool {
	stored := c.resources.templates.Load()
	return stored != nil && *stored == digest(c.directory)
}
