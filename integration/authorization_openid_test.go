package integration

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// TestOpenIDClient checks that openid-client, which is certified for OpenID Connect, registers at the gateway, logs a user in
// with a code and PKCE, refreshes and revokes, as a public client and with a secret in either place. It refuses an answer
// that names another issuer (RFC 9207).
func TestOpenIDClient(t *testing.T) {
	t.Parallel()
	tools, clients := conformanceTools(t), officialClients(t)
	d := devGateway(t, "", "")
	redirect := newLanding(t) + "/back"
	ctx, cancel := context.WithTimeout(context.Background(), suiteTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, filepath.Join(tools, "node/node_modules/.bin/node"), "clients/codeflow.mjs", d.url, clients, redirect)
	command.Env, command.Stderr, command.WaitDelay = append(os.Environ(), "NODE_OPTIONS="), os.Stderr, callTimeout
	input, output := rig.Pipes(t, command)
	said := bufio.NewReader(output)
	line := func() string {
		t.Helper()
		text, err := said.ReadString('\n')
		if err != nil {
			t.Fatalf("it ended after %q: %v", text, err)
		}
		return strings.TrimSpace(text)
	}
	for _, method := range []string{"none", "client_secret_basic", "client_secret_post"} {
		back, err := newPerson(t).letIn(line(), redirect, "alice@example.test")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(input, redirect+"?"+back.Encode()+"\n"); err != nil {
			t.Fatal(err)
		}
		want := method + ": mix-up OAUTH_INVALID_RESPONSE, bearer 900 200, renewed true 200, revoked 401 invalid_grant"
		if got := line(); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
	if err := command.Wait(); err != nil {
		t.Error(err)
	}
}
