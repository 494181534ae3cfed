package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoTestSleeps finds tests that wait for time to pass. On the fake clock of
// testing/synctest that costs nothing and is exact; on the real one it is slow on a
// fast machine and fails on a slow one.
func TestNoTestSleeps(t *testing.T) {
	files := token.NewFileSet()
	seen := 0
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if isForeign(entry) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		seen++
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		fake := false
		for _, imported := range file.Imports {
			fake = fake || imported.Path.Value == `"testing/synctest"`
		}
		if fake {
			return nil
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.SelectorExpr); ok && call.Sel.Name == "Sleep" {
				if pkg, ok := call.X.(*ast.Ident); ok && pkg.Name == "time" {
					t.Errorf("%s: time.Sleep", files.Position(call.Pos()))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen == 0 {
		t.Error("found no test files")
	}
}

// isForeign reports whether a directory of the tree holds no sources of the project.
func isForeign(entry fs.DirEntry) bool {
	name := entry.Name()
	return entry.IsDir() && (name == "bin" || name == "data" || name == "node_modules" || strings.HasPrefix(name, ".") && len(name) > 2)
}
