package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage"
)

// node is the directory of a gateway with a journal, usage and a store.
func node(t *testing.T) *Source {
	t.Helper()
	directory := t.TempDir()
	put(t, directory, map[string]string{
		"audit/00112233445566aa/00000001.ndjson":         "first\n",
		"audit/00112233445566aa/00000002.ndjson":         "second\n",
		"audit/00112233445566aa/00000001.ndjson.damaged": "evidence\n",
		"audit/00112233445566aa/lock":                    "",
		"usage/n-1.json":                                 "{}",
		"usage/123.tmp":                                  "half",
		"master.key":                                     "secret",
	})
	return &Source{
		Manifest:  Manifest{Version: "v1", Store: "sqlite", MadeAt: time.Unix(1e9, 0).UTC()},
		Directory: directory,
		Snapshot:  func(_ context.Context, to string) error { return os.WriteFile(to, []byte("the store"), 0o600) },
		Ends:      func(context.Context, string) ([]storage.AuditChain, error) { return nil, nil },
	}
}

func put(t *testing.T, directory string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(directory, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// tree reads all files below a directory.
func tree(t *testing.T, directory string) map[string]string {
	t.Helper()
	files := make(map[string]string)
	err := filepath.WalkDir(directory, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(directory, path)
		files[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func write(t *testing.T, from *Source) (archive string) {
	t.Helper()
	archive = filepath.Join(t.TempDir(), "backup.tar.gz")
	if _, err := Write(t.Context(), from, archive); err != nil {
		t.Fatal(err)
	}
	return archive
}

func target(t *testing.T) *Target {
	t.Helper()
	directory := filepath.Join(t.TempDir(), "data")
	return &Target{Directory: directory, Store: filepath.Join(directory, "gate.db")}
}

var whole = map[string]string{
	"audit/00112233445566aa/00000001.ndjson":         "first\n",
	"audit/00112233445566aa/00000002.ndjson":         "second\n",
	"audit/00112233445566aa/00000001.ndjson.damaged": "evidence\n",
	"usage/n-1.json": "{}",
	"gate.db":        "the store",
}

func TestRoundTrip(t *testing.T) {
	archive := write(t, node(t))
	if left, err := filepath.Glob(archive + ".*"); err != nil || len(left) > 0 {
		t.Errorf("beside the archive: %v, %v", left, err)
	}
	if info, err := os.Stat(archive); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the archive: %v, %v; others may read it", info.Mode(), err)
	}
	to := target(t)
	checked := false
	to.Check = func(_ context.Context, store string) error {
		text, err := os.ReadFile(store)
		checked = string(text) == "the store"
		return err
	}
	m, err := Read(t.Context(), archive, to)
	if err != nil || !checked {
		t.Fatalf("restored: %v; the store was checked: %v", err, checked)
	}
	if m.Version != "v1" || m.Store != "sqlite" || !m.MadeAt.Equal(time.Unix(1e9, 0)) || len(m.Files) != len(whole) {
		t.Errorf("the manifest says %+v", m)
	}
	if diff := cmp.Diff(whole, tree(t, to.Directory)); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
	if _, err := Read(t.Context(), archive, to); !errors.Is(err, ErrOccupied) {
		t.Errorf("a second time: %v, want ErrOccupied", err)
	}
}

// TestFilesMove shows that files are in the archive that get another name, grow, come or go while the store is copied.
func TestFilesMove(t *testing.T) {
	from := node(t)
	journal := filepath.Join(from.Directory, "audit", "00112233445566aa")
	from.Snapshot = func(_ context.Context, to string) error {
		segment := filepath.Join(journal, "00000002.ndjson")
		return errors.Join(
			os.WriteFile(segment, []byte("second\ngrown\n"), 0o600), os.Rename(segment, segment+".damaged"),
			os.Remove(filepath.Join(journal, "00000001.ndjson")), os.WriteFile(filepath.Join(journal, "00000003.ndjson"), []byte("third\n"), 0o600),
			os.WriteFile(to, []byte("the store"), 0o600))
	}
	to := target(t)
	if _, err := Read(t.Context(), write(t, from), to); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"audit/00112233445566aa/00000001.ndjson":         "first\n",
		"audit/00112233445566aa/00000001.ndjson.damaged": "evidence\n",
		"audit/00112233445566aa/00000002.ndjson.damaged": "second\ngrown\n",
		"audit/00112233445566aa/00000003.ndjson":         "third\n",
		"usage/n-1.json":                                 "{}",
		"gate.db":                                        "the store",
	}
	if diff := cmp.Diff(want, tree(t, to.Directory)); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
}

func TestWriteRefuses(t *testing.T) {
	t.Run("a file that is there", func(t *testing.T) {
		archive := write(t, node(t))
		before := tree(t, filepath.Dir(archive))
		if _, err := Write(t.Context(), node(t), archive); err == nil {
			t.Error("an archive was replaced")
		}
		if diff := cmp.Diff(before, tree(t, filepath.Dir(archive))); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("two at once", func(t *testing.T) {
		archive := filepath.Join(t.TempDir(), "backup.tar.gz")
		from := node(t)
		snapshot := from.Snapshot
		from.Snapshot = func(ctx context.Context, to string) error {
			if _, err := Write(ctx, node(t), archive); err == nil || !strings.Contains(err.Error(), "another backup") {
				t.Errorf("a second backup to the same file: %v", err)
			}
			return snapshot(ctx, to)
		}
		if _, err := Write(t.Context(), from, archive); err != nil {
			t.Error(err)
		}
	})
	t.Run("a store that fails", func(t *testing.T) {
		directory := t.TempDir()
		from := node(t)
		from.Snapshot = func(context.Context, string) error { return errors.New("disk full") }
		if _, err := Write(t.Context(), from, filepath.Join(directory, "b")); err == nil || !strings.Contains(err.Error(), "disk full") {
			t.Errorf("got %v", err)
		}
		if left := tree(t, directory); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	t.Run("not what a killed one has left", func(t *testing.T) {
		directory := t.TempDir()
		put(t, directory, map[string]string{"b.part": "half an archive", "b.part.db": "half a store"})
		if _, err := Write(t.Context(), node(t), filepath.Join(directory, "b")); err != nil {
			t.Fatal(err)
		}
		to := target(t)
		if _, err := Read(t.Context(), filepath.Join(directory, "b"), to); err != nil {
			t.Error(err)
		}
	})
}

// TestCutOff shows that an archive is refused whole wherever it was cut off, and that nothing of it is in its place.
func TestCutOff(t *testing.T) {
	text, err := os.ReadFile(write(t, node(t)))
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(text) - 1; cut > 0; cut -= 31 {
		refused(t, text[:cut], "cut off")
	}
	for i := 0; i < len(text); i += 17 {
		changed := bytes.Clone(text)
		changed[i] ^= 1
		to := target(t)
		archive := filepath.Join(t.TempDir(), "a")
		if err := os.WriteFile(archive, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(t.Context(), archive, to); err == nil {
			if diff := cmp.Diff(whole, tree(t, to.Directory)); diff != "" {
				t.Fatalf("byte %d changed, and another state was restored:\n%s", i, diff)
			}
		}
	}
}

func refused(t *testing.T, text []byte, why string) {
	t.Helper()
	to := target(t)
	archive := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(archive, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(t.Context(), archive, to); err == nil {
		t.Fatalf("%s: restored", why)
	}
	if left := tree(t, to.Directory); len(left) > 0 {
		t.Fatalf("%s: refused, and left %v", why, left)
	}
}

// TestHostileNames shows that no entry is written outside of the folders.
func TestHostileNames(t *testing.T) {
	for _, name := range []string{"../x", "/etc/x", "audit/../../x", "audit", "durward.db/x", "usage/./x", "other", "audit//x", "audit/..", ".durward-restore/x", "manifest.json/x"} {
		refused(t, archiveOf(t, tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1}), name)
	}
	for _, kind := range []byte{tar.TypeSymlink, tar.TypeLink, tar.TypeDir, tar.TypeFifo} {
		refused(t, archiveOf(t, tar.Header{Name: "audit/x", Linkname: "/etc/passwd", Typeflag: kind}), string(kind))
	}
}

func archiveOf(t *testing.T, header tar.Header) []byte {
	t.Helper()
	var text bytes.Buffer
	packed := gzip.NewWriter(&text)
	w := tar.NewWriter(packed)
	if err := w.WriteHeader(&header); err != nil {
		t.Fatal(err)
	}
	_, err := w.Write(make([]byte, header.Size))
	if err := errors.Join(err, w.Close(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// TestInterrupted shows that a restore that was killed while it moved folders begins anew.
func TestInterrupted(t *testing.T) {
	archive := write(t, node(t))
	to := target(t)
	put(t, to.Directory, map[string]string{unpackedName + "/" + placingName: "", unpackedName + "/" + StoreName: "the store", "audit/00112233445566aa/00000001.ndjson": "first\n"})
	if _, err := Read(t.Context(), archive, to); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(whole, tree(t, to.Directory)); diff != "" {
		t.Error(diff)
	}
}

func TestOccupied(t *testing.T) {
	archive := write(t, node(t))
	for _, name := range []string{"gate.db", "gate.db-wal", "audit/00112233445566bb/00000001.ndjson", "usage/x.json"} {
		to := target(t)
		put(t, to.Directory, map[string]string{name: "another gateway's"})
		if _, err := Read(t.Context(), archive, to); !errors.Is(err, ErrOccupied) {
			t.Errorf("%s is there: %v, want ErrOccupied", name, err)
		}
		if diff := cmp.Diff(map[string]string{name: "another gateway's"}, tree(t, to.Directory)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestDirectoryIsMade restores where the directory is not there. Those above it are made only where nobody has typed them.
func TestDirectoryIsMade(t *testing.T) {
	from := node(t)
	from.Snapshot, from.Store = nil, "postgres"
	elsewhere := filepath.Join(t.TempDir(), "data", "caddy", "durward")
	if _, err := Read(t.Context(), write(t, from), &Target{Directory: elsewhere}); err != nil {
		t.Error(err)
	}
	if names := tree(t, elsewhere); len(names) == 0 {
		t.Error("nothing is there")
	}
	mistyped := filepath.Join(t.TempDir(), "mistyped")
	_, err := Read(t.Context(), write(t, node(t)), &Target{Directory: filepath.Join(mistyped, "data"), Store: filepath.Join(mistyped, "data", "gate.db")})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), mistyped) {
		t.Errorf("a mistyped path: %v", err)
	}
	if _, err := os.Stat(mistyped); err == nil {
		t.Error("a mistyped path has created a tree")
	}
}

func TestStoresDiffer(t *testing.T) {
	to := target(t)
	to.Store = ""
	if _, err := Read(t.Context(), write(t, node(t)), to); err == nil || !strings.Contains(err.Error(), "migrate-store") {
		t.Errorf("a SQLite store, where there is another one: %v", err)
	}
	from := node(t)
	from.Snapshot, from.Store = nil, "postgres"
	if _, err := Read(t.Context(), write(t, from), target(t)); err == nil || !strings.Contains(err.Error(), "holds no store") {
		t.Errorf("files alone, where a SQLite store is expected: %v", err)
	}
	to = target(t)
	to.Store = ""
	if _, err := Read(t.Context(), write(t, from), to); err != nil {
		t.Errorf("files alone: %v", err)
	}
}

func TestRefusedStore(t *testing.T) {
	to := target(t)
	to.Check = func(context.Context, string) error { return errors.New("another master key") }
	if _, err := Read(t.Context(), write(t, node(t)), to); err == nil {
		t.Error("a store that does not open was put into its place")
	}
	if left := tree(t, to.Directory); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}
