//go:build !nodev

package commands

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestConnectWithoutAServer checks that the command's error says what to write.
func TestConnectWithoutAServer(t *testing.T) {
	for _, arguments := range [][]string{{"connect"}, {"connect", "--as", "alice@example.test"}, {"connect", "demo", "other"}} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], arguments...)
		cmd.Env = append(os.Environ(), asBinary+"=1", "HOME="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "name one server, such as `durward connect demo --as alice@example.test`") {
			t.Errorf("%q: %v\n%s", arguments, err, out)
		}
	}
}
