package postgres

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parsePackage parses the files of a package that are no tests.
func parsePackage(t *testing.T, dir string) (*token.FileSet, []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	files := token.NewFileSet()
	var parsed []*ast.File
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
	return files, parsed
}

// constantTexts are the values of a package's text constants.
func constantTexts(t *testing.T, dir string) map[string]string {
	t.Helper()
	_, files := parsePackage(t, dir)
	exprs := make(map[string]ast.Expr)
	for _, f := range files {
		for _, d := range f.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.CONST {
				continue
			}
			for _, spec := range gen.Specs {
				for i, name := range spec.(*ast.ValueSpec).Names {
					if i < len(spec.(*ast.ValueSpec).Values) {
						exprs[name.Name] = spec.(*ast.ValueSpec).Values[i]
					}
				}
			}
		}
	}
	var value func(e ast.Expr) (string, bool)
	value = func(e ast.Expr) (string, bool) {
		switch e := e.(type) {
		case *ast.BasicLit:
			text, err := strconv.Unquote(e.Value)
			return text, e.Kind == token.STRING && err == nil
		case *ast.Ident:
			return value(exprs[e.Name])
		case *ast.BinaryExpr:
			x, ok := value(e.X)
			y, ok2 := value(e.Y)
			return x + y, ok && ok2
		}
		return "", false
	}
	texts := make(map[string]string)
	for name, e := range exprs {
		if text, ok := value(e); ok && strings.HasSuffix(name, "SQL") {
			texts[name] = strings.Join(strings.Fields(text), " ")
		}
	}
	return texts
}

// otherWords are the statements that cannot be the same in both stores, and why.
var otherWords = map[string]string{
	"auditHeadSQL":      "transactions run at the same time here: the head of the chain is locked",
	"addSpendSQL":       "so is the budget, which must not go meanwhile",
	"forgetExpiredSQL":  "the explicit organization, as the second wall shows no others",
	"forgetOldestSQL":   "LIMIT -1 is SQLite's word for no limit",
	"forgetOverSQL":     "the explicit organization, as the second wall shows no others",
	"sumUsageSQL":       "iif is SQLite's, and sums of BIGINT are NUMERIC in PostgreSQL",
	"countPoliciesSQL":  "json_each",
	"listPoliciesSQL":   "json_each",
	"listAgentNamesSQL": "json_each",
	"overlappingSQL":    "json_each",
	"pinsNamedSQL":      "json_each",
	"hasMigrationsSQL":  "the catalogue",
	"tableColumnsSQL":   "the catalogue",
}

// onlyHere and onlyThere are statements that one store has.
var (
	onlyHere = []string{"aloneSQL", "arrivalSourceSQL", "beginAuditHeadSQL", "beginSQL", "changeSQL", "changedSQL", "checkSQL", "dropArrivalSQL", "factsSQL", "hasArrivalSQL", "impatientSQL", "openToAllSQL", "makeArrivalSQL", "nameArrivalSQL", "probeSQL", "setProbeSQL", "forgetMigrationSQL", "lockEntrySQL", "listenSQL", "lockSQL",
		"makeMigrationsSQL", "oldestWriterSQL", "pollSQL", "positionSQL", "prepareSQL", "pruneSQL", "recordMigrationSQL", "setScopeSQL", "tryLockSQL", "unboundedSQL", "unlockSQL"}
	onlyThere = []string{"countObjectsSQL", "totalChangesSQL"}
)

