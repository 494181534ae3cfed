package stores

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres"
	"github.com/durward-gateway/durward/storage/postgres/counters"
)

func init() {
	caddy.RegisterModule(Postgres{})
}

// Postgres keeps everything in a PostgreSQL database, 14 or later, that several nodes can share. The database belongs
// to durward alone, and its user owns it without being a superuser.
type Postgres struct {
	// A reference to the database's address, {env.NAME} or {file./path}: a URL (postgres://user:password@host/database) or
	// key=value words in the form of libpq. Required.
	DSN string `json:"dsn,omitempty"`

	// How many connections this node opens at the most. A fifth of them is kept for authentication. Default: 20.
	MaxConns int `json:"max_conns,omitempty"`

	// Whether the schema is brought up to date when the gateway starts: `on` or `off`. Default: `on`.
	Migrate string `json:"migrate,omitempty"`

	dsn seal.Secret
	log *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (Postgres) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "durward.stores.postgres", New: func() caddy.Module { return new(Postgres) }}
}

// Provision resolves the address.
func (p *Postgres) Provision(ctx caddy.Context) error {
	if p.DSN == "" {
		return fmt.Errorf("store postgres: no address is given")
	}
	if !settings.IsReference(p.DSN) {
		return fmt.Errorf("store postgres: the address may hold a password: give a reference to it, such as {env.DURWARD_DATABASE_URL}")
	}
	if p.MaxConns != 0 && p.MaxConns < postgres.MinConns {
		return fmt.Errorf("store postgres: max_conns must be at least %d", postgres.MinConns)
	}
	if p.Migrate != "" && p.Migrate != migrateOn && p.Migrate != migrateOff {
		return fmt.Errorf("store postgres: migrate must be on or off")
	}
	dsn, err := settings.ResolveSecret(p.DSN)
	if err != nil {
		return fmt.Errorf("store postgres: resolving the address: %w", err)
	}
	p.dsn, p.log = dsn, ctx.Logger()
	return nil
}

// These are the words of Migrate.
const (
	migrateOn  = "on"
	migrateOff = "off"
)

// Key implements app.StoreOpener. The address is in it as a hash: it may hold a password. Defaults that are written out
// do not change the key: otherwise the same store would be opened anew, and an unreachable store cannot replace one
// that serves.
func (p *Postgres) Key() string {
	sum := sha256.Sum256([]byte(p.dsn.Reveal()))
	return fmt.Sprintf("postgres %s %d %s", hex.EncodeToString(sum[:]), cmp.Or(p.MaxConns, postgres.DefaultMaxConns), cmp.Or(p.Migrate, migrateOn))
}

// Open implements app.StoreOpener. The result is a storage.RemoteStore.
func (p *Postgres) Open(context.Context) (storage.Store, error) {
	store, err := postgres.New(p.dsn.Reveal(), postgres.Options{MaxConns: p.MaxConns, KeepSchema: p.Migrate == migrateOff, Migrating: p.migrating}) //nolint:contextcheck // no connection is made yet
	if err != nil {
		return nil, err
	}
	return &checked{Store: store, log: p.log}, nil
}

// migrating logs why a start takes long.
func (p *Postgres) migrating(from, to int) {
	p.log.Info("bringing the database's schema up to date, or waiting for the node that does: the gateway serves when that is done, however long it takes",
		zap.Int("from", from), zap.Int("to", to))
}

// checked is a store that checks its database for problems once it is connected.
type checked struct {
	*postgres.Store
	log  *zap.Logger
	once sync.Once
}

// Connect implements storage.RemoteStore.
func (s *checked) Connect(ctx context.Context) error {
	if err := s.Store.Connect(ctx); err != nil {
		return err
	}
	s.once.Do(func() {
		findings, err := s.Check(ctx)
		if err != nil {
			s.log.Warn("the database's settings could not be checked", zap.Error(err))
		}
		for _, finding := range findings {
			s.log.Warn(finding)
		}
	})
	return nil
}

// Counters implements app.CounterStore, on connections of their own.
func (p *Postgres) Counters() (storage.SharedCounters, error) {
	shared, err := counters.New(p.dsn.Reveal())
	if err != nil {
		return nil, fmt.Errorf("store postgres: %w", err)
	}
	return shared, nil
}

// UnmarshalCaddyfile sets up the store from Caddyfile tokens. Syntax:
//
//	postgres <reference> {
//		max_conns <number>
//		migrate   on|off
//	}
func (p *Postgres) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the driver's name
	if !d.AllArgs(&p.DSN) {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		switch word := d.Val(); word {
		case "max_conns":
			var number string
			if !d.AllArgs(&number) {
				return d.ArgErr()
			}
			n, err := strconv.Atoi(number)
			if err != nil || n < postgres.MinConns {
				return d.Errf("max_conns takes a number from %d", postgres.MinConns)
			}
			p.MaxConns = n
		case "migrate":
			if !d.AllArgs(&p.Migrate) || p.Migrate != migrateOn && p.Migrate != migrateOff {
				return d.Err("migrate takes on or off")
			}
		default:
			return d.Errf("unrecognized word %q: store postgres takes max_conns and migrate", word)
		}
	}
	return nil
}

// Interface guards
var (
	_ app.StoreOpener       = (*Postgres)(nil)
	_ storage.RemoteStore   = (*checked)(nil)
	_ app.CounterStore      = (*Postgres)(nil)
	_ caddy.Provisioner     = (*Postgres)(nil)
	_ caddyfile.Unmarshaler = (*Postgres)(nil)
)
