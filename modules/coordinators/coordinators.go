// Package coordinators chooses the place at which nodes count rate limits together. Its modules are the guests of
// durward.coordinators: this node alone, PostgreSQL, and Valkey. It counts nothing itself: internal/ratelimit does that.
package coordinators

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/durward-gateway/durward/internal/ratelimit/cluster/valkey"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres/counters"
)

func init() {
	caddy.RegisterModule(Local{})
	caddy.RegisterModule(Postgres{})
	caddy.RegisterModule(Valkey{})
}

// Local makes every node count by itself.
type Local struct{}

// CaddyModule returns the Caddy module information.
func (Local) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "durward.coordinators.local", New: func() caddy.Module { return new(Local) }}
}

// Key implements app.CoordinatorOpener.
func (*Local) Key() string { return "local" }

// Counters implements app.CoordinatorOpener.
func (*Local) Counters(app.StoreOpener) (storage.SharedCounters, error) { return nil, nil }

// UnmarshalCaddyfile sets up the coordinator from Caddyfile tokens. Syntax:
//
//	local
func (*Local) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the kind's name
	if d.NextArg() || d.NextBlock(d.Nesting()) {
		return d.Err("coordinate local takes nothing more")
	}
	return nil
}

// Postgres counts in a PostgreSQL database, 14 or later.
type Postgres struct {
	// A reference to the database's address, {env.NAME} or {file./path}. Default: the store's database.
	DSN string `json:"dsn,omitempty"`

	dsn seal.Secret
}

// CaddyModule returns the Caddy module information.
func (Postgres) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "durward.coordinators.postgres", New: func() caddy.Module { return new(Postgres) }}
}

// Provision resolves the address.
func (p *Postgres) Provision(caddy.Context) (err error) {
	if p.DSN != "" {
		p.dsn, err = resolve("postgres", p.DSN)
	}
	return err
}

// Key implements app.CoordinatorOpener.
func (p *Postgres) Key() string {
	if p.DSN == "" {
		return "postgres"
	}
	return "postgres " + hashed(p.dsn)
}

// Counters implements app.CoordinatorOpener.
func (p *Postgres) Counters(store app.StoreOpener) (storage.SharedCounters, error) {
	if p.DSN == "" {
		own, ok := store.(app.CounterStore)
		if !ok {
			return nil, fmt.Errorf("coordinate postgres: the store keeps no counters: name a database, coordinate postgres {env.DURWARD_DATABASE_URL}")
		}
		return own.Counters()
	}
	shared, err := counters.New(p.dsn.Reveal())
	if err != nil {
		return nil, fmt.Errorf("coordinate postgres: %w", err)
	}
	return shared, nil
}

// UnmarshalCaddyfile sets up the coordinator from Caddyfile tokens. Syntax:
//
//	postgres [<reference>]
func (p *Postgres) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the kind's name
	if d.NextArg() {
		p.DSN = d.Val()
	}
	return end(d, "postgres")
}

// Valkey counts in a Valkey or Redis server.
type Valkey struct {
	// A reference to the server's address, {env.NAME} or {file./path}: valkey://user:password@host:6379, valkeys:// over TLS,
	// or unix:///path; redis:// and rediss:// are the same. Required.
	URL string `json:"url,omitempty"`

	url seal.Secret
}

// CaddyModule returns the Caddy module information.
func (Valkey) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "durward.coordinators.valkey", New: func() caddy.Module { return new(Valkey) }}
}

// Provision resolves the address.
func (v *Valkey) Provision(caddy.Context) (err error) {
	if v.URL == "" {
		return fmt.Errorf("coordinate valkey: no address is given")
	}
	v.url, err = resolve("valkey", v.URL)
	return err
}

// Key implements app.CoordinatorOpener.
func (v *Valkey) Key() string { return "valkey " + hashed(v.url) }

// Counters implements app.CoordinatorOpener.
func (v *Valkey) Counters(app.StoreOpener) (storage.SharedCounters, error) {
	shared, err := valkey.New(v.url.Reveal())
	if err != nil {
		return nil, fmt.Errorf("coordinate valkey: %w", err)
	}
	return shared, nil
}

// UnmarshalCaddyfile sets up the coordinator from Caddyfile tokens. Syntax:
//
//	valkey <reference>
func (v *Valkey) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the kind's name
	if !d.NextArg() {
		return d.ArgErr()
	}
	v.URL = d.Val()
	return end(d, "valkey")
}

// end checks that the line ends, without a block.
func end(d *caddyfile.Dispenser, kind string) error {
	if d.NextArg() {
		return d.ArgErr()
	}
	if d.NextBlock(d.Nesting()) {
		return d.Errf("unrecognized word %q: coordinate %s takes no block", d.Val(), kind)
	}
	return nil
}

// resolve reads an address, which may hold a password.
func resolve(kind, reference string) (seal.Secret, error) {
	if !settings.IsReference(reference) {
		return seal.Secret{}, fmt.Errorf("coordinate %s: the address may hold a password: give a reference to it, such as {env.DURWARD_LIMITS_URL}", kind)
	}
	address, err := settings.ResolveSecret(reference)
	if err != nil {
		return seal.Secret{}, fmt.Errorf("coordinate %s: resolving the address: %w", kind, err)
	}
	return address, nil
}

// hashed returns a digest that identifies an address in keys.
func hashed(address seal.Secret) string {
	sum := sha256.Sum256([]byte(address.Reveal()))
	return hex.EncodeToString(sum[:])
}

// Interface guards
var (
	_ app.CoordinatorOpener = (*Local)(nil)
	_ app.CoordinatorOpener = (*Postgres)(nil)
	_ app.CoordinatorOpener = (*Valkey)(nil)
	_ caddy.Provisioner     = (*Postgres)(nil)
	_ caddy.Provisioner     = (*Valkey)(nil)
	_ caddyfile.Unmarshaler = (*Local)(nil)
	_ caddyfile.Unmarshaler = (*Postgres)(nil)
	_ caddyfile.Unmarshaler = (*Valkey)(nil)
)
