package stores

import (
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres"
)

func TestPostgresCaddyfile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text    string
		want    Postgres
		refused string
	}{
		{text: "postgres {env.X}", want: Postgres{DSN: "{env.X}"}},
		{text: "postgres {file./run/x} {\n max_conns 5\n migrate off\n}", want: Postgres{DSN: "{file./run/x}", MaxConns: 5, Migrate: "off"}},
		{text: "postgres", refused: "wrong argument count"},
		{text: "postgres {env.X} more", refused: "wrong argument count"},
		{text: "postgres {env.X} {\n max_conns 4\n}", refused: "a number from 5"},
		{text: "postgres {env.X} {\n max_conns many\n}", refused: "a number from 5"},
		{text: "postgres {env.X} {\n migrate maybe\n}", refused: "on or off"},
		{text: "postgres {env.X} {\n timeout 5s\n}", refused: "max_conns and migrate"},
	} {
		var p Postgres
		err := p.UnmarshalCaddyfile(caddyfile.NewTestDispenser(c.text))
		if c.refused != "" {
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%q: %v", c.text, err)
			}
			continue
		}
		if err != nil || p.DSN != c.want.DSN || p.MaxConns != c.want.MaxConns || p.Migrate != c.want.Migrate {
			t.Errorf("%q: %+v, error %v", c.text, p, err)
		}
	}
}

// The address is a reference, and neither the key nor what is printed shows it.
func TestPostgresAddress(t *testing.T) {
	const address = "postgres://durward:secret-word@127.0.0.1:1/durward?connect_timeout=1"
	t.Setenv("DURWARD_TEST_ADDRESS", address)
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	for dsn, refused := range map[string]string{"": "no address", address: "reference", "{env.DURWARD_TEST_UNSET}": "not set"} {
		p := Postgres{DSN: dsn}
		if err := p.Provision(ctx); err == nil || !strings.Contains(err.Error(), refused) || strings.Contains(err.Error(), "secret-word") {
			t.Errorf("%q: %v", dsn, err)
		}
	}
	key := func(p Postgres) string {
		t.Helper()
		p.DSN = "{env.DURWARD_TEST_ADDRESS}"
		if err := p.Provision(ctx); err != nil {
			t.Fatal(err)
		}
		store, err := p.Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		if err := store.(storage.RemoteStore).Connect(t.Context()); err == nil || strings.Contains(err.Error(), "secret-word") {
			t.Errorf("opening it: %v", err)
		}
		return p.Key()
	}
	one := key(Postgres{})
	if one != key(Postgres{}) || one != key(Postgres{MaxConns: postgres.DefaultMaxConns, Migrate: "on"}) || strings.Contains(one, "secret-word") || strings.Contains(one, "127.0.0.1") {
		t.Errorf("the key is %q", one)
	}
	t.Setenv("DURWARD_TEST_ADDRESS", strings.Replace(address, "1/durward", "1/other", 1))
	if keys := []string{one, key(Postgres{}), key(Postgres{MaxConns: 9}), key(Postgres{Migrate: "off"})}; keys[0] == keys[1] || keys[1] == keys[2] || keys[1] == keys[3] {
		t.Errorf("keys %q", keys)
	}
}
