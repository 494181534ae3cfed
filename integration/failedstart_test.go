package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFailedStartSaysWhy checks that the last line of a start that fails is the one that says why, whatever the log's
// writer.
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

// TestStartErrorsArePlain checks that the last line of each command that starts or tends a gateway is plain. It begins
// with the file and the line to correct, and says once what to do.
func TestStartErrorsArePlain(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	const good = "{\n\tadmin unix/HOME/admin.sock\n\tpersist_config off\n\tdurward {\n\t\tstore sqlite HOME/durward.db\n\t\tmaster_key {env.DURWARD_KEY}\n\t\tidentity oidc https://id.example.com\n\t}\n}\n"
	write := func(name, text string) string {
		path := filepath.Join(home, name)
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "HOME", home)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	misspelt := write("misspelt.caddyfile", strings.Replace(good, "store", "stoer", 1))
	private := write("private.caddyfile", strings.Replace(good, "id.example.com", "127.0.0.1:1", 1)+"http://127.0.0.1:1 {\n\tdurward\n}\n")
	whole := write("whole.caddyfile", good)
	uncounted := write("uncounted.caddyfile", good+"http://127.0.0.1:1 {\n\tdurward_auth\n\tdurward_policy\n\tdurward_credential\n\tdurward_mcp\n}\n")
	issuer := write("issuer.caddyfile", strings.Replace(good, "https://id.example.com", "http://127.0.0.1:1", 1)+"http://127.0.0.1:1 {\n\tdurward\n}\n")
	port := freePort(t)
	taken := write("taken.caddyfile", good+"http://127.0.0.1:"+port+" {\n\tbind 127.0.0.1\n\tdurward_auth\n\tdurward_platform health_only\n}\nhttp://127.0.0.1:"+port+" {\n\tdurward\n}\n")
	setPublicURL(t, taken, "http://127.0.0.1:"+port)
	for _, tc := range []struct{ command, config, says, whatToDo string }{
		{"run", filepath.Join(home, "typo"), "reading config from file: open " + home + "/typo: no such file or directory", "check the path behind --config"},
		{"run", misspelt, misspelt + ":5: ", "correct the Caddyfile"},
		{"run", private, private + ":7: setting up identity: identity oidc https://127.0.0.1:1: the gateway may not connect to it", "durward validate --config " + private},
		{"validate", uncounted, uncounted + ":14: durward_mcp: durward_limit has to come before it", "durward validate --config " + uncounted},
		{"run", uncounted, uncounted + ":14: durward_mcp: durward_limit has to come before it", "durward validate --config " + uncounted},
		{"run", issuer, issuer + ":7: setting up identity: identity oidc http://127.0.0.1:1: the gateway may not connect to it", "in the durward option, the line `http 127.0.0.1/32`. What to do"},
		{"validate", taken, taken + ":11: the site 127.0.0.1 on 127.0.0.1:" + port + " takes every request for http://127.0.0.1:" + port + " from the gateway's site: give it another port", "durward validate --config " + taken},
		{"run", taken, taken + ":11: the site 127.0.0.1 on 127.0.0.1:" + port + " takes", "durward validate --config " + taken},
		{"start", filepath.Join(home, "typo"), "caddy process exited with error", "see the line above"},
		{"reload", whole, "performing request", "durward run --config " + whole},
		{"stop", whole, "performing request", "durward run --config " + whole},
	} {
		command := exec.CommandContext(t.Context(), durward(t), tc.command, "--config", tc.config)
		command.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home, "DURWARD_KEY=8f0c4be1d35a97624e1b08c7d92fa6530b7ce4189d2f63a5c01e7b94f8d6325a")
		output, err := command.CombinedOutput()
		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		last := lines[len(lines)-1]
		if exitCode(err) == 0 || !strings.HasPrefix(last, "Error: "+tc.says) || strings.Count(last, ". What to do: ") != 1 || !strings.Contains(last, tc.whatToDo) {
			t.Errorf("%s --config %s ends (%v) in %s", tc.command, tc.config, err, last)
		}
	}
}

// setPublicURL adds the option to a Caddyfile.
func setPublicURL(t *testing.T, file, url string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "\tdurward {\n", "\tdurward {\n\t\tpublic_url "+url+"\n", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDoctorWarnsOfSitesThatTakeConnections checks that doctor names the line of a site that takes some of what
// connects to the gateway's, which listens on every address.
func TestDoctorWarnsOfSitesThatTakeConnections(t *testing.T) {
	t.Parallel()
	home, port := t.TempDir(), freePort(t)
	config := filepath.Join(home, "gate.caddyfile")
	text := fmt.Sprintf("{\n\tadmin off\n\tpersist_config off\n\tdurward {\n\t\tpublic_url https://gate.example.com\n\t\tstore sqlite %s/durward.db\n\t\tmaster_key {env.DURWARD_KEY}\n\t\tidentity oidc https://id.invalid\n\t}\n}\n"+
		"http://:%[2]s {\n\tdurward\n}\nhttp://127.0.0.1:%[2]s {\n\tbind 127.0.0.1\n\tdurward_auth\n\tdurward_platform health_only\n}\n", home, port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), durward(t), "doctor", "--config", config)
	command.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home, "DURWARD_KEY=8f0c4be1d35a97624e1b08c7d92fa6530b7ce4189d2f63a5c01e7b94f8d6325a")
	output, _ := command.CombinedOutput() // the identity provider does not answer
	want := "warning  configuration: " + config + ":14: the site 127.0.0.1 on 127.0.0.1:" + port + " takes what connects to that address from the gateway's site on :" + port + "\n         Where a client"
	if !strings.Contains(string(output), want) {
		t.Errorf("want %q in\n%s", want, output)
	}
}

// TestFirstStartDoesNotAlarm checks that a start and a stop of a gateway that is as it should be have no warning, with
// the log that the samples have.
func TestFirstStartDoesNotAlarm(t *testing.T) {
	t.Parallel()
	for _, admin := range []string{"unix/admin.sock", "off"} {
		g := startGateway(t, settings{global: "log {\n\t\toutput durward\n\t}"})
		if admin == "off" {
			g.mustReload(strings.Replace(g.written(), "admin unix/admin.sock", "admin off", 1))
		}
		g.stop(t)
		for line := range strings.Lines(g.output.String()) {
			if strings.Contains(line, `"level":"warn"`) || strings.Contains(line, `"level":"error"`) {
				t.Error(line)
			}
		}
		if !strings.Contains(g.output.String(), `"level":"info"`) {
			t.Error("there is no log")
		}
	}
}
