package main

import (
	"bytes"
	"context"
	"encoding/json"
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
	checkout, err := b.findCheckout(ctx)
	if err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "durward-build-"); err != nil {
		return fmt.Errorf("making a build directory: %w", err)
	}
	defer func() {
		if rmErr := os.RemoveAll(b.dir); rmErr != nil && err == nil {
			err = fmt.Errorf("removing the build directory: %w", rmErr)
		}
		if ctx.Err() != nil {
			err = errors.New("interrupted, nothing was built")
		}
	}()

	if err := os.WriteFile(filepath.Join(b.dir, "main.go"), mainSource(b.manifest.Plugins), 0o600); err != nil {
		return fmt.Errorf("writing main.go: %w", err)
	}
	if err := b.writeModule(ctx, checkout); err != nil {
		return err
	}
	if err := b.resolve(ctx, checkout); err != nil {
		return err
	}
	return b.compile(ctx)
}

// findCheckout returns the directory of the durward checkout that contains the working directory, or "".
func (b *builder) findCheckout(ctx context.Context) (string, error) {
	out, err := b.goOutput(ctx, "", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	goMod := strings.TrimSpace(out)
	if goMod == "" || goMod == os.DevNull {
		return "", nil
	}
	mod, err := b.readModFile(ctx, goMod)
	if err != nil {
		return "", err
	}
	if mod.Module.Path != ourModule {
		return "", nil
	}
	return filepath.Dir(goMod), nil
}

// writeModule writes go.mod: the locked versions of the checkout if there is one, then the manifest's settings.
func (b *builder) writeModule(ctx context.Context, checkout string) error {
	goMod := filepath.Join(b.dir, "go.mod")
	edits := []string{"mod", "edit", "-module=caddy"}
	if checkout == "" {
		if err := os.WriteFile(goMod, []byte("module caddy\n\ngo 1.26.0\n"), 0o600); err != nil {
			return fmt.Errorf("writing go.mod: %w", err)
		}
	} else {
		b.say("building the durward of " + checkout)
		for _, name := range []string{"go.mod", "go.sum"} {
			text, err := os.ReadFile(filepath.Join(checkout, name))
			if err != nil {
				return fmt.Errorf("reading the locked versions: %w", err)
			}
			if err := os.WriteFile(filepath.Join(b.dir, name), text, 0o600); err != nil {
				return fmt.Errorf("writing %s: %w", name, err)
			}
		}
		edits = append(edits, "-require="+ourModule+"@v0.0.0", "-replace="+ourModule+"="+checkout)
	}
	if b.manifest.CaddyVersion != "" {
		edits = append(edits, "-require="+caddyModule+"@"+b.manifest.CaddyVersion)
	}
	for _, r := range b.manifest.Replacements {
		edits = append(edits, "-replace="+r.Old+"="+r.New)
	}
	return b.goRun(ctx, edits...)
}

// resolve adds the plugins at their versions and completes go.mod and go.sum.
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
		if err := b.goRun(ctx, slices.Concat([]string{"get"}, b.manifest.ModFlags, []string{"--"}, queries)...); err != nil {
			return err
		}
	}
	b.say("resolving modules")
	if err := b.goRun(ctx, slices.Concat([]string{"mod", "tidy"}, b.manifest.ModFlags)...); err != nil {
		return err
	}
	return b.checkCaddyVersion(ctx)
}

// checkCaddyVersion refuses a build with another Caddy than the manifest names: Go
// silently takes the highest version that any module asks for.
func (b *builder) checkCaddyVersion(ctx context.Context) error {
	if b.manifest.CaddyVersion == "" {
		return nil
	}
	out, err := b.goOutput(ctx, b.dir, "list", "-m", "-f", "{{.Version}}", caddyModule)
	if err != nil {
		return err
	}
	if got := strings.TrimSpace(out); got != b.manifest.CaddyVersion {
		return fmt.Errorf("caddy_version: %s was asked for, but durward or a plugin needs %s", b.manifest.CaddyVersion, got)
	}
	return nil
}

// compile builds beside the output and renames, so that the output is never half a binary.
func (b *builder) compile(ctx context.Context) error {
	b.say("building " + b.output)
	partial := b.output + ".partial"
	args := slices.Concat([]string{"build"}, b.manifest.BuildFlags, []string{"-o", partial, "."})
	if err := b.goRun(ctx, args...); err != nil {
		return errors.Join(err, removeIfThere(partial))
	}
	if err := os.Rename(partial, b.output); err != nil {
		return fmt.Errorf("putting the binary in place: %w", errors.Join(err, removeIfThere(partial)))
	}
	b.say("built " + b.output)
	return nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
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

type modFile struct{ Module struct{ Path string } }

func (b *builder) readModFile(ctx context.Context, path string) (modFile, error) {
	var mod modFile
	out, err := b.goOutput(ctx, "", "mod", "edit", "-json", path)
	if err != nil {
		return mod, err
	}
	if err := json.Unmarshal([]byte(out), &mod); err != nil {
		return mod, fmt.Errorf("reading %s: %w", path, err)
	}
	return mod, nil
}

// goRun runs the Go command in the build directory, its output on stderr.
func (b *builder) goRun(ctx context.Context, args ...string) error {
	cmd := b.goCommand(ctx, b.dir, args...)
	cmd.Stdout = b.stderr
	return finish(cmd, args)
}

func (b *builder) goOutput(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := b.goCommand(ctx, dir, args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	err := finish(cmd, args)
	return out.String(), err
}

func (b *builder) goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Stderr = b.stderr
	// A pure Go build needs no C compiler and runs on any libc. A surrounding go.work must not affect a build that is
	// a module of its own.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if dir != "" {
		if b.manifest.OS != "" {
			cmd.Env = append(cmd.Env, "GOOS="+b.manifest.OS)
		}
		if b.manifest.Arch != "" {
			cmd.Env = append(cmd.Env, "GOARCH="+b.manifest.Arch)
		}
	}
	// The Go command removes its own temporary files when interrupted, not when killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

func finish(cmd *exec.Cmd, args []string) error {
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return errors.New("the Go toolchain is not in PATH: install it from https://go.dev/dl/")
		}
		return fmt.Errorf("running go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

func (b *builder) say(line string) { fmt.Fprintln(b.stderr, "durward-build:", line) }
