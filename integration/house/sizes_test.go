package house

import (
	"go/ast"
	"path/filepath"
	"strings"
	"testing"
)

// A package that has more files than this is more than one thing, and a type with more methods that others can call
// knows too much. A few are over it. The number beside each falls when it can, and rises only for the reason beside it.
const (
	mostFiles   = 30
	mostMethods = 20
)

// crowded lists the packages with more files, and why.
var crowded = map[string]int{
	"storage/records":     41, // one file for each kind of record
	"storage/storagetest": 34, // likewise
}

// talkative lists the types with more exported methods, and why.
var talkative = map[string]int{
	"internal/api/validate.Object": 21, // one for each type that a member can have
}

// TestSizes checks that packages and types stay small enough to be known.
func TestSizes(t *testing.T) {
	files, methods := make(map[string]map[string]bool), make(map[string]int)
	sources(t, func(path string, n ast.Node) {
		pkg := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(path, "../../")))
		if files[pkg] == nil {
			files[pkg] = make(map[string]bool)
		}
		files[pkg][path] = true
		if f, ok := n.(*ast.FuncDecl); ok && f.Recv != nil && f.Name.IsExported() {
			if name := receiver(f); name != "" {
				methods[pkg+"."+name]++
			}
		}
	})
	if len(files) < 50 {
		t.Fatalf("found %d packages only", len(files))
	}
	found := make(map[string]int)
	for pkg, of := range files {
		found[pkg] = len(of)
	}
	compare(t, "files", found, crowded, mostFiles)
	compare(t, "exported methods", methods, talkative, mostMethods)
}

func compare(t *testing.T, of string, found, over map[string]int, most int) {
	t.Helper()
	for name, n := range found {
		limit, listed := over[name]
		switch {
		case !listed && n > most:
			t.Errorf("%s has %d %s, more than %d", name, n, of, most)
		case listed && n > limit:
			t.Errorf("%s has %d %s, and had %d: split it; raise its number here only for the reason that stands beside it", name, n, of, limit)
		case listed && n < limit:
			t.Errorf("%s has %d %s now: lower its number here", name, n, of)
		}
	}
	for name := range over {
		if found[name] == 0 {
			t.Errorf("%s is not there", name)
		}
	}
}

// receiver returns the name of the type that a method belongs to.
func receiver(f *ast.FuncDecl) string {
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	return word(of)
}
