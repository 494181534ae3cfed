package app

import (
	"context"
	"fmt"
	"time"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/storage"
)

// Directory adds templates of servers to the catalogue that ships with the gateway. They are read-only in the API.
type Directory struct {
	// References to files, `{file./path}`, each holding a JSON array of entries. Default: none.
	Files []string `json:"files,omitempty"`
	// Entries that are written out here. Default: none.
	Entries []directory.Record `json:"entries,omitempty"`
}

// readOnlyEntries makes the shipped and the configured templates.
func (a *App) readOnlyEntries(core *Core) (map[storage.Source][]storage.DirectoryEntry, error) {
	shipped, err := directory.Catalogue()
	if err != nil {
		return nil, err
	}
	records, err := a.Directory.records()
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

func (d *Directory) records() ([]directory.Record, error) {
	if d == nil {
		return nil, nil
	}
	records := append([]directory.Record(nil), d.Entries...)
	for _, reference := range d.Files {
		if !IsReference(reference) {
			return nil, fmt.Errorf("directory: %q is not a reference such as {file./path}", reference)
		}
		content, err := resolve(reference)
		if err != nil {
			return nil, fmt.Errorf("directory: %w", err)
		}
		more, err := directory.ParseRecords([]byte(content))
		if err != nil {
			return nil, fmt.Errorf("directory %s: %w", reference, err)
		}
		records = append(records, more...)
	}
	for i := range records {
		if !IsReference(records[i].TrustedCA) {
			continue
		}
		content, err := resolve(records[i].TrustedCA)
		if err != nil {
			return nil, fmt.Errorf("directory entry %q: trusted_ca: %w", records[i].Name, err)
		}
		records[i].TrustedCA = content
	}
	return records, nil
}
