package integration

import (
	"archive/tar"
	"compress/gzip"
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// unpackFormer unpacks the data directory of a former durward, which wrote segments of format 6 and chunks of format 5
// and was killed in development mode.
func unpackFormer(t *testing.T, to string) {
	t.Helper()
	files := tar.NewReader(strings.NewReader(gunzipped(t, "data.tar.gz")))
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(to, header.Name) //nolint:gosec // from testdata
		if header.FileInfo().IsDir() {
			err = os.MkdirAll(path, 0o700)
		} else {
			var content []byte
			if content, err = io.ReadAll(files); err == nil {
				err = os.WriteFile(path, content, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// upgradeSchema brings the store of a former durward up to date, as the first start of this one does. Commands that read
// a store leave its schema alone, and refuse an older one.
func upgradeSchema(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var version int
	if err := db.QueryRowContext(t.Context(), `SELECT max(version) FROM schema_migrations`).Scan(&version); err != nil {
		t.Fatal(err)
	}
	steps, err := filepath.Glob("../storage/sqlite/migrations/*.up.sql")
	if err != nil || len(steps) <= version {
		t.Fatalf("%d steps, %v", len(steps), err)
	}
	for _, step := range steps[version:] {
		text, err := os.ReadFile(step)
		if err != nil {
			t.Fatal(err)
		}
		version++
		_, migrated := db.ExecContext(t.Context(), string(text))
		_, noted := db.ExecContext(t.Context(), `INSERT INTO schema_migrations (version, name) VALUES ($1, $2)`, version, strings.TrimSuffix(filepath.Base(step), ".up.sql"))
		if err := errors.Join(migrated, noted); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
}

// gunzipped returns the contents of a file in testdata/former.
func gunzipped(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "former", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestFormerAudit checks that the audit log of a killed former durward is verified and exported byte for byte as that one
// did it, and is whole after this one has shipped it and gone on.
func TestFormerAudit(t *testing.T) {
	t.Parallel()
	home := newDevHome(t)
	unpackFormer(t, home.file("data"))
	upgradeSchema(t, home.file("data", "durward.db"))
	verify := func() {
		t.Helper()
		if got := home.command(t, "audit", "verify", "--data", "data"); got.code != 0 || !strings.Contains(got.stdout, "the audit log is whole") {
			t.Errorf("status %d\n%s%s", got.code, got.stdout, got.stderr)
		}
	}
	export := func() []string {
		t.Helper()
		got := home.command(t, "audit", "export", "--data", "data")
		if got.code != 0 {
			t.Fatalf("status %d: %s", got.code, got.stderr)
		}
		return slices.Collect(strings.Lines(got.stdout))
	}
	verify()
	former := export()
	if strings.Join(former, "") != gunzipped(t, "export.ndjson.gz") {
		t.Error("the export is another one")
	}
	d := home.start(t, "--tour")
	d.process.poll(t, "what it records itself", func() bool { return len(export()) > len(former) })
	d.end(t, syscall.SIGTERM)
	verify()
	now := export()
	for _, line := range former {
		if !slices.Contains(now, line) {
			t.Errorf("not exported any more: %s", line)
		}
	}
	if left, err := filepath.Glob(home.file("data", "audit", "*", "00000001.ndjson*")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
