package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/seal"
)

func TestDevelopmentMasterKeyIsMadeOnce(t *testing.T) {
	dir := t.TempDir()
	if _, err := developmentMasterKey(dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, masterKeyFile)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	first, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seal.ParseMasterKey(seal.NewSecret(strings.TrimSpace(string(first)))); err != nil {
		t.Fatal(err)
	}
	if _, err := developmentMasterKey(dir); err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(path)
	if err != nil || string(first) != string(second) {
		t.Errorf("the key changed: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestDevelopmentMasterKeyIsNeverReplaced(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "cut": "AAAA\n", "not a key": "hello\n"} {
		dir := t.TempDir()
		path := filepath.Join(dir, masterKeyFile)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := developmentMasterKey(dir); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want an error that names the file", name, err)
		}
		if now, _ := os.ReadFile(path); string(now) != content {
			t.Errorf("%s: what was sealed under the old key is lost", name)
		}
	}
	if _, err := developmentMasterKey(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a key in a directory that is not there")
	}
	if _, err := developmentMasterKey(""); err == nil {
		t.Error("a key without a directory")
	}
}
