package app_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/standard" // the modules that the shipped binary links

	"github.com/durward-gateway/durward/internal/seal"
	_ "github.com/durward-gateway/durward/modules/auth"
	"github.com/durward-gateway/durward/modules/caddytest"
	_ "github.com/durward-gateway/durward/modules/devidp"
	_ "github.com/durward-gateway/durward/modules/identities"
	_ "github.com/durward-gateway/durward/modules/stores"
)

type object = caddytest.Object

// keyFile writes a new master key to a file and returns the reference to it.
func keyFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte(seal.NewMasterKey().Reveal()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return "{file." + path + "}"
}

// production returns the app's JSON for a store in dir and an issuer.
func production(dir, key, issuer string) object {
	return object{
		"public_url": "https://gate.example.com",
		"store":      object{"driver": "sqlite", "path": filepath.Join(dir, "durward.db")},
		"master_key": []string{key},
		"identity":   []any{object{"kind": "oidc", "issuer": issuer}},
		"egress":     object{"http": []string{"127.0.0.0/8"}},
	}
}

// development returns the app's JSON of development mode.
func development(dir string) object {
	return object{
		"store":    object{"driver": "sqlite", "path": filepath.Join(dir, "durward.db")},
		"identity": []any{object{"kind": "dev"}},
	}
}

func with(base object, more object) object {
	out := object{}
	for _, o := range []object{base, more} {
		for k, v := range o {
			if out[k] = v; v == nil {
				delete(out, k)
			}
		}
	}
	return out
}

var auth = caddytest.Named("durward_auth")

// stop ends what runs, so that the store's files can be looked at.
func stop(t *testing.T) {
	t.Helper()
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
}