// TestSameStatements holds the statements of the two stores together: whoever changes one changes the other, or says
// here why not.
func TestSameStatements(t *testing.T) {
	t.Parallel()
	here, there := constantTexts(t, "."), constantTexts(t, "../sqlite")
	if len(there) < 100 {
		t.Fatalf("only %d statements were found in storage/sqlite", len(there))
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		text, ok := here[name]
		if !ok {
			if !slices.Contains(onlyThere, name) {
				t.Errorf("%s is in storage/sqlite only", name)
			}
			continue
		}
		same := text == strings.ReplaceAll(there[name], "instr(", "strpos(")
		if _, other := otherWords[name]; other == same {
			t.Errorf("%s: said to differ: %v (-sqlite +postgres)\n%s", name, other, cmp.Diff(there[name], text))
		}
	}
	for name := range here {
		if _, ok := there[name]; !ok && !slices.Contains(onlyHere, name) {
			t.Errorf("%s is in storage/postgres only", name)
		}
	}
}

// TestSameTables holds the columns of the two schemas together, in their order.
func TestSameTables(t *testing.T) {
	t.Parallel()
	columns := func(pattern string) map[string][]string {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		tables := make(map[string][]string)
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			table := ""
			for line := range strings.Lines(string(text)) {
				words := strings.Fields(line)
				switch {
				case len(words) > 3 && words[0] == "ALTER" && words[3] == "ADD":
					tables[words[2]] = append(tables[words[2]], words[5])
				case len(words) > 2 && words[0] == "CREATE" && words[1] == "TABLE":
					table = words[2]
				case strings.HasPrefix(line, ")"):
					table = ""
				case table != "" && strings.HasPrefix(line, "    ") && words[0] == strings.ToLower(words[0]) && words[0] != "--" && words[0] != "xact":
					tables[table] = append(tables[table], words[0])
				}
			}
		}
		return tables
	}
	here, there := columns("migrations/*.up.sql"), columns("../sqlite/migrations/*.up.sql")
	if diff := cmp.Diff(there, here); diff != "" {
		t.Errorf("(-sqlite +postgres)\n%s", diff)
	}
}

// TestQueriesAreConstants is Q03: every SQL text is a constant of this package, so that no input can become part of one.
// A function that hands a text on calls its parameter query, and its callers are held to the same. Migrations are
// embedded files.
func TestQueriesAreConstants(t *testing.T) {
	t.Parallel()
	files, parsed := parsePackage(t, ".")
	constants := constantTexts(t, ".")
	position := map[string]int{"Exec": 1, "Query": 1, "QueryRow": 1, "Queue": 0, "Prepare": 2} // of the SQL among the arguments
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			d, ok := n.(*ast.FuncDecl)
			if !ok {
				return true
			}
			at := 0
			for _, field := range d.Type.Params.List {
				for _, name := range field.Names {
					if name.Name == "query" {
						position[d.Name.Name] = at
					}
					at++
				}
			}
			return true
		})
	}
	constant := func(e ast.Expr) bool {
		switch e := e.(type) {
		case *ast.Ident:
			return constants[e.Name] != "" || e.Name == "query"
		case *ast.SelectorExpr: // the text of a migration, and what is made of the schema's own names
			owner, ok := e.X.(*ast.Ident)
			file := files.Position(e.Pos()).Filename
			return ok && (owner.Name == "m" && (e.Sel.Name == "up" || e.Sel.Name == "down") && strings.HasSuffix(file, "migrate.go") ||
				owner.Name == "made" && (strings.HasSuffix(file, "tables.go") || strings.HasSuffix(file, "arrival.go")))
		}
		return false
	}
	checked := 0
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			name := ""
			switch fun := call.Fun.(type) {
			case *ast.Ident:
				name = fun.Name
			case *ast.SelectorExpr:
				name = fun.Sel.Name
			case *ast.IndexExpr:
				if id, ok := fun.X.(*ast.Ident); ok {
					name = id.Name
				}
			}
			at, ok := position[name]
			if !ok || len(call.Args) <= at {
				return true
			}
			checked++
			if !constant(call.Args[at]) {
				t.Errorf("%s: the SQL of %s is no constant", files.Position(call.Pos()), name)
			}
			return true
		})
	}
	if checked < 200 {
		t.Errorf("only %d calls were checked", checked)
	}
}
