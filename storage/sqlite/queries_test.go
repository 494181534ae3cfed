package sqlite

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestQueriesAreConstants is Q03: every SQL text is a constant of this package, so that no input can become part of one.
// A function that hands a text on calls its parameter query, and its callers are held to the same. Migrations are
// embedded files.
func TestQueriesAreConstants(t *testing.T) {
	t.Parallel()
	files := token.NewFileSet()
	var parsed []*ast.File
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, f)
	}
	constants := make(map[string]bool)
	position := map[string]int{"ExecContext": 1, "QueryContext": 1, "QueryRowContext": 1, "PrepareContext": 1} // of the SQL among the arguments
	forbidden := map[string]bool{"Exec": true, "Query": true, "QueryRow": true, "Prepare": true}               // without a context
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GenDecl:
				if n.Tok == token.CONST {
					for _, spec := range n.Specs {
						for _, name := range spec.(*ast.ValueSpec).Names {
							constants[name.Name] = true
						}
					}
				}
			case *ast.FuncDecl:
				at := 0
				for _, field := range n.Type.Params.List {
					for _, name := range field.Names {
						if name.Name == "query" {
							position[n.Name.Name] = at
						}
						at++
					}
				}
			}
			return true
		})
	}
	var constant func(e ast.Expr) bool
	constant = func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.BasicLit:
			return true
		case *ast.Ident:
			return constants[e.Name] || e.Name == "query"
		case *ast.BinaryExpr:
			return constant(e.X) && constant(e.Y)
		case *ast.SelectorExpr: // the text of a migration, and what is made of the schema's own names
			owner, ok := e.X.(*ast.Ident)
			file := files.Position(e.Pos()).Filename
			return ok && (owner.Name == "m" && e.Sel.Name == "up" && strings.HasSuffix(file, "migrate.go") ||
				owner.Name == "made" && strings.HasSuffix(file, "tables.go"))
		}
		return false
	}
	checked := 0
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && spec.Names[0].Name == "preparedQueries" {
				for _, text := range spec.Values[0].(*ast.CompositeLit).Elts {
					if !constant(text) {
						t.Errorf("%s: a prepared text is not a constant", files.Position(text.Pos()))
					}
				}
			}
			if assigned, ok := n.(*ast.AssignStmt); ok {
				for _, left := range assigned.Lhs {
					if name, ok := left.(*ast.Ident); ok && name.Name == "query" {
						t.Errorf("%s: query is assigned to", files.Position(n.Pos()))
					}
				}
			}
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			var name string
			switch callee := call.Fun.(type) {
			case *ast.Ident:
				name = callee.Name
			case *ast.SelectorExpr:
				name = callee.Sel.Name
				if forbidden[name] {
					if owner, ok := callee.X.(*ast.Ident); !ok || owner.Name != "url" {
						t.Errorf("%s: %s takes no context", files.Position(n.Pos()), name)
					}
				}
			}
			if callee, ok := call.Fun.(*ast.SelectorExpr); ok {
				if owner, ok := callee.X.(*ast.Ident); ok && owner.Name == "statement" {
					return true // prepared: its text was checked where it was prepared
				}
				if owner, ok := callee.X.(*ast.CallExpr); ok && len(owner.Args) == 2 {
					if last, ok := owner.Args[1].(*ast.Ident); ok && last.Name == "statement" {
						return true // the same in a transaction
					}
				}
			}
			if at, ok := position[name]; ok && at < len(call.Args) {
				checked++
				if !constant(call.Args[at]) {
					t.Errorf("%s: the SQL of %s is not a constant", files.Position(n.Pos()), name)
				}
			}
			return true
		})
	}
	if checked < 60 {
		t.Errorf("only %d statements were found: the check no longer sees them", checked)
	}
}
