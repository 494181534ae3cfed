package app

import (
	"context"
	"fmt"
	"time"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/storage"
)

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
		if err := development.Seed(ctx, c.Store, c.models.ConfiguredModels()); err != nil {
			return err
		}
	}
	stored := digest(c.directory)
	c.resources.templates.Store(&stored)
	c.unready.Store(false)
	return nil
}

// storedBefore reports whether an earlier configuration has stored exactly these templates. If so, a node stays ready
// when it gets another configuration while its database is read-only.
func (c *Core) storedBefore() bool {
	stored := c.resources.templates.Load()
	return stored != nil && *stored == digest(c.directory)
}
