package integration

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// devHome is a home directory with nothing in it but the files of a test's processes.
type devHome struct {
	path  string
	admin string // where Caddy's admin endpoint is by default; "": where Caddy has it, a port that another program may have
}

func newDevHome(t *testing.T) devHome {
	t.Helper()
	// Not t.TempDir: its path holds the test's name and is too long for the socket in it.
	path, err := os.MkdirTemp("", "dev-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	return devHome{path: path}
}

func (h devHome) file(name ...string) string {
	return filepath.Join(append([]string{h.path}, name...)...)
}

// environment has no directories but those that follow from HOME.
func (h devHome) environment() []string {
	variables := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + h.path, "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "XDG_CACHE_HOME=", "TMPDIR=" + h.path}
	if h.admin != "" {
		variables = append(variables, "CADDY_ADMIN="+h.admin)
	}
	return variables
}

// devOutcome is the result of a command.
type devOutcome struct {
	stdout, stderr string
	code           int
}

// command runs the binary to its end.
func (h devHome) command(t *testing.T, arguments ...string) devOutcome {
	t.Helper()
	binary := durward(t) // the first test has it built, which takes its time
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, arguments...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = h.path, h.environment(), &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("durward %s did not end:\n%s%s", strings.Join(arguments, " "), &stdout, &stderr)
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return devOutcome{stdout: stdout.String(), stderr: stderr.String(), code: exitCode(err)}
}

// dev is a running `durward dev`.
type dev struct {
	home    devHome
	process *process
	url     string
}

// start starts `durward dev` on a free port and returns once it listens. Its standard output goes to the file stdout in
// the home directory.
func (h devHome) start(t *testing.T, arguments ...string) *dev {
	t.Helper()
	arguments = append([]string{"-c", `exec "$0" dev "$@" >stdout`, durward(t), "--listen", "127.0.0.1:0"}, arguments...)
	d := &dev{home: h, process: startProcess(t, h.path, h.environment(), "sh", arguments...)}
	d.process.poll(t, "the address in its data directory", func() bool {
		address, err := os.ReadFile(h.file("data", "address"))
		d.url = "http://" + strings.TrimSpace(string(address))
		return err == nil
	})
	return d
}

// end sends a signal, waits for the end and returns the exit code.
func (d *dev) end(t *testing.T, signal syscall.Signal) int {
	t.Helper()
	if err := d.process.command.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	select {
	case <-d.process.exited:
	case <-t.Context().Done():
		t.Fatal("the test was ended")
	}
	d.process.checkLog(t)
	return exitCode(d.process.Err)
}

func (d *dev) token(t *testing.T) string {
	t.Helper()
	return d.tokenOf(t, "alice@example.test")
}

// api asks the platform API and returns the status and the body.
func (d *dev) api(t *testing.T, token, method, path string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, d.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	return devAnswer(t, request)
}

func devAnswer(t *testing.T, request *http.Request) (int, string) {
	t.Helper()
	client := &http.Client{Timeout: callTimeout}
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	checkDescribed(t, response.Request, response, body)
	return response.StatusCode, string(body)
}

var (
	devAuthURL = regexp.MustCompile(`"auth_url": ?"([^"]+)"`)
	devTicket  = regexp.MustCompile(`name="ticket" value="([^"]+)"`)
)

// connect connects alice's account at the demo third party.
func (d *dev) connect(t *testing.T, token, account string) {
	t.Helper()
	status, body := d.api(t, token, http.MethodPost, "/api/servers/demo/connect")
	found := devAuthURL.FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("connect: %d %s", status, body)
	}
	address := strings.ReplaceAll(found[1], `\u0026`, "&")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	status, body = devAnswer(t, request)
	found = devTicket.FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("login page: %d %s", status, body)
	}
	form := url.Values{"ticket": {found[1]}, "account": {account}}
	request, err = http.NewRequestWithContext(t.Context(), http.MethodPost, strings.Split(address, "?")[0], strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if status, body = devAnswer(t, request); status != http.StatusOK {
		t.Fatalf("callback: %d %s", status, body)
	}
}

// whoami calls the demo's tool of that name with an MCP client and returns the account in the answer.
func (d *dev) whoami(t *testing.T, token string) string {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "dev-test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: d.url + "/mcp/demo", HTTPClient: &http.Client{Transport: devToken(token)}, MaxRetries: -1,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "whoami"})
	if err != nil {
		t.Fatal(err)
	}
	text, ok := result.Content[0].(*mcp.TextContent)
	if !ok || result.IsError {
		t.Fatalf("whoami answered %+v", result)
	}
	return text.Text
}

// devToken puts a token on every request.
type devToken string

func (c devToken) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+string(c))
	return http.DefaultTransport.RoundTrip(request)
}
