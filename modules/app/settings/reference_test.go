package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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
