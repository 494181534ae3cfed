package records

import (
	"go/ast"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/storage/storagetest"
)

// source is a package whose SQL is checked.
type source struct {
	name      string
	files     *token.FileSet
	parsed    []*ast.File
	constants map[string]string
}

func (p *source) at(n ast.Node) token.Position { return p.files.Position(n.Pos()) }

func (p *source) isIn(n ast.Node, names ...string) bool {
	return slices.Contains(names, filepath.Base(p.at(n).Filename))
}

// TestQueriesAreConstants checks Q03: every SQL text is a constant of the stores' packages, or made of such constants
// by a dialect, so that no input can become part of one. A function that passes a text on calls its parameter query,
// and the same is checked for its callers. Migrations are embedded files.
func TestQueriesAreConstants(t *testing.T) {
	t.Parallel()
	// Where the SQL stands among the arguments: of what the clients of databases have, and of functions with a parameter
	// named query.
	position := map[string]int{"ExecContext": 1, "QueryContext": 1, "QueryRowContext": 1, "PrepareContext": 1, // database/sql
		"Exec": 1, "Query": 1, "QueryRow": 1, "Queue": 0, "Prepare": 2} // pgx
	var packages []*source
	for _, dir := range []string{".", "../sqlite", "../postgres"} {
		p := &source{name: filepath.Base(dir)}
		p.files, p.parsed = storagetest.ParsePackage(t, dir)
		p.constants = storagetest.Statements(t, p.parsed)
		packages = append(packages, p)
		for _, f := range p.parsed {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					learn(t, position, n.Name.Name, n.Type)
				case *ast.Field: // a method of an interface
					if signature, ok := n.Type.(*ast.FuncType); ok && len(n.Names) == 1 {
						learn(t, position, n.Names[0].Name, signature)
					}
				}
				return true
			})
		}
	}
	for i, p := range packages {
		checked := 0
		for _, f := range p.parsed {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.AssignStmt:
					for _, left := range n.Lhs {
						if name, ok := left.(*ast.Ident); ok && name.Name == "query" {
							t.Errorf("%s: query is assigned to", p.at(n))
						}
					}
				case *ast.RangeStmt:
					if name, ok := n.Value.(*ast.Ident); ok && name.Name == "query" && !p.isIn(n, "prepared.go") {
						t.Errorf("%s: query is assigned to", p.at(n))
					}
				case *ast.CompositeLit:
					if kind, ok := n.Type.(*ast.SelectorExpr); ok && kind.Sel.Name == "Dialect" {
						for _, word := range n.Elts {
							if !p.constant(word.(*ast.KeyValueExpr).Value) {
								t.Errorf("%s: a word of the dialect is no constant", p.at(word))
							}
						}
					}
				case *ast.CallExpr:
					if checkCall(t, p, n, position) {
						checked++
					}
				}
				return true
			})
		}
		if least := []int{200, 17, 50}[i]; checked < least {
			t.Errorf("%s: only %d calls were checked: the check no longer sees them", p.name, checked)
		}
	}
}

// learn remembers at which place a function takes a text.
func learn(t *testing.T, position map[string]int, name string, signature *ast.FuncType) {
	at := 0
	for _, field := range signature.Params.List {
		for _, parameter := range field.Names {
			if parameter.Name == "query" {
				if former, known := position[name]; known && former != at {
					t.Errorf("two functions %s take their texts in different places: the check cannot tell them apart", name)
				}
				position[name] = at
			}
			at++
		}
	}
}

// checkCall checks a call that takes a text; false for others.
func checkCall(t *testing.T, p *source, call *ast.CallExpr, position map[string]int) bool {
	name := ""
	fun := call.Fun
	if generic, ok := fun.(*ast.IndexExpr); ok {
		fun = generic.X
	}
	switch fun := fun.(type) {
	case *ast.Ident:
		name = fun.Name
	case *ast.SelectorExpr:
		name = fun.Sel.Name
		if isNamed(fun.X, "statement") {
			return false // prepared: its text was checked where it was prepared
		}
		if owner, ok := fun.X.(*ast.CallExpr); ok && len(owner.Args) == 2 && isNamed(owner.Args[1], "statement") {
			return false // the same in a transaction
		}
		// The methods of database/sql without a context continue when their caller has left.
		if p.name == "sqlite" && slices.Contains([]string{"Exec", "Query", "QueryRow", "Prepare"}, name) && !isNamed(fun.X, "url") &&
			(len(call.Args) == 0 || !isNamed(call.Args[0], "ctx")) {
			t.Errorf("%s: %s takes no context", p.at(call), name)
		}
	}
	at, ok := position[name]
	if !ok || len(call.Args) <= at {
		return false
	}
	if !p.constant(call.Args[at]) {
		t.Errorf("%s: the SQL of %s is no constant", p.at(call), name)
	}
	return true
}

