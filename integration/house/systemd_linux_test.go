package house

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSystemdUnit checks that systemd knows every line of the unit, and finds it hardened. .ci/setup installs the
// program; it needs no systemd that runs.
func TestSystemdUnit(t *testing.T) {
	const program = "systemd-analyze"
	if _, err := exec.LookPath(program); err != nil {
		t.Fatalf("%v: `make setup` installs it on Debian, or names it", err)
	}
	// The unit's program is not installed on the machine that tests it.
	unit := strings.ReplaceAll(read(t, "../../deploy/systemd/durward.service"), "/usr/local/bin/durward", "/bin/true")
	file := filepath.Join(t.TempDir(), "durward.service")
	if err := os.WriteFile(file, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range [][]string{{"verify", "--man=no", file}, {"security", "--offline=yes", "--threshold=25", "--no-pager", file}} {
		out, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput()
		if err != nil || arguments[0] == "verify" && len(bytes.TrimSpace(out)) > 0 {
			t.Errorf("%s %s: %v\n%s", program, arguments[0], err, out)
		}
	}
}

// TestSystemdInstall checks that the unit and the page of the first start install it by the same commands.
func TestSystemdInstall(t *testing.T) {
	page, commands := read(t, "../../docs/production.md"), 0
	for line := range strings.Lines(read(t, "../../deploy/systemd/durward.service")) {
		command, indented := strings.CutPrefix(line, "#   ")
		if !indented {
			continue
		}
		if commands++; !strings.Contains(page, strings.TrimSpace(command)) {
			t.Errorf("docs/production.md lacks %s", command)
		}
	}
	if commands < 5 {
		t.Errorf("the unit has %d lines of commands", commands)
	}
}
