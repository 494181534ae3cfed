package app

import (
	"context"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/directory"
	"github.com/durward-gateway/durward/storage"
)

// Directory adds templates of servers to the catalogue that ships with the gateway. They are read-only in the API.
type Directory struct {
	// References to files, `{file./path}`, each holding a JSON array of entries.
	Files []string `json:"files,omitempty"`
	// Entries.
	Entries []directory.Record `json:"entries,omitempty"`
}

// syncDirectory brings the store's read-only templates up to date with what ships and what is configured.
func (a *App) syncDirectory(core *Core) error {
	shipped, err := directory.Catalogue()
	if err != nil {
		return err
	}
	records, err := a.Directory.records()
	if err != nil {
		return err
	}
	if development := a.Development(); development != nil {
		records = append(records, development.Records()...)
	}
	configured, err := directory.ReadOnly(records, storage.SourceConfig, core.Guard.CheckURL)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	for source, entries := range map[storage.Source][]storage.DirectoryEntry{storage.SourceCatalogue: shipped, storage.SourceConfig: configured} {
		if err := core.Store.SyncDirectory(ctx, source, entries, time.Now()); err != nil {
			return fmt.Errorf("storing the server directory: %w", err)
		}
	}
	if development := a.Development(); development != nil {
		return development.Seed(ctx, core.Store)
	}
	return nil
}

func (d *Directory) records() ([]directory.Record, error) {
	if d == nil {
		return nil, nil
	}
	records := append([]directory.Record(nil), d.Entries...)
	for _, reference := range d.Files {
		content, err := caddy.NewReplacer().ReplaceOrErr(reference, true, true)
		if err != nil {
			return nil, fmt.Errorf("directory %s: %w", reference, err)
		}
		more, err := directory.ParseRecords([]byte(content))
		if err != nil {
			return nil, fmt.Errorf("directory %s: %w", reference, err)
		}
		records = append(records, more...)
	}
	return records, nil
}
