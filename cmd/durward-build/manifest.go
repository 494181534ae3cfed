package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

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
	modulePattern  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~/+-]*$`)
	versionPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~/+-]*$`)
	caddyPattern   = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	targetPattern  = regexp.MustCompile(`^[a-z0-9]*$`)
)

func loadManifest(path string) (manifest, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
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
	root, err := strictjson.Parse(text, strictjson.Limits{})
	if err != nil {
		return manifest{}, locate(err, text)
	}
	var m manifest
	err = readObject(root, "the manifest", map[string]func(strictjson.Value, string) error{
		"caddy_version": stringInto(&m.CaddyVersion),
		"plugins":       listInto(&m.Plugins, readPlugin),
		"replacements":  listInto(&m.Replacements, readReplacement),
		"build_flags":   flagsInto(&m.BuildFlags),
		"mod_flags":     flagsInto(&m.ModFlags),
		"os":            stringInto(&m.OS),
		"arch":          stringInto(&m.Arch),
	})
	if err != nil {
		return manifest{}, err
	}
	for i, r := range m.Replacements {
		if isPath(r.New) && !filepath.IsAbs(r.New) {
			m.Replacements[i].New = filepath.Join(dir, r.New)
		}
	}
	return m, m.check()
}

// locate adds to a syntax error its place in the text, and the field there.
func locate(err error, text []byte) error {
	var syntax *strictjson.SyntaxError
	if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset >= len(text) {
		return err
	}
	line := 1 + bytes.Count(text[:syntax.Offset], []byte("\n"))
	at := text[syntax.Offset:]
	if end := bytes.IndexAny(at, ":\r\n"); end > 0 {
		at = at[:end]
	}
	return fmt.Errorf("line %d, at %s: %w", line, bytes.ToValidUTF8(at[:min(len(at), 40)], nil), err)
}

func (m manifest) check() error {
	if m.CaddyVersion != "" && !caddyPattern.MatchString(m.CaddyVersion) {
		return fmt.Errorf("caddy_version: %q is not a version like v2.11.9", m.CaddyVersion)
	}
	if !targetPattern.MatchString(m.OS) {
		return fmt.Errorf("os: %q is not a GOOS", m.OS)
	}
	if !targetPattern.MatchString(m.Arch) {
		return fmt.Errorf("arch: %q is not a GOARCH", m.Arch)
	}
	plugins := map[string]bool{}
	for i, p := range m.Plugins {
		if err := p.check(); err != nil {
			return fmt.Errorf("plugins[%d].%w", i, err)
		}
		if plugins[p.ModulePath] {
			return fmt.Errorf("plugins[%d].module_path: %s is named twice", i, p.ModulePath)
		}
		plugins[p.ModulePath] = true
	}
	replaced := map[string]bool{}
	for i, r := range m.Replacements {
		if err := r.check(); err != nil {
			return fmt.Errorf("replacements[%d].%w", i, err)
		}
		if replaced[r.Old] {
			return fmt.Errorf("replacements[%d].old: %s is replaced twice", i, r.Old)
		}
		replaced[r.Old] = true
	}
	return nil
}

func (p plugin) check() error {
	if !modulePattern.MatchString(p.ModulePath) {
		return fmt.Errorf("module_path: %q is not a module path", p.ModulePath)
	}
	if p.Version != "" && !versionPattern.MatchString(p.Version) {
		return fmt.Errorf("version: %q is not a module version", p.Version)
	}
	return nil
}

func (r replacement) check() error {
	if !isModuleQuery(r.Old) {
		return fmt.Errorf("old: %q is not a module path, with or without @version", r.Old)
	}
	if !isPath(r.New) && (!isModuleQuery(r.New) || !strings.Contains(r.New, "@")) {
		return fmt.Errorf("new: %q is neither a directory (./dir, ../dir, /dir) nor module@version", r.New)
	}
	return nil
}

// add puts the command line's plugins into the manifest; they take precedence.
func (m *manifest) add(added []addition) error {
	for _, a := range added {
		m.Plugins = append(slices.DeleteFunc(m.Plugins, func(p plugin) bool { return p.ModulePath == a.plugin.ModulePath }), a.plugin)
		if a.replacement != "" {
			m.Replacements = append(
				slices.DeleteFunc(m.Replacements, func(r replacement) bool { return r.Old == a.plugin.ModulePath }),
				replacement{Old: a.plugin.ModulePath, New: a.replacement})
		}
	}
	return m.check()
}

// decides reports whether the manifest determines the version of module that is built.
func (m manifest) decides(module string) bool {
	return slices.ContainsFunc(m.Plugins, func(p plugin) bool { return p.ModulePath == module && p.Version != "" }) ||
		slices.ContainsFunc(m.Replacements, func(r replacement) bool { return r.Old == module })
}

func (m manifest) targetOS() string {
	if m.OS != "" {
		return m.OS
	}
	return runtime.GOOS
}

func isPath(s string) bool {
	return filepath.IsAbs(s) || s == "." || s == ".." || strings.HasPrefix(s, "./") || strings.HasPrefix(s, "../")
}

func isModuleQuery(s string) bool {
	path, version, versioned := strings.Cut(s, "@")
	return modulePattern.MatchString(path) && (!versioned || versionPattern.MatchString(version))
}
