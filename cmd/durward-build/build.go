package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
)

const (
	ourModule   = "github.com/durward-gateway/durward"
	caddyModule = "github.com/caddyserver/caddy/v2"
)

type builder struct {
	manifest manifest
	output   string // absolute
	stderr   io.Writer
	dir      string // the module that is built, temporary
}

// build writes a module that imports all requested packages, lets the Go toolchain resolve and build it, and removes
// it again, also when ctx ends.
func (b *builder) build(ctx context.Context) (err error) {
	if b.dir, err = os.MkdirTemp("", "durward-build-"); err != nil {
		return fmt.Errorf("making a build directory: %w", err)
	}
	defer func() {
		if ctx.Err() != nil {
			err = errors.New("interrupted, nothing was built")
		}
		err = cmp.Or(err, os.RemoveAll(b.dir))
	}()
	checkout, err := b.findCheckout(ctx)
	if err != nil {
		return err
	}
	if err := b.writeModule(ctx, checkout); err != nil {
		return err
	}
	if err := b.resolve(ctx, checkout); err != nil {
		return err
	}
	return b.compile(ctx)
}

// compile builds beside the output and renames. The Go command replaces a file by a copy when its own is in another file
// system, so that a full disk would leave no binary. An output that is a directory would get one inside it.
func (b *builder) compile(ctx context.Context) error {
	b.say("building " + b.output)
	partial := b.output + ".partial"
	err := b.run(ctx, "build", b.manifest.BuildFlags, "-o", partial, ".")
	if err == nil {
		err = os.Rename(partial, b.output)
	}
	if err != nil {
		_ = os.Remove(partial) // it may not be there
		return err
	}
	b.say("built " + b.output)
	return nil
}

// findCheckout returns the directory of the durward checkout that contains the working directory, or "".
func (b *builder) findCheckout(ctx context.Context) (string, error) {
	out, err := b.outputOf(ctx, "", "env", "GOMOD")
	if err != nil || out == "" || out == os.DevNull {
		return "", err
	}
	text, err := os.ReadFile(out)
	if err != nil || modfile.ModulePath(text) != ourModule {
		return "", err
	}
	return filepath.Dir(out), nil
}

// writeModule writes the main package and go.mod: the locked versions of the checkout if there is one, then the
// manifest's settings.
func (b *builder) writeModule(ctx context.Context, checkout string) error {
	files := map[string][]byte{"main.go": mainSource(b.manifest.Plugins), "go.mod": []byte("module caddy\n\ngo 1.26.0\n")}
	edits := []string{"edit", "-module=caddy"}
	if checkout != "" {
		b.say("building the durward of " + checkout)
		for _, name := range []string{"go.mod", "go.sum"} {
			text, err := os.ReadFile(filepath.Join(checkout, name))
			if err != nil {
				return fmt.Errorf("reading the locked versions: %w", err)
			}
			files[name] = text
		}
		edits = append(edits, "-require="+ourModule+"@v0.0.0", "-replace="+ourModule+"="+checkout)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(b.dir, name), text, 0o600); err != nil {
			return fmt.Errorf("writing the module: %w", err)
		}
	}
	if b.manifest.CaddyVersion != "" {
		edits = append(edits, "-require="+caddyModule+"@"+b.manifest.CaddyVersion)
	}
	for _, r := range b.manifest.Replacements {
		edits = append(edits, "-replace="+r.Old+"="+r.New)
	}
	return b.run(ctx, "mod", edits)
}

// resolve adds the plugins at their versions and completes go.mod and go.sum. It refuses a build with another Caddy than
// the manifest names: Go silently takes the highest version that any module asks for.
func (b *builder) resolve(ctx context.Context, checkout string) error {
	var queries []string
	for _, p := range b.manifest.Plugins {
		if p.Version != "" && (p.ModulePath != ourModule || checkout == "") {
			queries = append(queries, p.ModulePath+"@"+p.Version)
		}
	}
	if checkout == "" && !b.manifest.decides(ourModule) {
		queries = append(queries, ourModule+"@"+ownVersion())
	}
	if len(queries) > 0 {
		b.say("adding " + strings.Join(queries, " "))
		if err := b.run(ctx, "get", b.manifest.ModFlags, append([]string{"--"}, queries...)...); err != nil {
			return err
		}
	}
	b.say("resolving modules")
	if err := b.run(ctx, "mod", []string{"tidy"}, b.manifest.ModFlags...); err != nil {
		return err
	}
	got, err := b.outputOf(ctx, b.dir, "list", "-m", "-f", "{{.Version}}", caddyModule)
	if want := b.manifest.CaddyVersion; err == nil && want != "" && got != want {
		return fmt.Errorf("caddy_version: %s was asked for, but durward or a plugin needs %s", want, got)
	}
	return err
}

// mainSource returns durward's main with the plugins linked in.
func mainSource(plugins []plugin) []byte {
	var src bytes.Buffer
	src.WriteString("package main\n\nimport (\n\t_ \"time/tzdata\"\n\n")
	fmt.Fprintf(&src, "\t_ %q\n\t_ %q\n\t%q\n", caddyModule+"/modules/standard", ourModule, ourModule+"/cmd/commands")
	for _, p := range plugins {
		if p.ModulePath != ourModule {
			fmt.Fprintf(&src, "\t_ %q\n", p.ModulePath)
		}
	}
	src.WriteString(")\n\nfunc main() { commands.Main(\"\") }\n")
	return src.Bytes()
}

// ownVersion returns the version of durward that this command was built from, so that
// `go run .../cmd/durward-build@v1.2.3` builds durward v1.2.3.
func ownVersion() string {
	info, ok := debug.ReadBuildInfo()
	if ok && info.Main.Path == ourModule && strings.HasPrefix(info.Main.Version, "v") && !strings.Contains(info.Main.Version, "+") {
		return info.Main.Version
	}
	return "latest"
}

// run runs the Go command in the build directory, its output on stderr.
func (b *builder) run(ctx context.Context, command string, flags []string, args ...string) error {
	return b.goCommand(ctx, b.dir, b.stderr, slices.Concat([]string{command}, flags, args))
}

// outputOf returns the output of the Go command, without the line end.
func (b *builder) outputOf(ctx context.Context, dir string, args ...string) (string, error) {
	var out bytes.Buffer
	err := b.goCommand(ctx, dir, &out, args)
	return strings.TrimSpace(out.String()), err
}

func (b *builder) goCommand(ctx context.Context, dir string, stdout io.Writer, args []string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, stdout, b.stderr
	// A pure Go build needs no C compiler and runs on any libc. A surrounding go.work must not affect a build that is
	// a module of its own.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if dir != "" && b.manifest.OS != "" {
		cmd.Env = append(cmd.Env, "GOOS="+b.manifest.OS)
	}
	if dir != "" && b.manifest.Arch != "" {
		cmd.Env = append(cmd.Env, "GOARCH="+b.manifest.Arch)
	}
	// The Go command removes its own temporary files when interrupted, not when killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("the Go toolchain is not in PATH: install it from https://go.dev/dl/")
	}
	if err != nil {
		return fmt.Errorf("running go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

func (b *builder) say(line string) { fmt.Fprintln(b.stderr, "durward-build:", line) }
