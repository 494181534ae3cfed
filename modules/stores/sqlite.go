// Package stores opens the store that a configuration names. Its modules are the guests of durward.stores: SQLite for
// one node, PostgreSQL for several. It reads and writes no records: that is for the drivers in storage.
package stores

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/durward-gateway/durward/internal/ops/access"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/process"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite"
)

func init() {
	caddy.RegisterModule(SQLite{})
}

// SQLite keeps everything in one file on a local disk. It is the store of a single node: the file must not be on a
// network file system. The file and its directory are made when they are missing, readable by their owner only.
type SQLite struct {
	// The path of the database file. A relative path is taken from the working directory. Required.
	Path string `json:"path,omitempty"`

	path string
}

// CaddyModule returns the Caddy module information.
func (SQLite) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "durward.stores.sqlite", New: func() caddy.Module { return new(SQLite) }}
}

// Provision resolves the path.
func (s *SQLite) Provision(caddy.Context) error {
	path, err := caddy.NewReplacer().ReplaceOrErr(s.Path, true, true)
	if err != nil {
		return fmt.Errorf("store sqlite: resolving path: %w", err)
	}
	if path == "" {
		return fmt.Errorf("store sqlite: no path is given")
	}
	if s.path, err = filepath.Abs(path); err != nil {
		return fmt.Errorf("store sqlite: resolving path: %w", err)
	}
	return nil
}

// Key implements app.StoreOpener.
func (s *SQLite) Key() string { return "sqlite " + s.path }

// Open implements app.StoreOpener.
func (s *SQLite) Open(ctx context.Context) (storage.Store, error) {
	if directory, trying := process.Trial(); trying {
		return s.try(ctx, filepath.Join(directory, "durward.db"))
	}
	return sqlite.Open(ctx, s.path, sqlite.Options{})
}

// try makes a store at another path that has the data keys of this one, and returns the reason when this one cannot be
// opened.
func (s *SQLite) try(ctx context.Context, path string) (storage.Store, error) {
	keys, err := sqlite.KeysBefore(ctx, s.path)
	if err != nil {
		return nil, err
	}
	if err := access.Make(s.path); err != nil {
		if which := (*fs.PathError)(nil); errors.As(err, &which) && which.Op == "mkdir" {
			err = fmt.Errorf("making the data directory: %w", err)
		}
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	tried, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		if err := tried.AddDataKey(ctx, key); err != nil {
			return nil, errors.Join(err, tried.Close())
		}
	}
	return tried, nil
}

// DataDirectory implements app.DataDirectory.
func (s *SQLite) DataDirectory() string { return filepath.Dir(s.path) }

// UnmarshalCaddyfile sets up the store from Caddyfile tokens. Syntax:
//
//	sqlite <path>
func (s *SQLite) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the driver's name
	if !d.AllArgs(&s.Path) {
		return d.ArgErr()
	}
	if d.NextBlock(d.Nesting()) {
		return d.Errf("unrecognized word %q: store sqlite takes no block", d.Val())
	}
	return nil
}

// Interface guards
var (
	_ app.StoreOpener       = (*SQLite)(nil)
	_ app.DataDirectory     = (*SQLite)(nil)
	_ caddy.Provisioner     = (*SQLite)(nil)
	_ caddyfile.Unmarshaler = (*SQLite)(nil)
)
