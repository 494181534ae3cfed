package house

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/durward-gateway/durward"

// listed is the description of a package by `go list`.
type listed struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
	Deps                               []string // everything that is linked with it
}

// The direction of imports (docs/architecture.md):
//
//	cmd -> caddyfile -> modules/<handler> -> modules/app -> internal -> storage
//
// depguard says the same in the editor; here it is checked on what is really linked,
// so that no detour through a third package goes unseen.
var directions = []struct {
	name string
	of   func(pkg string) bool // the packages it is about, relative to the module
	// imports reports whether a package may import another of the module. nil: any.
	imports func(pkg, imported string) bool
	// links reports whether a package may have a foreign one linked in. nil: any.
	links func(dep string) bool
	tests bool // holds for test files too
}{
	{
		name:    "storage imports the standard library only",
		of:      is("storage"),
		imports: nothing,
		links:   func(string) bool { return false },
	},
	{
		name:    "the stores' records import storage and the standard library",
		of:      in("storage/records"),
		imports: func(_, imported string) bool { return imported == "storage" },
		links:   func(string) bool { return false },
	},
	{
		name: "stores import storage and the records, and nothing else of the project",
		of:   below("storage"),
		imports: func(pkg, imported string) bool {
			switch pkg {
			case "storage/sqlite", "storage/postgres":
				return imported == "storage" || strings.HasPrefix(imported, "storage/records")
			case "storage/sqlite/sqlitetest":
				return imported == "storage/sqlite"
			}
			return imported == "storage"
		},
		links: neither("github.com/caddyserver/caddy", "go.uber.org/zap"),
	},
	{
		name:    "internal imports internal and storage, and knows nothing of Caddy or zap",
		of:      below("internal"),
		imports: func(_, imported string) bool { return within(imported, "internal", "storage") },
		links:   neither("github.com/caddyserver/caddy", "go.uber.org/zap"),
		tests:   true,
	},
	{
		name:    "refusals import the messages in which they are written and the reasons that streams end for",
		of:      is("internal/gateway"),
		imports: func(_, imported string) bool { return within(imported, "internal/mcp/jsonrpc", "internal/mcp/streams") },
		links:   func(string) bool { return false },
	},
	{
		name: "callers are proven without the rooms that work for them",
		of:   is("internal/identity/authn"),
		imports: func(_, imported string) bool {
			return within(imported, "internal/cache", "internal/identity", "internal/policy/engine", "internal/seal", "internal/strictjson", "storage")
		},
	},
	{
		name: "the evaluator knows servers and their policies, and no callers",
		of:   in("internal/policy/evaluator"),
		imports: func(_, imported string) bool {
			return within(imported, "internal/policy/engine", "internal/mcp/sighting", "internal/cache", "storage")
		},
	},
	{
		name:    "the app knows no handler",
		of:      in("modules/app"),
		imports: func(_, imported string) bool { return within(imported, "modules/app", "internal", "storage") },
	},
	{
		name:    "what judges Caddy's sites knows nothing of the gateway but its addresses",
		of:      in("modules/app/sites"),
		imports: func(_, imported string) bool { return within(imported, "modules/app/paths", "internal/proxy/loopback") },
	},
	{
		name: "a handler never imports a sibling",
		of: func(pkg string) bool {
			return below("modules")(pkg) && !within(pkg, "modules/app", "modules/standard")
		},
		imports: func(pkg, imported string) bool {
			return within(imported, handler(pkg), "modules/app", "internal", "storage")
		},
	},
	{
		name:    "the Caddyfile is above the modules and below the commands",
		of:      in("caddyfile"),
		imports: func(_, imported string) bool { return within(imported, "caddyfile", "modules", "internal", "storage") },
	},
	{
		name:    "the forms of the audit log import the vocabulary of storage, and what packs chunks",
		of:      is("internal/audit/format"),
		imports: func(_, imported string) bool { return imported == "storage" },
		links:   func(dep string) bool { return strings.HasPrefix(dep, "github.com/klauspost/compress/") },
	},
	{
		name: "who reads the audit log does not import who writes it",
		of:   func(pkg string) bool { return below("internal/audit")(pkg) && !within(pkg, "internal/audit/record") },
		imports: func(_, imported string) bool {
			return imported == "storage" || within(imported, "internal/audit/format", "internal/audit/former", "internal/audit/segments")
		},
	},
	{
		name:    "modules/standard only gathers what it links",
		of:      in("modules/standard"),
		imports: func(_, imported string) bool { return within(imported, "modules", "storage") },
	},
	{
		name: "integration imports no package of the project but servers for tests",
		of:   in("integration"),
		imports: func(_, imported string) bool {
			return within(imported, "integration", "storage/postgres/pgtest", "internal/ratelimit/cluster/valkey/valkeytest")
		},
		tests: true,
	},
}

