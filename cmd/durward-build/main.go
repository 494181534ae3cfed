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
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
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
	var m manifest
	var added []func()
	flags.Func("with", "add a plugin: `module[@version][=replacement]`; may be given more than once", func(s string) error {
		p, replacedBy, err := parseWith(s)
		added = append(added, func() { m.add(p, replacedBy) })
		return err
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: plugins are added with --with", flags.Arg(0))
	}

	var err error
	if m, err = loadManifest(*manifestPath); err != nil {
		return err
	}
	for _, add := range added { // they take precedence over the manifest's
		add()
	}
	target := *output
	if target == "" {
		target = "durward"
		if cmp.Or(m.OS, runtime.GOOS) == "windows" {
			target += ".exe"
		}
	}
	if target, err = filepath.Abs(target); err != nil {
		return fmt.Errorf("resolving --output: %w", err)
	}
	b := builder{manifest: m, output: target, stderr: stderr}
	return b.build(ctx)
}

// parseWith reads a --with. Unlike in a manifest, a directory is relative to the working directory.
func parseWith(s string) (p plugin, replacedBy string, err error) {
	query, replacedBy, replaced := strings.Cut(s, "=")
	if !queryPattern.MatchString(query) || replaced && !newPattern.MatchString(replacedBy) {
		return p, "", errors.New("want module[@version], and after = a directory (./dir, ../dir, /dir) or module@version")
	}
	p.ModulePath, p.Version, _ = strings.Cut(query, "@")
	if isPath(replacedBy) {
		replacedBy, err = filepath.Abs(replacedBy)
	}
	return p, replacedBy, err
}
