// Command release makes a release of the commit that is checked out: binaries, archives, packages, lists of components,
// checksums, and their signature. The same commit and the same version of Go make the same bytes, wherever and whenever it
// runs. It is a module of its own, so that nothing of it is linked into the gateway. `make release` runs it.
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
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release describes what is released.
type release struct {
	root    string    // of the checkout
	out     string    // where files go
	version string    // v1.2.3
	commit  string    // in full
	time    time.Time // of the commit
}

// bare returns the version as file names and packages have it.
func (r release) bare() string { return strings.TrimPrefix(r.version, "v") }

// versionPattern matches a semantic version without build metadata, which not every package format has.
var versionPattern = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

func run(ctx context.Context, args []string, stderr io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var r release
	flags.StringVar(&r.root, "root", "../..", "the checkout")
	flags.StringVar(&r.out, "out", "", "the `directory` to write to, which is emptied (default bin/release of the checkout)")
	flags.StringVar(&r.version, "version", "", "the version, `v1.2.3` (default the commit's tag, otherwise v0.0.0-TIME-COMMIT)")
	dirty := flags.Bool("dirty", false, "release what is there, although it is not what was committed: for a look")
	only := flags.String("only", "", "one `platform` alone, such as linux/amd64")
	key := flags.String("key", os.Getenv("MINISIGN_KEY"), "minisign's secret key `file`, default MINISIGN_KEY; its password is in MINISIGN_PASSWORD")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	// What is signed, and whether it can be, is known before minutes of building.
	sign, err := loadSigner(*key, os.Getenv("MINISIGN_PASSWORD"))
	if err != nil {
		return err
	}
	if err := r.describe(ctx, *dirty); err != nil {
		return err
	}
	all := platforms
	if *only != "" {
		all = slices.DeleteFunc(slices.Clone(platforms), func(p platform) bool { return p.String() != *only })
	}
	if len(all) == 0 {
		return fmt.Errorf("-only %s: releases are for %v", *only, platforms)
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil { //nolint:gosec // everybody may read a release
		return err
	}
	return r.make(ctx, all, sign, stderr)
}

// describe completes the release from the checkout.
func (r *release) describe(ctx context.Context, dirty bool) (err error) {
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	if r.out == "" {
		r.out = filepath.Join(r.root, "bin", "release")
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	changed, err := r.git(ctx, "status", "--porcelain")
	switch {
	case err != nil:
		return err
	case changed != "" && !dirty:
		return fmt.Errorf("the checkout is not what was committed: commit or remove these, or take -dirty for a look\n%s", changed)
	}
	if r.commit, err = r.git(ctx, "rev-parse", "HEAD"); err != nil {
		return err
	}
	committed, err := r.git(ctx, "show", "--no-patch", "--format=%ct", "HEAD")
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(committed, 10, 64)
	if err != nil {
		return fmt.Errorf("reading the commit's time: %w", err)
	}
	r.time = time.Unix(seconds, 0).UTC()
	if r.version == "" {
		if r.version, err = r.git(ctx, "describe", "--tags", "--exact-match", "--match", "v*", "HEAD"); err != nil {
			r.version = "v0.0.0-" + r.time.Format("20060102150405") + "-" + r.commit[:12]
		}
	}
	if !versionPattern.MatchString(r.version) {
		return fmt.Errorf("the version %q is not like v1.2.3 or v1.2.3-rc.1", r.version)
	}
	return nil
}

// make writes everything.
func (r release) make(ctx context.Context, all []platform, sign signer, stderr io.Writer) error {
	work, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	var binaries []binary
	for _, p := range all {
		fmt.Fprintf(stderr, "release: building %s for %s\n", r.version, p)
		b, err := r.build(ctx, p, filepath.Join(work, p.String(), "durward"))
		if err != nil {
			return fmt.Errorf("building for %s: %w", p, err)
		}
		binaries = append(binaries, b)
	}
	texts, err := r.texts(ctx, all, work)
	if err != nil {
		return err
	}
	for _, b := range binaries {
		fmt.Fprintf(stderr, "release: packing %s\n", b.platform)
		if err := r.pack(b, texts); err != nil {
			return fmt.Errorf("packing %s: %w", b.platform, err)
		}
	}
	sums, err := r.checksums()
	if err != nil {
		return err
	}
	if sign == nil {
		fmt.Fprintln(stderr, "release: not signed: name minisign's secret key in MINISIGN_KEY, and its password in MINISIGN_PASSWORD")
	} else {
		signature, err := sign(sums, r.time, sumsFile)
		if err != nil {
			return fmt.Errorf("signing: %w", err)
		}
		if err := r.write(sumsFile+".minisig", signature); err != nil {
			return err
		}
	}
	fmt.Fprintf(stderr, "release: %s is in %s\n", r.version, r.out)
	return nil
}

// pack writes the files of one platform.
func (r release) pack(b binary, texts texts) error {
	components, err := r.components(b)
	if err != nil {
		return err
	}
	if err := r.write(r.name(b.platform)+".cdx.json", components); err != nil {
		return err
	}
	archive, err := r.archive(b, texts, components)
	if err != nil {
		return err
	}
	if err := r.write(r.name(b.platform)+".tar.gz", archive); err != nil {
		return err
	}
	if b.os != "linux" {
		return nil
	}
	for _, format := range formats {
		name, packed, err := r.packageOf(format, b, texts, components)
		if err != nil {
			return fmt.Errorf("%s: %w", format.name, err)
		}
		if err := r.write(name, packed); err != nil {
			return err
		}
	}
	return nil
}

// name returns the name of a platform's files, without what they end in.
func (r release) name(p platform) string { return "durward_" + r.bare() + "_" + p.os + "_" + p.arch }

func (r release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644) //nolint:gosec // everybody may read a release
}
