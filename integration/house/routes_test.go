package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// reference is the page that lists every address.
const reference = "../../docs/api.md"

// routeRow is a line of its tables: methods, path, role.
var routeRow = regexp.MustCompile("(?m)^\\| `([A-Z, ]+)` \\| `(/[^`]*)` \\| ([a-z_]+) \\|")

// elsewhere begin the addresses that no table of routes has: handlers know them by themselves.
var elsewhere = []string{"/mcp/", "/sse/", "/api/llm-gateway/v1/", "/.well-known/", "/api/oauth/", "/login", "/logout", "/approvals", "/clients", "/connect", "/oauth/"}

// TestRoutesAreDocumented checks that docs/api.md has every route of both tables, with the role that the table demands,
// and no other.
func TestRoutesAreDocumented(t *testing.T) {
	documented := make(map[string]string)
	for _, row := range routeRow.FindAllStringSubmatch(read(t, reference), -1) {
		for method := range strings.SplitSeq(row[1], ", ") {
			route := method + " " + row[2]
			if documented[route] != "" {
				t.Errorf("%s is there twice", route)
			}
			documented[route] = row[3]
		}
	}
	shared := constants(t, "../../modules/app/paths/paths.go", nil)
	roles := map[string]string{"Public": "anyone", "User": "user", "Auditor": "auditor", "PolicyEditor": "policy_editor", "Operator": "operator", "Admin": "admin"}
	for file, least := range map[string]int{"../../modules/platformapi/routes.go": 40, "../../modules/gatewayapi/routes.go": 30} {
		routes := routesOf(t, file, shared)
		if len(routes) < least {
			t.Errorf("%s: found %d routes only: how they are declared has changed", file, len(routes))
		}
		for route, role := range routes {
			if want := roles[role]; want == "" || documented[route] != want {
				t.Errorf("%s: %s for %s is %q in docs/api.md", file, route, want, documented[route])
			}
			delete(documented, route)
		}
	}
	for route := range documented {
		_, path, _ := strings.Cut(route, " ")
		if !slices.ContainsFunc(elsewhere, func(prefix string) bool { return strings.HasPrefix(path, prefix) }) {
			t.Errorf("docs/api.md has %s, which no table has", route)
		}
	}
}

// routesOf reads the calls routes.At(http.MethodX, path, routes.Role, ...) of a file: the roles of its routes.
func routesOf(t *testing.T, path string, shared map[string]string) map[string]string {
	t.Helper()
	known := constants(t, path, shared)
	out := make(map[string]string)
	ast.Inspect(parsed(t, path), func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if fun, ok := call.Fun.(*ast.SelectorExpr); ok && of(fun, "routes") && fun.Sel.Name == "At" {
			address := value(call.Args[1], known)
			if !strings.HasPrefix(address, "/") {
				t.Errorf("%s: the path of a route cannot be read", path)
			}
			out[strings.ToUpper(strings.TrimPrefix(word(call.Args[0]), "Method"))+" "+address] = word(call.Args[2])
		}
		return true
	})
	return out
}

// constants returns the texts that a file declares, with those of others that it may name.
func constants(t *testing.T, path string, others map[string]string) map[string]string {
	t.Helper()
	known := make(map[string]string)
	maps.Copy(known, others)
	ast.Inspect(parsed(t, path), func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == len(spec.Names) {
			for i, name := range spec.Names {
				if text := value(spec.Values[i], known); text != "" {
					known[name.Name] = text
				}
			}
		}
		return true
	})
	return known
}

// value returns the text of an expression of literals and constants, "" for any other one.
func value(e ast.Expr, known map[string]string) string {
	if sum, ok := e.(*ast.BinaryExpr); ok && sum.Op == token.ADD {
		left, right := value(sum.X, known), value(sum.Y, known)
		if left == "" || right == "" {
			return ""
		}
		return left + right
	}
	if literal := text(e); literal != "" {
		return literal
	}
	return known[word(e)]
}

func parsed(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
