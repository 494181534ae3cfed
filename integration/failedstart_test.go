package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFailedStartSaysWhy: the last line of a start that fails is the one that says why, whatever the log's writer.
func TestFailedStartSaysWhy(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	const starts = 10
	for _, command := range []string{"run", "validate"} {
		for n := range starts {
			config := filepath.Join(home, fmt.Sprintf("%s-%d.caddyfile", command, n))
			text := fmt.Sprintf("{\n\tadmin off\n\tpersist_config off\n\tlog {\n\t\toutput durward\n\t}\n\tdurward {\n\t\tstore sqlite %s\n\t\tidentity dev\n\t\tcoordinate valkey {file./nowhere}\n\t}\n}\n\nhttp://127.0.0.1:%s {\n\tdurward\n}\n",
				filepath.Join(home, "data", "durward.db"), freePort(t))
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			failing := exec.CommandContext(t.Context(), durward(t), command, "--config", config, "--adapter", "caddyfile")
			failing.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home)
			output, err := failing.CombinedOutput()
			if exitCode(err) == 0 {
				t.Fatalf("%s accepts it: %v\n%s", command, err, output)
			}
			lines := strings.Split(strings.TrimSpace(string(output)), "\n")
			if last := lines[len(lines)-1]; !strings.Contains(last, "coordinate valkey") || !strings.Contains(last, "/nowhere") {
				t.Errorf("%s, start %d: the last line is %s", command, n, last)
			}
		}
	}
}
