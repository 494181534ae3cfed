package caddyfile

import (
	"os"
	"regexp"
	"testing"
)

// TestWordsAreDocumented checks that every word of the global option has its row in docs/configuration.md, and the
// comment of parseOption has it too.
func TestWordsAreDocumented(t *testing.T) {
	for _, place := range []struct{ path, before, after string }{
		{"../docs/configuration.md", "(?m)^\\| `", "[ `]"},
		{"global.go", `(?m)^//\t\t`, `\s`},
	} {
		text, err := os.ReadFile(place.path)
		if err != nil {
			t.Fatal(err)
		}
		for word := range words {
			if !regexp.MustCompile(place.before + word + place.after).Match(text) {
				t.Errorf("%s says nothing of the word %q", place.path, word)
			}
		}
	}
}
