package commands

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestStartErrorsSayWhatToDo checks that the last line is plain and gives advice, for every error that keeps a
// gateway from starting.
func TestStartErrorsSayWhatToDo(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it listens at once
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, inUse := net.Listen("tcp", taken.Addr().String()) //nolint:noctx // it fails at once
	_, absent := os.Open("/nonexistent/file")
	config := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(config, []byte("{\n\tdurward {\n\t\tstore sqlite x.db\n\t\tidentity oidc http://id.example.com {\n\t\t\torganization acme\n\t\t}\n\t}\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		failure        error
		says, whatToDo string
	}{
		{fmt.Errorf("loading initial config: loading new config: %w", inUse), "listen tcp ", "another program listens"},
		{absent, "open /nonexistent/file", "make that file or directory"},
		{errors.New("loading initial config: loading new config: http app module: start: listening on :443: listen tcp :443: bind: permission denied"), "listening on :443: ", "ports below 1024"},
		{errors.New("loading initial config: loading new config: starting caddy administration endpoint: listen unix /run/x/admin.sock: bind: permission denied"), "starting caddy administration", "read and write there"},
		{errors.New("adapting config using caddyfile: Caddyfile:7: unrecognized directive: durwrad"), "Caddyfile:7: unrecognized directive: durwrad", "correct the Caddyfile"},
		{errors.New(`adapting config using caddyfile: parsing caddyfile tokens for 'durward': unrecognized word "x" in identity oidc, at Caddyfile:9`), `Caddyfile:9: unrecognized word "x" in identity oidc`, "correct the Caddyfile"},
		{errors.New("loading initial config: loading new config: loading durward app module: provision durward: setting up identity: identity oidc http://id.example.com: refused"), config + ":4: setting up identity: identity oidc http://id.example.com: refused", "durward validate"},
		{errors.New("loading initial config: loading new config: loading http app module: provision http: server srv0: setting up route handlers: route 0: loading handler modules: position 0: loading module 'subroute': " +
			"provision http.handlers.subroute: setting up subroutes: route 0: loading handler modules: position 0: loading module 'durward_mcp': provision http.handlers.durward_mcp: set public_url"), "set public_url", "durward validate"},
		{errors.New(`sending configuration to instance: caddy responded with error: HTTP 400: {"error":"loading config: loading new config: loading durward app module: provision durward: store sqlite: no path is given"}` + "\n"), config + ":3: store sqlite: no path is given", "durward validate"},
		{errors.New("reading config from file: open typo: no such file or directory"), "reading config from file: open typo", "check the path behind --config"},
		{errors.New("config is not valid JSON: invalid character; did you mean to use a config adapter (the --adapter flag)?"), "config is not valid JSON", "--adapter caddyfile"},
		{errors.New("performing request: Post http://127.0.0.1/stop: dial unix /run/x: connect: no such file or directory"), "performing request", "durward run --config"},
		{errors.New("caddy process exited with error: exit status 1"), "caddy process exited", "see the line above"},
		{errors.New("loading durward app module: provision durward: master_key: {env.KEY} does not resolve"), "master_key: {env.KEY}", "put the secret"},
		{errors.New("something else"), "something else", "`durward doctor --config " + config},
	} {
		start := &cobra.Command{Use: "start", RunE: func(*cobra.Command, []string) error { return tc.failure }}
		start.Flags().String("config", config, "")
		root := &cobra.Command{Use: "durward"}
		root.AddCommand(start)
		adviseOnStart(root)
		adviseOnStart(root) // cobra may ask twice
		var text strings.Builder
		start.SetErr(&text)
		got := start.RunE(start, nil)
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		if !errors.Is(got, tc.failure) || len(lines) != 1 || !strings.HasPrefix(lines[0], "Error: "+tc.says) || strings.Count(lines[0], ". What to do: ") != 1 || !strings.Contains(lines[0], tc.whatToDo) {
			t.Errorf("%v ends in %q, %v", tc.failure, text.String(), got)
		}
	}
	fine := &cobra.Command{Use: "start", RunE: func(*cobra.Command, []string) error { return nil }}
	root := &cobra.Command{Use: "durward"}
	root.AddCommand(fine)
	adviseOnStart(root)
	if err := fine.RunE(fine, nil); err != nil {
		t.Error(err)
	}
}
