package integration

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// filesIn returns the files below a directory, each with a digest of its contents.
func filesIn(t *testing.T, directory string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			found[path] = "a directory"
			return err
		}
		content, err := os.ReadFile(path)
		found[path] = fmt.Sprintf("%x", sha256.Sum256(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestValidateChangesNothing checks that `validate` and `doctor` load a configuration as a start does, and leave no
// file behind or changed, before the first start and after it. `validate` ends in one plain line.
func TestValidateChangesNothing(t *testing.T) {
	t.Parallel()
	home, state := t.TempDir(), t.TempDir()
	for _, identity := range []string{"dev", "oidc https://id.example.com"} {
		t.Run(strings.Fields(identity)[0], func(t *testing.T) {
			port := freePort(t)
			config := filepath.Join(state, strings.Fields(identity)[0]+".caddyfile")
			text := fmt.Sprintf("{\n\tadmin unix/%[1]s/admin.sock\n\tpersist_config off\n\tlog {\n\t\toutput durward\n\t}\n\tlog access {\n\t\toutput file %[1]s/logs/deep/access.log\n\t}\n"+
				"\tdurward {\n\t\tpublic_url http://127.0.0.1:%[2]s\n\t\tstore sqlite %[1]s/data-%[2]s/durward.db\n\t\tmaster_key {env.DURWARD_KEY}\n\t\tidentity %[3]s\n\t}\n}\n\nhttp://127.0.0.1:%[2]s {\n\tbind 127.0.0.1\n\tdurward\n}\n", state, port, identity)
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			env := []string{"DURWARD_KEY=8f0c4be1d35a97624e1b08c7d92fa6530b7ce4189d2f63a5c01e7b94f8d6325a", "TMPDIR=" + home}
			unchanged := func() {
				t.Helper()
				before := filesIn(t, home)
				maps.Copy(before, filesIn(t, state))
				for _, command := range []string{"validate", "doctor"} {
					run := exec.CommandContext(t.Context(), durward(t), command, "--config", config)
					run.Env = append(append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home), env...)
					output, err := run.CombinedOutput()
					if lines := strings.Split(strings.TrimSpace(string(output)), "\n"); command == "validate" && (err != nil || lines[len(lines)-1] != "Valid configuration") {
						t.Errorf("%v: %s", err, output)
					}
				}
				after := filesIn(t, home)
				maps.Copy(after, filesIn(t, state))
				if diff := cmp.Diff(before, after); diff != "" {
					t.Error(diff)
				}
			}
			unchanged()
			gateway := startProcess(t, home, env, durward(t), "run", "--config", config)
			gateway.waitFor(t, "http://127.0.0.1:"+port+"/readyz")
			gateway.stop(t)
			// Data that a gateway could not store before it ended waits for the next one.
			data := filepath.Join(state, "data-"+port)
			digest := sha256.Sum256([]byte(`["sqlite ` + filepath.Join(data, "durward.db") + `"]`))
			spool := filepath.Join(data, "usage", hex.EncodeToString(digest[:])[:16])
			if err := os.MkdirAll(spool, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(spool, "NODE-0000000000000000001.json"), []byte(`{"Node":"NODE","Number":1}`), 0o600); err != nil {
				t.Fatal(err)
			}
			unchanged()
		})
	}
}

// TestDoctorSaysWhatAStartWould checks that doctor finds whatever keeps a gateway from starting, in the words of the
// start.
func TestDoctorSaysWhatAStartWould(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	const good = "{\n\tadmin unix/HOME/admin.sock\n\tpersist_config off\n\tdurward {\n\t\tpublic_url URL\n\t\tstore sqlite HOME/durward.db\n\t\tmaster_key {env.DURWARD_KEY}\n\t\tidentity oidc https://192.0.2.1 {\n\t\t\taudience x\n\t\t}\n\t\tegress {\n\t\t\tallow 192.0.2.1/32\n\t\t}\n\t}\n}\n\nURL {\n\tbind 127.0.0.1\n\tdurward\n}\n"
	for name, tc := range map[string]struct{ from, to string }{
		"egress":         {"allow 192.0.2.1/32", "allow 192.0.2.9/32"},
		"login_client":   {"audience x", "audience x\n\t\t\tlogin_client durward {env.DURWARD_KEY}"},
		"return_url":     {"egress {", "return_url not-an-address\n\t\tegress {"},
		"master_key":     {"{env.DURWARD_KEY}", "{env.DURWARD_ABSENT}"},
		"store":          {"HOME/durward.db", "HOME/no/such/durward.db"},
		"admin endpoint": {"HOME/admin.sock", "HOME/missing/admin.sock"},
		"address":        {"URL {\n\tbind", "http://" + taken.Addr().String() + " {\n\tbind"},
		"log":            {"persist_config off", "persist_config off\n\tlog {\n\t\toutput durward file HOME/Caddyfile.egress/x.log\n\t}"},
	} {
		t.Run(name, func(t *testing.T) {
			url := "http://gate.example.com:" + freePort(t)
			text := strings.NewReplacer("HOME", home, "URL", url).Replace(strings.Replace(good, tc.from, tc.to, 1))
			config := filepath.Join(home, "Caddyfile."+name)
			for _, file := range []string{config, filepath.Join(home, "Caddyfile.egress")} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			said := make(map[string]string)
			for _, command := range []string{"doctor", "run"} {
				ran := exec.CommandContext(t.Context(), durward(t), command, "--config", config, "--adapter", "caddyfile")
				ran.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home, "DURWARD_KEY=8f0c4be1d35a97624e1b08c7d92fa6530b7ce4189d2f63a5c01e7b94f8d6325a")
				output, err := ran.CombinedOutput()
				if exitCode(err) == 0 {
					t.Fatalf("%s: %v: %s", command, err, output)
				}
				said[command] = string(output)
			}
			lines := strings.Split(strings.TrimSpace(said["run"]), "\n")
			found, _, _ := strings.Cut(strings.TrimPrefix(lines[len(lines)-1], "Error: "), ". What to do: ")
			if i := strings.Index(found, "listen "); i >= 0 { // doctor listens itself
				found = found[i:]
			}
			if !strings.Contains(said["doctor"], found) {
				t.Errorf("run says %q, and doctor\n%s", found, said["doctor"])
			}
		})
	}
}
