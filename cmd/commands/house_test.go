package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/ops/doctor"
	"github.com/durward-gateway/durward/internal/ops/rekey"
	"github.com/durward-gateway/durward/internal/seal"
	_ "github.com/durward-gateway/durward/modules/standard" // the modules that a configuration may name
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
	"github.com/durward-gateway/durward/storage/sqlite"
)

func TestMain(m *testing.M) {
	if os.Getenv(asBinary) != "" {
		Main("v1.2.3")
		os.Exit(0)
	}
	os.Exit(pgtest.Main{M: m}.Run())
}

// house holds a gateway's configuration with everything that it names: a store with a provider whose secret is
// sealed, and master keys.
type house struct {
	directory, config string
	issuer            *httptest.Server
}

const housePlain = "sk-canary"

var housePlace = seal.ProviderPlace("o", "p", "openai", "")

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{directory: filepath.Join(t.TempDir(), "data")}
	if err := os.Mkdir(h.directory, 0o700); err != nil {
		t.Fatal(err)
	}
	h.config = filepath.Join(h.directory, "gateway.json")
	mux := http.NewServeMux()
	h.issuer = httptest.NewServer(mux)
	t.Cleanup(h.issuer.Close)
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"issuer":%q,"jwks_uri":%q}`, h.issuer.URL, h.issuer.URL+"/keys")
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"keys":[{}]}`) })
	for _, name := range []string{"old", "new"} {
		if err := os.WriteFile(filepath.Join(h.directory, name), []byte(seal.NewMasterKey().Reveal()+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := h.open(t)
	now := time.Now()
	if _, err := s.ResolveOrganization(t.Context(), storage.OrganizationClaim{Issuer: h.issuer.URL, ID: "o"}, now); err != nil {
		t.Fatal(err)
	}
	sealed, err := h.ring(t, s, "old").Seal([]byte(housePlain), housePlace)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CreateLLMProvider(t.Context(), storage.ConfiguredModels{}, storage.LLMProvider{ID: "p", OrganizationID: "o", Name: "P", Kind: "openai",
		SealedSecret: sealed, CreatedAt: now, UpdatedAt: now}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) path() string { return filepath.Join(h.directory, "durward.db") }

func (h *house) open(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), h.path(), sqlite.Options{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (h *house) reference(name string) string {
	return "{file." + filepath.Join(h.directory, name) + "}"
}

func (h *house) ring(t *testing.T, s storage.DataKeys, names ...string) *seal.Keyring {
	t.Helper()
	var masters []seal.MasterKey
	for _, name := range names {
		m, err := readMasterKey(h.reference(name))
		if err != nil {
			t.Fatal(err)
		}
		masters = append(masters, m)
	}
	ring, err := seal.OpenKeyring(t.Context(), masters, s, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// configure writes the configuration.
func (h *house) configure(t *testing.T, store map[string]any, masterKeys ...string) {
	t.Helper()
	var references []string
	for _, name := range masterKeys {
		references = append(references, h.reference(name))
	}
	text, err := json.Marshal(map[string]any{"admin": map[string]any{"disabled": true}, "apps": map[string]any{"durward": map[string]any{
		"store": store, "master_key": references, "identity": []map[string]any{{"kind": "oidc", "issuer": h.issuer.URL}},
		"egress": map[string]any{"http": []string{"127.0.0.0/8", "::1/128"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.config, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (h *house) sqlite() map[string]any { return map[string]any{"driver": "sqlite", "path": h.path()} }

// examine runs the doctor and returns its findings, by check.
func (h *house) examine(t *testing.T) map[string][]doctor.Finding {
	t.Helper()
	var out strings.Builder
	err := doctorOptions{config: configFlags{file: h.config}, format: "json"}.run(t.Context(), &out)
	var report struct {
		Failed bool `json:"failed"`
		doctor.Report
	}
	if e := json.Unmarshal([]byte(out.String()), &report); e != nil || report.Failed != (err != nil) {
		t.Fatalf("%v, %v: %s", e, err, out.String())
	}
	found := make(map[string][]doctor.Finding)
	for _, f := range report.Findings {
		found[f.Check] = append(found[f.Check], f)
	}
	return found
}

// holds reports whether one of the findings has a severity and a piece of text.
func holds(findings []doctor.Finding, severity doctor.Severity, piece string) bool {
	for _, f := range findings {
		if f.Severity == severity && strings.Contains(f.Found, piece) && f.Mend != "" {
			return true
		}
	}
	return false
}

func TestDoctor(t *testing.T) {
	h := newHouse(t)
	h.configure(t, h.sqlite(), "old")
	if found := h.examine(t); len(found["disk"]) == 0 && len(found) > 0 {
		t.Errorf("a good gateway: %+v", found)
	}
	h.configure(t, h.sqlite(), "new")
	if found := h.examine(t); !holds(found["master key"], doctor.Error, "not configured") {
		t.Errorf("another master key: %+v", found)
	}
	if err := os.Chmod(filepath.Join(h.directory, "old"), 0o644); err != nil {
		t.Fatal(err)
	}
	h.configure(t, h.sqlite(), "new", "old", "lost")
	h.issuer.Config.Handler = http.NotFoundHandler()
	found := h.examine(t)
	for check, want := range map[string]string{
		"master key": "note still wrapped", "modes of the master keys' files": "warning 0644", "identity provider " + h.issuer.URL: "error 404",
	} {
		severity, piece, _ := strings.Cut(want, " ")
		if !holds(found[check], doctor.Severity(severity), piece) {
			t.Errorf("%s: %+v", check, found[check])
		}
	}
	if !holds(found["master key"], doctor.Error, "lost") {
		t.Errorf("a key that is not there: %+v", found["master key"])
	}

	if err := os.Chmod(h.directory, 0o755); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := (doctorOptions{config: configFlags{file: h.config}, format: "text"}).run(t.Context(), &text); err == nil {
		t.Error("a key that is lost is no error")
	}
	for _, line := range []string{
		"error    master key: " + h.reference("lost") + " does not resolve", "error    identity provider " + h.issuer.URL + ": its metadata cannot be read",
		h.directory + " (the database's directory) has mode 0755", " 2 errors, 2 warnings, 1 note\n",
	} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("no %q in\n%s", line, &text)
		}
	}

	t.Setenv("DURWARD_TEST_DSN", pgtest.Database(t))
	h.configure(t, map[string]any{"driver": "postgres", "dsn": "{env.DURWARD_TEST_DSN}"}, "old")
	found = h.examine(t)
	if !holds(found["database"], doctor.Note, "empty") || !holds(found["database"], doctor.Error, "fsync") || len(found["the database's clock"]) > 0 {
		t.Errorf("an empty database: %+v", found)
	}
	t.Setenv("DURWARD_TEST_DSN", "postgres://durward:secret-word@127.0.0.1:1/durward")
	if found := h.examine(t); !holds(found["store"], doctor.Error, "reached") || strings.Contains(fmt.Sprint(found), "secret-word") {
		t.Errorf("no database: %+v", found)
	}
	t.Setenv("DURWARD_TEST_VALKEY", "valkey://durward:secret-word@127.0.0.1:1")
	open := filepath.Join(h.directory, "provider-key")
	configured := fmt.Sprintf(`{"apps":{"durward":{"store":{"driver":"sqlite","path":%q},"master_key":[%q],"identity":[],"coordinate":{"kind":"valkey","url":"{env.DURWARD_TEST_VALKEY}"},
		"provider":[{"kind":"openai","key":"{file./nowhere}"},{"kind":"anthropic","key":"{file.%s}"}]}}}`, h.path(), h.reference("old"), open)
	if err := errors.Join(os.WriteFile(h.config, []byte(configured), 0o600), os.WriteFile(open, []byte("sk-x"), 0o600), os.Chmod(open, 0o644)); err != nil {
		t.Fatal(err)
	}
	found = h.examine(t)
	if !holds(found["rate limits"], doctor.Error, "cannot be reached") || !holds(found["what the configuration refers to"], doctor.Error, "provider.key: {file./nowhere}") ||
		!holds(found["modes of the secrets' files"], doctor.Warning, "provider-key") || strings.Contains(fmt.Sprint(found), "secret-word") {
		t.Errorf("references: %+v", found)
	}
	if err := os.WriteFile(h.config, []byte(`{"apps":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if found := h.examine(t); !holds(found["configuration"], doctor.Error, "no gateway's") {
		t.Errorf("another configuration: %+v", found)
	}
	var out strings.Builder
	if err := (doctorOptions{config: configFlags{file: h.config}, format: "text"}).run(t.Context(), &out); err == nil || !strings.Contains(out.String(), "error    configuration: ") {
		t.Errorf("%v: %s", err, &out)
	}
}

func TestRekeyTellsProgress(t *testing.T) {
	now := time.Now()
	var out strings.Builder
	tell := resealLines(&out, func() time.Time { return now })
	for row := range int64(5) {
		now = now.Add(progressEvery / 2)
		tell(rekey.Progress{Table: "connections", Rows: row + 1, Total: 5})
	}
	if want := "connections: 2 of 5 rows\nconnections: 4 of 5 rows\n"; out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
}

func TestRekey(t *testing.T) {
	h := newHouse(t)
	rekey := func() string {
		t.Helper()
		var out strings.Builder
		if err := (rekeyOptions{config: configFlags{file: h.config}}).run(t.Context(), &out, &out); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	h.configure(t, h.sqlite(), "new", "old")
	if out := rekey(); !strings.HasPrefix(out, "1 data key rewrapped; ") {
		t.Error(out)
	}
	if out := rekey(); !strings.HasPrefix(out, "0 data keys rewrapped; ") {
		t.Error(out)
	}
	h.configure(t, h.sqlite(), "new")
	if found := h.examine(t); len(found["master key"]) > 0 {
		t.Errorf("%+v", found)
	}
	config, err := (&configFlags{file: h.config}).load()
	if err != nil {
		t.Fatal(err)
	}
	masters, err := config.masterKeys()
	if err != nil {
		t.Fatal(err)
	}
	s := h.open(t)
	running := h.ring(t, s, "new")
	// A rotation that is interrupted while it waits for gateways continues, and makes no further key.
	for _, want := range []string{"made data key 2\n", "going on with the rotation to data key 2: 0 values left\n"} {
		ctx, cancel := context.WithCancel(t.Context())
		out := interrupting{interrupt: cancel}
		if err := rotateDataKeys(ctx, s, masters, time.Hour, &out, &out); !errors.Is(err, context.Canceled) || !strings.HasPrefix(out.String(), want) {
			t.Errorf("%v: %s", err, &out)
		}
	}
	for _, want := range []string{"made data key 3\n1 value sealed anew; all 1 are sealed with data key 3\n", "made data key 4\n1 value sealed anew; all 1 are sealed with data key 4\n"} {
		var out strings.Builder
		if err := rotateDataKeys(t.Context(), s, masters, 0, &out, &out); err != nil || out.String() != want {
			t.Errorf("%v: %s", err, &out)
		}
		set, err := s.ModelSet(t.Context(), "o")
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := running.Open(set.Providers[0].SealedSecret, housePlace); err != nil || string(plain) != housePlain {
			t.Errorf("%q, %v", plain, err)
		}
	}
	// A value that does not open ends no rotation, and keeps none from beginning.
	set, err := s.ModelSet(t.Context(), "o")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := s.Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if table.Name != "llm_providers" {
			continue
		}
		rows, err := s.Rows(t.Context(), table, nil, 2)
		if err != nil || len(rows) != 1 {
			t.Fatal(rows, err)
		}
		broken := slices.Clone(set.Providers[0].SealedSecret)
		broken[len(broken)-1] ^= 1
		if ok, err := s.ReplaceSealed(t.Context(), table, rows[0], table.Column("sealed_secret"), broken); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	for _, want := range []string{"made data key 5\n", "made data key 6\n"} {
		var out strings.Builder
		if err := rotateDataKeys(t.Context(), s, masters, 0, &out, &out); err == nil || !strings.HasPrefix(out.String(), want) || !strings.Contains(out.String(), "does not open: llm_providers") {
			t.Errorf("%v: %s", err, &out)
		}
	}
	h.configure(t, h.sqlite(), "old")
	if err := (rekeyOptions{config: configFlags{file: h.config}}).run(t.Context(), &strings.Builder{}, &strings.Builder{}); err == nil {
		t.Error("a former master key rotates keys")
	}
}

// interrupting interrupts a rotation that waits for gateways.
type interrupting struct {
	strings.Builder
	interrupt func()
}

func (i *interrupting) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "waiting until every gateway") {
		i.interrupt()
	}
	return i.Builder.Write(p)
}

func TestMigrateStore(t *testing.T) {
	h := newHouse(t)
	dsn := pgtest.Database(t)
	t.Setenv("DURWARD_TEST_DSN", dsn)
	for from, to := range map[string]string{"": "{env.DURWARD_TEST_DSN}", "mysql:x": "{env.DURWARD_TEST_DSN}", "sqlite:" + h.path(): dsn, "sqlite:/nowhere": "{env.DURWARD_TEST_DSN}"} {
		if err := (moveOptions{from: from, to: to}).run(t.Context(), &strings.Builder{}, &strings.Builder{}); err == nil || strings.Contains(err.Error(), "durward-test") {
			t.Errorf("--from %q --to %.10q: %v", from, to, err)
		}
	}
	usage := filepath.Join(h.directory, "usage", "x")
	if err := os.MkdirAll(usage, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(usage, "1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := moveOptions{from: "sqlite:" + h.path(), to: "{env.DURWARD_TEST_DSN}"}
	if err := o.run(t.Context(), &strings.Builder{}, &strings.Builder{}); err == nil || !strings.Contains(err.Error(), "1 batch of what models were used") {
		t.Errorf("with usage that is not stored: %v", err)
	}
	if err := os.RemoveAll(usage); err != nil {
		t.Fatal(err)
	}
	var out, progress strings.Builder
	if err := o.run(t.Context(), &out, &progress); err != nil || !strings.Contains(out.String(), "are the same on both sides") ||
		!strings.Contains(progress.String(), "copying ") || !strings.Contains(progress.String(), "(100 %)") {
		t.Errorf("%v: %s%s", err, &out, &progress)
	}
	if err := o.run(t.Context(), &out, &progress); err == nil || !strings.Contains(err.Error(), "empty database") {
		t.Errorf("a second time: %v", err)
	}
	h.configure(t, map[string]any{"driver": "postgres", "dsn": "{env.DURWARD_TEST_DSN}"}, "old")
	if found := h.examine(t); len(found["master key"]) > 0 || len(found["store"]) > 0 {
		t.Errorf("%+v", found)
	}
}
