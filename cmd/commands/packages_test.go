package commands

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

func TestBinarySwappersAreReplaced(t *testing.T) {
	for _, name := range binarySwappers {
		t.Run(name, func(t *testing.T) {
			ran := false
			root := &cobra.Command{Use: "durward", SilenceErrors: true, SilenceUsage: true}
			root.AddCommand(&cobra.Command{
				Use:  name + " <packages...>",
				RunE: func(*cobra.Command, []string) error { ran = true; return nil },
			})
			replaceBinarySwappers(root)

			root.SetArgs([]string{name, "example.com/plugin"})
			if err := root.Execute(); !errors.Is(err, errBinarySwap) {
				t.Errorf("%s answered %v, want the explanation", name, err)
			}
			if ran {
				t.Errorf("%s ran Caddy's own command", name)
			}
		})
	}
}

func TestOtherCommandsAreLeftAlone(t *testing.T) {
	ran := false
	root := &cobra.Command{Use: "durward"}
	root.AddCommand(&cobra.Command{Use: "run", RunE: func(*cobra.Command, []string) error { ran = true; return nil }})
	replaceBinarySwappers(root)

	root.SetArgs([]string{"run"})
	if err := root.Execute(); err != nil || !ran {
		t.Errorf("run: ran=%v, err=%v", ran, err)
	}
}

// asBinary makes this test's binary the gateway's command line.
const asBinary = "DURWARD_TEST_COMMAND_LINE"

func commandLine(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asBinary+"=1", "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{}, {"--help"}, {"-h"}, {"help"}} {
		out := commandLine(t, args...)
		for _, name := range binarySwappers {
			if strings.Contains(out, name) {
				t.Errorf("%q advertises %s:\n%s", args, name, out)
			}
		}
		if strings.Contains(out, "$ caddy") || !strings.Contains(out, "$ durward reload") || !strings.Contains(out, "\n  run ") {
			t.Errorf("%q:\n%s", args, out)
		}
	}
	for _, name := range binarySwappers {
		for _, args := range [][]string{{name, "--help"}, {"help", name}} {
			out := commandLine(t, args...)
			if !strings.HasPrefix(out, "not available: ") || strings.Contains(out, "EXPERIMENTAL") || strings.Contains(out, "keep-backup") || strings.Contains(out, "package...") {
				t.Errorf("%q:\n%s", args, out)
			}
		}
	}
	if out := commandLine(t, "reload", "--help"); !strings.Contains(out, "--config") {
		t.Errorf("reload --help:\n%s", out)
	}
}

// TestHelpFits checks that the text of each command's help fits a usual terminal.
func TestHelpFits(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	long, found := regexp.MustCompile("(?s)Long: `(.*?)`"), 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range long.FindAllSubmatch(source, -1) {
			found++
			for line := range strings.Lines(string(text[1])) {
				if utf8.RuneCountInString(strings.TrimSpace(line)) > 95 {
					t.Errorf("%s: the help has a line of %d characters: %s", file, utf8.RuneCountInString(line), line)
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("%d texts are found", found)
	}
}

func TestVersion(t *testing.T) {
	for _, arg := range []string{"version", "--version"} {
		if out := commandLine(t, arg); !strings.HasPrefix(out, "durward v1.2.3, Caddy") || // with its version, which a test's binary does not know everywhere
			strings.Count(out, "\n") != 1 {
			t.Errorf("%s: %q", arg, out)
		}
	}
	for name, c := range map[string]struct {
		info *debug.BuildInfo
		want string
	}{
		"none":                  {nil, "(devel)"},
		"release":               {&debug.BuildInfo{Main: debug.Module{Path: ourModule, Version: "v1.2.3"}}, "v1.2.3"},
		"checkout":              {&debug.BuildInfo{Main: debug.Module{Path: ourModule, Version: "(devel)"}}, "(devel)"},
		"custom":                {&debug.BuildInfo{Main: debug.Module{Path: "caddy", Version: "(devel)"}, Deps: []*debug.Module{{Path: "example.com/a", Version: "v9.0.0"}, {Path: ourModule, Version: "v1.2.3"}}}, "v1.2.3"},
		"custom, of a checkout": {&debug.BuildInfo{Main: debug.Module{Path: "caddy"}, Deps: []*debug.Module{{Path: ourModule, Version: "v0.0.0", Replace: &debug.Module{Path: "/src"}}}}, "(devel)"},
		"custom, of a fork":     {&debug.BuildInfo{Deps: []*debug.Module{{Path: ourModule, Version: "v1.2.3", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.2.4"}}}}, "v1.2.4"},
	} {
		if got := recordedVersion(c.info, c.info != nil); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
