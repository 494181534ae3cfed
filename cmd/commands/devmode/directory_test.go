package devmode

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestIsOurs(t *testing.T) {
	for name, want := range map[string]bool{
		"durward.db": true, "durward.db-wal": true, "admin.sock": true, markerFile: true, ".devidp-grants.json-123": true, ".address-0": true,
		"durward.db.backup": false, "notes.txt": false, ".git": false, ".devidp-grants.json-": false, ".devidp-grants.json-x": false, ".-1": false,
		".notes.txt-1": false, "devidp-grants.json-1": false,
	} {
		if got := isOurs(name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestDirectoryIsHeld(t *testing.T) {
	path := filepath.Join(shortDirectory(t), "data")
	first := open(t, path)
	if err := first.WriteAddress("127.0.0.1:1234"); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDirectory(path); err == nil || !strings.Contains(err.Error(), "http://127.0.0.1:1234") {
		t.Errorf("opening it a second time: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(path, addressFile)); err == nil {
		t.Error("the address is still there")
	}
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
}

func TestReset(t *testing.T) {
	made := []string{"durward.db", "durward.db-wal", "master.key", "demo.address", ".devidp-grants.json-42", "caddy/instance.uuid", "caddy/locks/a.lock",
		"audit/0fd4899235ebfbf9/00000001.ndjson", "audit/0fd4899235ebfbf9/lock", "audit/0fd4899235ebfbf9/ring",
		"usage/0fd4899235ebfbf9/0198f2c4-9a3b-7c11-8a2e-3f5d6b7c8d9e-0000000000000000001.json", "usage/0fd4899235ebfbf9/123.tmp"}
	for _, test := range []struct {
		name    string
		prepare func(t *testing.T, path string)
		foreign string // named in the error; "": it is reset
	}{
		{"what it made", func(*testing.T, string) {}, ""},
		{"a file", func(t *testing.T, path string) { write(t, path, "thesis.txt") }, "thesis.txt"},
		{"a folder", func(t *testing.T, path string) { write(t, path, "photos/one.jpg") }, "photos"},
		{"a file in Caddy's folder", func(t *testing.T, path string) { write(t, path, "caddy/certificates/key.pem") }, "caddy/certificates"},
		{"a file among the journals", func(t *testing.T, path string) { write(t, path, "audit/minutes.txt") }, "audit/minutes.txt"},
		{"a file in a journal", func(t *testing.T, path string) { write(t, path, "audit/0fd4899235ebfbf9/notes") }, "audit/0fd4899235ebfbf9/notes"},
		{"a file among the usage", func(t *testing.T, path string) { write(t, path, "usage/0fd4899235ebfbf9/guide.json") }, "usage/0fd4899235ebfbf9/guide.json"},
		{"a folder with one of our names", func(t *testing.T, path string) { write(t, path, "address/book.txt") }, "address"},
		{"a link with one of our names", func(t *testing.T, path string) {
			if err := os.Symlink("/etc/hosts", filepath.Join(path, "admin.sock")); err != nil {
				t.Fatal(err)
			}
		}, "admin.sock"},
		{"a link for Caddy's folder", func(t *testing.T, path string) {
			if err := os.RemoveAll(filepath.Join(path, "caddy")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(t.TempDir(), filepath.Join(path, "caddy")); err != nil {
				t.Fatal(err)
			}
		}, "caddy"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(shortDirectory(t), "data")
			d := open(t, path)
			defer d.Close()
			for _, name := range made {
				write(t, path, name)
			}
			test.prepare(t, path)
			before := count(t, path)
			err := d.Reset()
			after := count(t, path)
			switch {
			case test.foreign == "" && (err != nil || after != 2): // the directory and its marker
				t.Errorf("%d entries are left, %v", after, err)
			case test.foreign != "" && (err == nil || !strings.Contains(err.Error(), test.foreign)):
				t.Errorf("got %v, want an error that names %s", err, test.foreign)
			case test.foreign != "" && after != before:
				t.Errorf("%d of %d entries are left", after, before)
			}
		})
	}
}

func TestForeignDirectoryIsRefused(t *testing.T) {
	path := shortDirectory(t)
	write(t, path, "durward.db")
	if _, err := OpenDirectory(path); err == nil || !strings.Contains(err.Error(), "durward.db") {
		t.Errorf("got %v", err)
	}
	if count(t, path) != 2 {
		t.Error("something was made in it")
	}
}

func TestPathInCaddyfile(t *testing.T) {
	long := strings.Repeat("d", maxSocketPath)
	t.Chdir(shortDirectory(t))
	if err := os.Mkdir("a b", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ working, path, want string }{ // want starting with "--data": the error
		{".", "/tmp/data", "/tmp/data"},
		{".", "/tmp/a b", "--data: the path \"/tmp/a b\" has characters"},
		{".", "/tmp/{x}", "--data: the path \"/tmp/{x}\" has characters"},
		{".", "/tmp/" + long, "--data: the path /tmp/" + long + " is too long by"},
		{"a b", "data", "./data"},
	} {
		t.Run(test.path, func(t *testing.T) {
			t.Chdir(test.working)
			absolute, err := filepath.Abs(test.path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := pathInCaddyfile(absolute)
			if err != nil {
				got = err.Error()
			}
			if got != test.want && (!strings.HasPrefix(test.want, "--data") || !strings.HasPrefix(got, test.want)) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

// shortDirectory returns a directory whose path leaves room for a socket: that of t.TempDir holds the test's name.
func shortDirectory(t *testing.T) string {
	t.Helper()
	path, err := os.MkdirTemp("", "dev-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	return path
}

func open(t *testing.T, path string) *Directory {
	t.Helper()
	d, err := OpenDirectory(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func write(t *testing.T, directory, name string) {
	t.Helper()
	path := filepath.Join(directory, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// count counts the directory and everything in it.
func count(t *testing.T, path string) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(path, func(string, os.DirEntry, error) error { n++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return n
}