// constant reports whether a text is a constant, or a parameter that is checked where it comes from.
func (p *source) constant(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.STRING
	case *ast.Ident:
		return p.constants[e.Name] != "" || e.Name == "query"
	case *ast.BinaryExpr:
		return p.constant(e.X) && p.constant(e.Y)
	case *ast.SelectorExpr:
		switch owner := e.X.(type) {
		case *ast.Ident: // the text of a migration, and texts made from the schema's own names
			return owner.Name == "m" && (e.Sel.Name == "up" || e.Sel.Name == "down") && p.isIn(e, "migrate.go") ||
				owner.Name == "made" && p.isIn(e, "tables.go", "arrival.go")
		case *ast.SelectorExpr: // what TestTextsAreConstants checks, and words of the dialect
			return p.name == "." && isNamed(owner.X, "s") && (owner.Sel.Name == "texts" || owner.Sel.Name == "dialect")
		}
	}
	return false
}

func isNamed(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// TestTextsAreConstants checks Q03 for the statements that depend on the dialect: they are made of constants and the
// dialect's words, in the methods of texts and Dialect, and nowhere else.
func TestTextsAreConstants(t *testing.T) {
	t.Parallel()
	p := &source{name: "."}
	p.files, p.parsed = storagetest.ParsePackage(t, ".")
	p.constants = storagetest.Statements(t, p.parsed)
	made := make(map[string]bool)
	for _, f := range p.parsed {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			maker := fn.Recv != nil && slices.Contains([]string{"t", "d"}, fn.Recv.List[0].Names[0].Name)
			local := make(map[string]bool)
			ast.Inspect(fn, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.AssignStmt:
					if field, ok := n.Lhs[0].(*ast.SelectorExpr); ok && (isNamed(field.X, "t") && maker || field.Sel.Name == "texts") {
						if !maker || !p.composed(n.Rhs[0], local) {
							t.Errorf("%s: a text is not made of constants", p.at(n))
						}
						made[field.Sel.Name] = true
					} else if name, ok := n.Lhs[0].(*ast.Ident); ok && maker && p.composed(n.Rhs[0], local) {
						local[name.Name] = true
					}
				case *ast.KeyValueExpr: // of what drivers prepare
					if text, ok := n.Value.(*ast.SelectorExpr); fn.Name.Name == "Reads" && !p.constant(n.Value) && !(ok && isNamed(text.X, "t")) {
						t.Errorf("%s: a read is no constant", p.at(n))
					}
				case *ast.CallExpr: // parameters of has and in
					if called, ok := n.Fun.(*ast.SelectorExpr); ok && isNamed(called.X, "d") && (called.Sel.Name == "has" || called.Sel.Name == "in") {
						for _, arg := range n.Args {
							if !p.constant(arg) {
								t.Errorf("%s: %s is given what is no constant", p.at(n), called.Sel.Name)
							}
						}
					}
				}
				return true
			})
		}
	}
	if len(made) != 26 {
		t.Errorf("%d texts are made, not 26: %v", len(made), slices.Sorted(maps.Keys(made)))
	}
}

// composed reports whether a text is made of constants, words of the dialect d, and local texts that are.
func (p *source) composed(e ast.Expr, local map[string]bool) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return local[e.Name] || p.constant(e) && e.Name != "query"
	case *ast.BinaryExpr:
		return p.composed(e.X, local) && p.composed(e.Y, local)
	case *ast.SelectorExpr:
		return isNamed(e.X, "d")
	case *ast.CallExpr:
		called, ok := e.Fun.(*ast.SelectorExpr)
		return ok && isNamed(called.X, "d") && (called.Sel.Name == "has" || called.Sel.Name == "in")
	}
	return p.constant(e)
}

// Every read that a driver may prepare has a text, and no two are the same.
func TestReads(t *testing.T) {
	t.Parallel()
	reads := Dialect{}.Reads()
	texts := make(map[string]string)
	for name, text := range reads {
		if !strings.HasPrefix(text, "SELECT ") || texts[text] != "" {
			t.Errorf("%s: %q, as is %q", name, text, texts[text])
		}
		texts[text] = name
	}
}