func TestDirectionOfImports(t *testing.T) {
	packages := list(t, "./...")
	for _, d := range directions {
		t.Run(d.name, func(t *testing.T) {
			for _, p := range packages {
				pkg := relative(p.ImportPath)
				if !d.of(pkg) {
					continue
				}
				imports := p.Imports
				if d.tests {
					imports = slices.Concat(imports, p.TestImports, p.XTestImports)
				}
				for _, imported := range imports {
					if ours(imported) && d.imports != nil && !d.imports(pkg, relative(imported)) {
						t.Errorf("%s imports %s", pkg, relative(imported))
					}
				}
				for _, dep := range p.Deps {
					if !ours(dep) && !standard(dep) && d.links != nil && !d.links(dep) {
						t.Errorf("%s links %s", pkg, dep)
					}
				}
			}
		})
	}
}

// TestRooms checks that no room of internal needs, over others, one that needs it: such rooms could only be understood
// together.
func TestRooms(t *testing.T) {
	needs := make(map[string]map[string]string) // a room, the rooms that it imports, and one package of it that does
	for _, p := range list(t, "./internal/...") {
		from := room(p.ImportPath)
		for _, imported := range p.Imports {
			to := room(imported)
			if to == "" || to == from {
				continue
			}
			if needs[from] == nil {
				needs[from] = make(map[string]string)
			}
			needs[from][to] = relative(p.ImportPath)
		}
	}
	if len(needs) == 0 {
		t.Fatal("no room was found")
	}
	for start := range needs {
		if way := wayBack(needs, start, start, nil); way != nil {
			t.Errorf("rooms in a circle: %s", strings.Join(way, "; "))
		}
	}
}

// room returns the room of a package in internal; "" for other packages.
func room(path string) string {
	if !ours(path) {
		return ""
	}
	inside, ok := strings.CutPrefix(relative(path), "internal/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(inside, "/")
	return name
}

// wayBack returns the imports that lead from a room to an end; nil when there is no way.
func wayBack(needs map[string]map[string]string, from, end string, seen []string) []string {
	for to, pkg := range needs[from] {
		step := pkg + " imports " + to
		if to == end {
			return []string{step}
		}
		if slices.Contains(seen, to) {
			continue
		}
		seen = append(seen, to)
		if way := wayBack(needs, to, end, seen); way != nil {
			return append([]string{step}, way...)
		}
	}
	return nil
}

// TestProductionBinary checks that the binary for production links nothing of development mode, in which anybody can log
// in as anybody.
func TestProductionBinary(t *testing.T) {
	for tags, want := range map[string]bool{"nobadger,nomysql,nopgx": true, "nobadger,nomysql,nopgx,nodev": false} {
		linked := false
		for _, p := range list(t, "-tags="+tags, "./cmd/durward") {
			linked = linked || slices.ContainsFunc(p.Deps, func(dep string) bool { return within(relative(dep), "modules/devidp", "cmd/commands/tour") })
		}
		if linked != want {
			t.Errorf("with the tags %s development mode is linked: %v", tags, linked)
		}
	}
}

// list asks the Go command for packages of the module.
func list(t *testing.T, arguments ...string) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list", "-json=ImportPath,Imports,TestImports,XTestImports,Deps"}, arguments...)...)
	cmd.Dir = "../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var packages []listed
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("go list: %v", err)
		}
		packages = append(packages, p)
	}
	if len(packages) == 0 {
		t.Fatal("go list found no packages")
	}
	return packages
}

func ours(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

// relative returns the path inside the module, "" for its root.
func relative(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

// standard reports whether path is in the standard library: those have no dot in
// their first element, except for the copies it vendors.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") || first == "vendor"
}

// handler returns the folder below modules that pkg belongs to.
func handler(pkg string) string {
	parts := strings.SplitN(pkg, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

func within(pkg string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return pkg == folder || strings.HasPrefix(pkg, folder+"/")
	})
}

func is(folder string) func(string) bool { return func(pkg string) bool { return pkg == folder } }
func in(folder string) func(string) bool { return func(pkg string) bool { return within(pkg, folder) } }

func below(folder string) func(string) bool {
	return func(pkg string) bool { return strings.HasPrefix(pkg, folder+"/") }
}

func nothing(string, string) bool { return false }

func neither(folders ...string) func(string) bool {
	return func(dep string) bool { return !within(dep, folders...) }
}
