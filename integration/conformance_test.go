package integration

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// conformanceScript sets up, serves, runs and compares; see its first lines.
const conformanceScript = "conformance/mcp-conformance"

// conformanceRuns returns the number of runs of each suite through the gateway: CONFORMANCE_RUNS, 5 by default. A
// stream that is lost now and then shows up in one of a few runs.
func conformanceRuns(t *testing.T) int {
	t.Helper()
	text := os.Getenv("CONFORMANCE_RUNS")
	if text == "" {
		return 5
	}
	runs, err := strconv.Atoi(text)
	if err != nil || runs < 1 {
		t.Fatalf("CONFORMANCE_RUNS=%q is not a number of runs", text)
	}
	return runs
}

// TestConformance checks that the official MCP conformance suites find through the gateway, check by check, what they
// find at the reference server itself; once more with the other HTTP client towards the upstream.
func TestConformance(t *testing.T) {
	t.Parallel()
	runs := conformanceRuns(t)
	tools := conformanceTools(t)
	g := startGateway(t, settings{})
	other := startGateway(t, settings{whole: true, site: overNetHTTP})
	for _, suite := range []struct{ name, mode string }{
		{"legacy", "stateful"}, {"2025-11-25", "stateful"}, {"2026-07-28", "stateless"},
	} {
		// Each suite has a server of its own: one suite's subscriptions and log levels are not another's.
		t.Run(suite.name, func(t *testing.T) {
			t.Parallel()
			upstream := serveReference(t, tools, suite.mode)
			results := t.TempDir()
			direct := filepath.Join(results, "direct")
			runSuite(t, tools, suite.name, upstream, direct, "")
			through := func(g *gateway, runs int, name string) {
				address := g.url + g.createServer(upstream, nil).path
				for run := range runs {
					out := filepath.Join(results, name+strconv.Itoa(run))
					runSuite(t, tools, suite.name, address, out, g.token(alice))
					compareChecks(t, direct, out)
				}
			}
			through(g, runs, "run")
			through(other, 1, "net_http")
		})
	}
}

// conformanceTools returns the directory of the suites and the reference server.
func conformanceTools(t *testing.T) string {
	t.Helper()
	return rig.Tools(t, "conformance")
}

func serveReference(t *testing.T, tools, mode string) string {
	t.Helper()
	port := freePort(t)
	script, err := filepath.Abs(conformanceScript)
	if err != nil {
		t.Fatal(err)
	}
	p := startProcess(t, t.TempDir(), nil, script, "serve", tools, mode, port)
	address := "http://127.0.0.1:" + port + "/mcp"
	p.waitForListener(t, "127.0.0.1:"+port)
	return address
}

// runSuite runs a suite and leaves its findings in out. Its exit status tells whether all checks passed, and is ignored
// here.
func runSuite(t *testing.T, tools, suite, url, out, token string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), suiteTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, conformanceScript, "run", tools, suite, url, out, token)
	command.WaitDelay = stopTimeout
	output, err := command.CombinedOutput()
	if ctx.Err() != nil || exitCode(err) > 1 {
		t.Fatalf("suite %s at %s: %v\n%s", suite, url, err, tail(string(output), 10_000))
	}
}

// compareChecks fails the test when the results of a check differ, except for those in a suite's file of expectations.
func compareChecks(t *testing.T, direct, through string, expectations ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), suiteTimeout)
	defer cancel()
	output, err := exec.CommandContext(ctx, conformanceScript, append([]string{"compare", direct, through}, expectations...)...).CombinedOutput()
	if err != nil {
		t.Errorf("the gateway shows: %v\n%s", err, output)
		return
	}
	t.Logf("%s", output)
}

// TestConformanceAuthorization checks what the official suite asks of an authorization server: metadata, and the code that a
// client exchanges for a token of a server.
func TestConformanceAuthorization(t *testing.T) {
	t.Parallel()
	tools, port := conformanceTools(t), freePort(t)
	redirect := "http://127.0.0.1:" + port + "/callback"
	d := devGateway(t, "", "authorization_server {\n oauth_client suite {\n redirect_uri "+redirect+"\n}\n}")
	command := exec.CommandContext(within(t, suiteTimeout), filepath.Join(tools, "node/node_modules/.bin/node"),
		filepath.Join(tools, "new/node_modules/@modelcontextprotocol/conformance/dist/index.js"),
		"authorization", "--url", d.url, "--client-id", "suite", "--resource", d.url+"/mcp/demo", "--port", port)
	command.Env, command.WaitDelay = append(os.Environ(), "NODE_OPTIONS="), stopTimeout
	said, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for lines := bufio.NewScanner(io.TeeReader(said, &all)); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "Callback server started") {
			address := regexp.MustCompile(regexp.QuoteMeta(d.url) + `/oauth/authorize\S+`).FindString(all.String())
			if _, err := newPerson(t).letIn(address, redirect, clientUser); err != nil {
				t.Error(err)
			}
		}
	}
	if err := command.Wait(); err != nil || !strings.Contains(all.String(), "Total: 3 passed, 0 failed") {
		t.Errorf("%v\n%s", err, all.String())
	}
}
