package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestMetricsAreDocumented checks that docs/operating.md explains every metric, for an operator whom one wakes up.
func TestMetricsAreDocumented(t *testing.T) {
	manual := read(t, "../../docs/operating.md")
	names := 0
	sources(t, func(path string, n ast.Node) {
		var name string
		switch n := n.(type) {
		case *ast.CompositeLit:
			kind, ok := n.Type.(*ast.SelectorExpr)
			if !ok || !of(kind, "prometheus") || !strings.HasSuffix(kind.Sel.Name, "Opts") {
				return
			}
			namespace := ""
			for _, e := range n.Elts {
				if pair, ok := e.(*ast.KeyValueExpr); ok && word(pair.Key) == "Namespace" {
					namespace = "durward_"
				} else if ok && word(pair.Key) == "Name" {
					name = text(pair.Value)
				}
			}
			name = namespace + name
		case *ast.CallExpr:
			made, ok := n.Fun.(*ast.SelectorExpr)
			if !ok || !of(made, "prometheus") || made.Sel.Name != "NewDesc" {
				return
			}
			name = text(n.Args[0])
		default:
			return
		}
		names++
		if name == "" || name == "durward_" || !strings.Contains(manual, "\n| `"+name+"` |") {
			t.Errorf("%s: the metric %q is not in the table of docs/operating.md", path, name)
		}
	})
	if names < 6 {
		t.Errorf("found %d metrics only: how they are made has changed", names)
	}
}

// TestOutcomesAreKnown checks that GET /api/audit refuses other outcomes than those it lists, so that every one that is
// recorded has to be listed, and written down in docs/audit.md.
func TestOutcomesAreKnown(t *testing.T) {
	var known, used []string
	sources(t, func(path string, n ast.Node) {
		var name ast.Expr
		var value ast.Expr
		switch n := n.(type) {
		case *ast.AssignStmt:
			name, value = n.Lhs[0], n.Rhs[0]
		case *ast.KeyValueExpr:
			name, value = n.Key, n.Value
		case *ast.ValueSpec:
			if len(n.Values) == 0 {
				return
			}
			name, value = n.Names[0], n.Values[0]
			if list, ok := value.(*ast.CompositeLit); ok && n.Names[0].Name == "auditOutcomes" {
				for _, e := range list.Elts {
					known = append(known, text(e))
				}
			}
		case *ast.CallExpr:
			name, value = n.Fun, n
			if len(n.Args) > 0 {
				value = n.Args[0]
			}
		default:
			return
		}
		what := word(name)
		if made := text(value); made != "" && strings.HasPrefix(strings.ToLower(what), "outcome") {
			used = append(used, made)
		}
	})
	manual := read(t, "../../docs/audit.md")
	for _, outcome := range used {
		if !slices.Contains(known, outcome) {
			t.Errorf("the outcome %q is not one that GET /api/audit knows (%q)", outcome, known)
		}
	}
	for _, outcome := range known {
		if !slices.Contains(used, outcome) && outcome != "error" || !strings.Contains(manual, "`"+outcome+"`") {
			t.Errorf("the outcome %q is never recorded, or not in docs/audit.md", outcome)
		}
	}
	if len(used) < 20 || len(known) < 10 {
		t.Errorf("found %d and %d outcomes only: how they are written has changed", len(used), len(known))
	}
}

// sources calls each with every node of the sources that are linked into the gateway, tests left out.
func sources(t *testing.T, each func(path string, n ast.Node)) {
	t.Helper()
	files := token.NewFileSet()
	for _, root := range []string{"../../cmd", "../../caddyfile", "../../modules", "../../internal", "../../storage"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if n != nil {
					each(path, n)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func of(s *ast.SelectorExpr, pkg string) bool {
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}

// word returns the last name of an expression, "" when it has none.
func word(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// text returns the value of a string literal, "" for any other expression.
func text(e ast.Expr) string {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return value
}
