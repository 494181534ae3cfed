package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// manifest holds the contents of xcaddy.json. The fields are those of xcaddy's Builder that make sense here. An
// unknown field is refused: otherwise a build would silently lack something, which shows only in production.
type manifest struct {
	CaddyVersion string        // a version of Caddy; "" takes the one to which durward is locked
	Plugins      []plugin      // linked in beside durward
	Replacements []replacement // replace lines of the build's go.mod
	BuildFlags   []string      // for go build
	ModFlags     []string      // for go get and go mod tidy
	OS, Arch     string        // GOOS and GOARCH; "" means this machine's
}

type plugin struct {
	ModulePath string // the imported package
	Version    string // anything `go get` takes; "" leaves the choice to a replacement, or takes the latest
}

// replacement maps module[@version] to module@version or to a directory.
type replacement struct{ Old, New string }

// These patterns keep the Go commands from reading a value as a flag, or as a second word (CWE-88).
var (
	name           = `[A-Za-z0-9][A-Za-z0-9._~/+-]*`
	modulePattern  = regexp.MustCompile(`^` + name + `$`)
	queryPattern   = regexp.MustCompile(`^` + name + `(@` + name + `)?$`)
	versionPattern = regexp.MustCompile(`^(` + name + `)?$`)
	newPattern     = regexp.MustCompile(`^(\.|\.\.|\.\.?/.*|/.*|[A-Za-z]:.*|` + name + `@` + name + `)$`)
	caddyPattern   = regexp.MustCompile(`^(v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?)?$`)
	targetPattern  = regexp.MustCompile(`^[a-z0-9]*$`)
)

// loadManifest reads a manifest. Paths of replacements are relative to its directory.
func loadManifest(path string) (manifest, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return manifest{}, fmt.Errorf("there is no manifest %s: write one ({} is enough) or name it with --manifest", path)
	}
	if err != nil {
		return manifest{}, fmt.Errorf("reading the manifest: %w", err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return manifest{}, fmt.Errorf("resolving the manifest's directory: %w", err)
	}
	m, err := parseManifest(text, dir)
	if err != nil {
		return manifest{}, fmt.Errorf("reading %s: %w", path, err)
	}
	return m, nil
}

// parseManifest reads the manifest's text. Paths of replacements are relative to dir.
func parseManifest(text []byte, dir string) (manifest, error) {
	if _, err := strictjson.Parse(text, strictjson.Limits{}); err != nil {
		return manifest{}, locate(err, text)
	}
	o, err := validate.ParseBody(text, strictjson.Limits{})
	if err != nil {
		return manifest{}, err
	}
	m := manifest{
		CaddyVersion: o.Text("caddy_version", validate.Text{Pattern: caddyPattern}).Value,
		BuildFlags:   readFlags(o, "build_flags"), ModFlags: readFlags(o, "mod_flags"),
		OS: o.Text("os", validate.Text{Pattern: targetPattern}).Value, Arch: o.Text("arch", validate.Text{Pattern: targetPattern}).Value,
	}
	for i, p := range o.Objects("plugins", validate.List{}).Value {
		read := plugin{p.Text("module_path", validate.Text{Flags: validate.Required, Pattern: modulePattern}).Value, p.Text("version", validate.Text{Pattern: versionPattern}).Value}
		if slices.ContainsFunc(m.Plugins, func(other plugin) bool { return other.ModulePath == read.ModulePath }) {
			o.Report(validate.ValueError, "it is named twice", "plugins", i, "module_path")
		}
		m.Plugins = append(m.Plugins, read)
		p.Only()
	}
	for i, r := range o.Objects("replacements", validate.List{}).Value {
		read := replacement{r.Text("old", validate.Text{Flags: validate.Required, Pattern: queryPattern}).Value, r.Text("new", validate.Text{Flags: validate.Required, Pattern: newPattern}).Value}
		if slices.ContainsFunc(m.Replacements, func(other replacement) bool { return other.Old == read.Old }) {
			o.Report(validate.ValueError, "it is replaced twice", "replacements", i, "old")
		}
		if isPath(read.New) && !filepath.IsAbs(read.New) {
			read.New = filepath.Join(dir, read.New)
		}
		m.Replacements = append(m.Replacements, read)
		r.Only()
	}
	o.Only()
	return m, o.Err()
}

// locate adds to a syntax error its line, and what stands there.
func locate(err error, text []byte) error {
	var syntax *strictjson.SyntaxError
	if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset >= len(text) {
		return err
	}
	at, _, _ := bytes.Cut(text[syntax.Offset:min(len(text), syntax.Offset+40)], []byte("\n"))
	return fmt.Errorf("line %d, at %s: %w", 1+bytes.Count(text[:syntax.Offset], []byte("\n")), bytes.ToValidUTF8(at, nil), err)
}

var (
	// flagPattern is the pattern of a flag that splits at spaces. A value with spaces is quoted: -ldflags="-s -w".
	flagPattern = regexp.MustCompile(`(?:[^\s"']|"[^"]*"|'[^']*')+`)
	// quotedPattern is the pattern of such a value. Quotes of the other kind in it are a part of it, and for the Go command:
	// -ldflags="-X 'main.title=two words'".
	quotedPattern = regexp.MustCompile(`"([^"]*)"|'([^']*)'`)
)

// readFlags reads a line of flags. go build would take a bare word for a package to build.
func readFlags(o *validate.Object, name string) (flags []string) {
	line := o.Text(name, validate.Text{}).Value
	for _, word := range flagPattern.FindAllString(line, -1) {
		word = quotedPattern.ReplaceAllString(word, "$1$2")
		if !strings.HasPrefix(word, "-") {
			o.Report(validate.ValueError, fmt.Sprintf("%q is not a flag; write -name=value", word), name)
		}
		flags = append(flags, word)
	}
	if rest := flagPattern.ReplaceAllString(line, ""); strings.TrimSpace(rest) != "" {
		o.Report(validate.ValueError, "a quote is not closed", name)
	}
	return flags
}

// add puts a plugin of the command line into the manifest. It takes precedence.
func (m *manifest) add(p plugin, replacedBy string) {
	m.Plugins = append(slices.DeleteFunc(m.Plugins, func(other plugin) bool { return other.ModulePath == p.ModulePath }), p)
	if replacedBy != "" {
		m.Replacements = append(slices.DeleteFunc(m.Replacements, func(r replacement) bool { return r.Old == p.ModulePath }), replacement{p.ModulePath, replacedBy})
	}
}

// decides reports whether the manifest determines the version of a module that is built.
func (m manifest) decides(module string) bool {
	return slices.ContainsFunc(m.Plugins, func(p plugin) bool { return p.ModulePath == module && p.Version != "" }) ||
		slices.ContainsFunc(m.Replacements, func(r replacement) bool { return r.Old == module })
}

func isPath(s string) bool { return newPattern.MatchString(s) && !queryPattern.MatchString(s) }
