// Command durward-build builds a Caddy binary with durward and further plugins in it, with only the Go toolchain.
//
// It reads a manifest, xcaddy.json, whose fields are named like those of xcaddy's Builder, and takes more plugins on
// the command line:
//
//	durward-build --with example.com/plugin@v1.2.3 --with example.com/other=../other
//
// Run inside a checkout of durward it builds that checkout, with the versions that its go.mod and go.sum lock.
// Anywhere else it builds the durward version that the manifest names, or its own version.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

const defaultManifest = "xcaddy.json"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "durward-build:", err)
		os.Exit(1)
	}
}

// run builds the binary that args describe, and writes only progress to stderr.
func run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("durward-build", flag.ContinueOnError)
	flags.SetOutput(stderr)
	manifestPath := flags.String("manifest", defaultManifest, "the build manifest `file`")
	output := flags.String("output", "", "the binary to write (default durward, on Windows durward.exe)")
	var added []addition
	flags.Func("with", "add a plugin: `module[@version][=replacement]`; may be given more than once", func(s string) error {
		a, err := parseAddition(s)
		added = append(added, a)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: plugins are added with --with", flags.Arg(0))
	}

	m, err := loadManifest(*manifestPath)
	if err != nil {
		return err
	}
	if err := m.add(added); err != nil {
		return err
	}
	target := *output
	if target == "" {
		target = "durward"
		if m.targetOS() == "windows" {
			target += ".exe"
		}
	}
	if target, err = filepath.Abs(target); err != nil {
		return fmt.Errorf("resolving --output: %w", err)
	}
	b := builder{manifest: m, output: target, stderr: stderr}
	return b.build(ctx)
}

// addition holds one --with.
type addition struct {
	plugin      plugin
	replacement string
}

func parseAddition(s string) (addition, error) {
	rest, replacement, replaced := strings.Cut(s, "=")
	path, version, versioned := strings.Cut(rest, "@")
	a := addition{plugin: plugin{ModulePath: path, Version: version}}
	if err := a.plugin.check(); err != nil {
		return a, err
	}
	if versioned && version == "" {
		return a, errors.New("the version after @ is empty")
	}
	if !replaced {
		return a, nil
	}
	if replacement == "" {
		return a, errors.New("the replacement after = is empty")
	}
	// Unlike in a manifest, a path on the command line is relative to the working directory.
	if isPath(replacement) {
		abs, err := filepath.Abs(replacement)
		if err != nil {
			return a, fmt.Errorf("resolving the replacement: %w", err)
		}
		replacement = abs
	}
	a.replacement = replacement
	return a, nil
}
