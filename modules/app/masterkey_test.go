package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/seal"
)

func TestResolveSecret(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret := write("secret", "canary-in-file\n")
	t.Setenv("DURWARD_TEST_SECRET", "canary-in-variable")
	t.Setenv("DURWARD_TEST_EMPTY", "")
	for _, test := range []struct{ name, reference, want, refused string }{
		{"a variable", "{env.DURWARD_TEST_SECRET}", "canary-in-variable", ""},
		{"a file without its line end", "{file." + secret + "}", "canary-in-file", ""},
		{"a file with a line end of Windows", "{file." + write("crlf", "canary-in-file\r\n") + "}", "canary-in-file", ""},
		{"blanks are part of a secret", "{file." + write("blank", " canary ") + "}", " canary ", ""},
		{"a literal", "canary-as-literal", "", "must be a reference"},
		{"nothing", "", "", "must be a reference"},
		{"a reference and more", "{env.DURWARD_TEST_SECRET}x", "", "must be a reference"},
		{"two references", "{env.DURWARD_TEST_SECRET}{env.DURWARD_TEST_SECRET}", "", "must be a reference"},
		{"a line break behind", "{env.DURWARD_TEST_SECRET}\n", "", "must be a reference"},
		{"another placeholder", "{http.request.header.X}", "", "must be a reference"},
		{"system information", "{system.hostname}", "", "must be a reference"},
		{"a reference in a reference", "{file.{env.DURWARD_TEST_SECRET}}", "", "must be a reference"},
		{"an unset variable", "{env.DURWARD_TEST_UNSET}", "", "{env.DURWARD_TEST_UNSET} does not resolve to anything"},
		{"an empty variable", "{env.DURWARD_TEST_EMPTY}", "", "{env.DURWARD_TEST_EMPTY} does not resolve to anything"},
		{"a file that is not there", "{file." + dir + "/none}", "", dir + "/none} does not resolve to anything"},
		{"a directory", "{file." + dir + "}", "", "does not resolve to anything"},
		{"an empty file", "{file." + write("empty", "") + "}", "", "does not resolve to anything"},
		{"a file with only a line end", "{file." + write("line", "\n") + "}", "", "does not resolve to anything"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := ResolveSecret(test.reference)
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Fatalf("error %v, want %q", err, test.refused)
				}
				if strings.Contains(err.Error(), "canary") {
					t.Errorf("the error shows a secret: %v", err)
				}
				return
			}
			if err != nil || got.Reveal() != test.want {
				t.Errorf("%q, %v", got.Reveal(), err)
			}
		})
	}
}

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
