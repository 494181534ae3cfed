// Command run measures the gateway against plain Caddy, nginx and the least a net/http proxy can do, side by side on
// one machine, and prints one line for each figure that the project promises, beginning with its number. It exits with
// 1 when a figure that it measured misses its gate.
//
// It builds everything, starts a gateway with an identity provider, servers and connections of its own, and needs
// Linux, two processors, taskset and python3; nginx is optional. docs/performance.md explains the figures and how to
// read them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options holds the options of the command line.
type options struct {
	bench   string // the directory of the rig
	rounds  int
	seconds float64
	only    string
	bound   time.Duration
	profile string
	body    int
	scale   int
	against string
}

func main() {
	var o options
	flag.StringVar(&o.bench, "rig", "integration/bench", "directory of the rig")
	flag.IntVar(&o.rounds, "rounds", 5, "interleaved rounds of each comparison")
	flag.Float64Var(&o.seconds, "secs", 2, "seconds of each sample but those of P3")
	flag.StringVar(&o.only, "only", "", "figures to measure, such as P1,P8 (default: all but P6)")
	flag.IntVar(&o.scale, "p6", 1_000_000, "policies, servers, keys and live counters of P6")
	flag.DurationVar(&o.bound, "bound", 30*time.Minute, "give up after this time, building not counted")
	flag.StringVar(&o.profile, "profile", "", "instead of measuring, write profiles of the gateway under load to this directory")
	flag.IntVar(&o.body, "body", 0, "bytes of each call that is profiled (default: 220)")
	flag.StringVar(&o.against, "against", "", "the path of another durward `binary`, which takes turns with this one and plain Caddy")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) error {
	if runtime.NumCPU() < 2 {
		return errors.New("two processors are needed: one for what is measured, one for the load")
	}
	for _, tool := range []string{"taskset", "python3"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("looking for a tool: %w", err)
		}
	}
	wanted, err := selectFigures(o.only)
	if err != nil {
		return err
	}
	if o.bench, err = filepath.Abs(o.bench); err != nil {
		return err
	}
	if err := build(ctx, o.bench); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.bound)
	defer cancel()
	// From here on this process counts as load.
	if err := exec.CommandContext(ctx, "taskset", "-a", "-c", "-p", "1", strconv.Itoa(os.Getpid())).Run(); err != nil {
		return fmt.Errorf("pinning the load: %w", err)
	}
	directory, err := os.MkdirTemp("", "durward-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	b, err := newBench(ctx, o, directory, gatewayAddress)
	if err != nil {
		return err
	}
	defer b.issuer.close()
	if o.against != "" {
		if err := b.addOther(ctx); err != nil {
			return fmt.Errorf("setting up %s: %w", o.against, err)
		}
		defer b.other.issuer.close()
	}
	if o.profile != "" {
		return b.profile(ctx, o.profile, wanted, out)
	}
	measured := b.measure(ctx, wanted)
	fmt.Fprintln(out, "#", machine(o))
	if b.other != nil {
		reportAgainst(out, wanted, measured)
	}
	return report(out, wanted, measured)
}

// addOther sets up the gateway of -against, with a store of its own.
func (b *bench) addOther(ctx context.Context) error {
	directory := filepath.Join(b.directory, "other")
	if err := os.Mkdir(directory, 0o700); err != nil {
		return err
	}
	other, err := prepareBench(b.options, directory, otherAddress)
	if err != nil {
		return err
	}
	if other.binary, err = filepath.Abs(b.options.against); err != nil {
		return err
	}
	b.other = other
	return other.fill(ctx)
}

// build compiles the programs to compare. Its output is the compiler's.
func build(ctx context.Context, bench string) error {
	command := exec.CommandContext(ctx, filepath.Join(bench, "build"))
	command.Stdout, command.Stderr = os.Stderr, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("building the rig: %w", err)
	}
	return nil
}

// machine returns the date and the kind of machine of the measurement, without naming the machine.
func machine(o options) string {
	model := "unknown processor"
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	load, _, _ := strings.Cut(readFile("/proc/loadavg"), " ")
	return fmt.Sprintf("%s, %d x %s, %s, load %s, %d rounds of %g s", time.Now().Format(time.DateOnly), runtime.NumCPU(), model,
		runtime.Version(), load, o.rounds, o.seconds)
}

func readFile(path string) string {
	content, _ := os.ReadFile(path)
	return string(content)
}
