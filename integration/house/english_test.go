package house

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// isWhat matches a definition by a clause: "X is what holds the lock". The comment should say "X holds the lock".
var isWhat = regexp.MustCompile(`\b(is|are) what\b`)

// TestPlainEnglish checks that comments say directly what a thing is or does. Tests are left out.
func TestPlainEnglish(t *testing.T) {
	files := token.NewFileSet()
	comments := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if isForeign(entry) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, group := range file.Comments {
			comments++
			var words []string
			for _, line := range group.List { // not group.Text, which has no reasons of nolint
				words = append(words, strings.Fields(strings.Trim(line.Text, "/*"))...)
			}
			if said := isWhat.FindString(strings.Join(words, " ")); said != "" {
				t.Errorf("%s: %q: say directly what the thing does, or what it is", files.Position(group.Pos()), said)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if comments < 1000 {
		t.Errorf("found %d comments only: where they are has changed", comments)
	}
}
