package sites_test

import (
	"os"
	"path/filepath"
	"testing"

	_ "github.com/caddyserver/caddy/v2/modules/standard" // the modules that the shipped binary links
	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/seal"
	_ "github.com/durward-gateway/durward/modules/auth"
	"github.com/durward-gateway/durward/modules/caddytest"
	_ "github.com/durward-gateway/durward/modules/devidp"
	_ "github.com/durward-gateway/durward/modules/identities"
	_ "github.com/durward-gateway/durward/modules/pipeline"
	_ "github.com/durward-gateway/durward/modules/platformapi"
	_ "github.com/durward-gateway/durward/modules/providers"
	_ "github.com/durward-gateway/durward/modules/stores"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

// The tests load whole configurations, with the app and its handlers. The package reads the sites that those make.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type object = caddytest.Object

var auth = caddytest.Named("durward_auth")

// production returns the app's JSON for a public URL; "": none is given.
func production(t *testing.T, publicURL string) object {
	t.Helper()
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte(seal.NewMasterKey().Reveal()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	config := object{
		"store":      object{"driver": "sqlite", "path": sqlitetest.PathIn(t, dir)},
		"master_key": []string{"{file." + key + "}"},
		"identity":   []any{object{"kind": "oidc", "issuer": "https://id.example.com"}},
	}
	if publicURL != "" {
		config["public_url"] = publicURL
	}
	return config
}

// development returns the app's JSON of development mode.
func development(dir string) object {
	return object{
		"store":    object{"driver": "sqlite", "path": filepath.Join(dir, "durward.db")},
		"identity": []any{object{"kind": "dev"}},
	}
}
