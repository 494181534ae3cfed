package integration

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// devJWT matches text that only the output of token may contain, and devKey text that no output may.
var (
	devJWT = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{10,}`)
	devKey = regexp.MustCompile(`dw-[A-Za-z0-9_-]{20,}`)
)

func TestDevTour(t *testing.T) {
	home := newDevHome(t)
	d := home.start(t)

	want := []string{"login", "servers", "connect", "tools", "call", "approve", "deny", "audit", "events", "disconnect", "refused",
		"key", "completion", "route", "limit", "usage", "revoke"}
	if diff := cmp.Diff(want, d.tour(t)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	text := home.command(t, "tour", "--url", d.url)
	if text.code != 0 || strings.Count(text.stdout, "✓") != len(want) || devJWT.MatchString(text.stdout) || strings.Contains(text.stdout, "\x1b") {
		t.Errorf("tour: exit code %d\n%s%s", text.code, text.stdout, text.stderr)
	}
	// The example policy denies urgent issues to sales alone.
	for _, urgent := range []string{"create_issue {title, priority: 1} -> issue ", "create_issue {title, priority: 1} -> Denied by policy"} {
		if strings.Count(text.stdout, urgent) != 1 {
			t.Errorf("the tour does not tell of %q:\n%s", urgent, text.stdout)
		}
	}
	for _, end := range []string{"Everything works: 17 steps", "What to try next", " connect demo --as alice@example.test --url " + d.url} {
		if !strings.Contains(text.stdout, end) {
			t.Errorf("the tour does not end with %q:\n%s", end, text.stdout)
		}
	}
	// A user's connection stays theirs.
	d.connect(t, d.token(t), "demo-bob")
	kept := slices.DeleteFunc(slices.Clone(want), func(step string) bool { return step == "disconnect" || step == "refused" })
	if diff := cmp.Diff(kept, d.tour(t)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if got := d.whoami(t, d.token(t)); got != "demo-bob" {
		t.Errorf("after the tour alice is connected as %q", got)
	}
}

// TestDevConnect checks that an account is connected without a browser, once.
func TestDevConnect(t *testing.T) {
	home := newDevHome(t)
	d := home.start(t)
	for _, want := range []string{"demo is connected for alice@example.test, as demo-alice.", "is connected for alice@example.test already"} {
		if got := home.command(t, "connect", "demo", "--as", "alice@example.test", "--url", d.url); got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("exit code %d: %s%s", got.code, got.stdout, got.stderr)
		}
	}
	if got := d.whoami(t, d.token(t)); got != "demo-alice" {
		t.Errorf("connected as %q", got)
	}
	if got := home.command(t, "connect", "demo", "--as", "bob@example.test", "--account", "mine", "--url", d.url); got.code != 0 || !strings.Contains(got.stdout, "as mine") {
		t.Errorf("exit code %d: %s%s", got.code, got.stdout, got.stderr)
	}
	for name, arguments := range map[string][]string{
		"nobody": {"connect", "demo", "--url", d.url}, "an unknown server": {"connect", "nothing", "--as", "alice@example.test", "--url", d.url},
		"an unknown user": {"connect", "demo", "--as", "mallory@example.test", "--url", d.url}, "no gateway": {"connect", "demo", "--as", "alice@example.test", "--url", "http://127.0.0.1:" + freePort(t)},
	} {
		if got := home.command(t, arguments...); got.code == 0 || got.stderr == "" {
			t.Errorf("%s: exit code %d: %s", name, got.code, got.stdout)
		}
	}
}

// tour runs the tour and returns the names of the steps, all of which passed.
func (d *dev) tour(t *testing.T) []string {
	t.Helper()
	got := d.home.command(t, "tour", "--json", "--url", d.url)
	if got.code != 0 || devJWT.MatchString(got.stdout) || devKey.MatchString(got.stdout) {
		t.Fatalf("tour: exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	var names []string
	for line := range strings.Lines(got.stdout) {
		var step struct {
			Step   string   `json:"step"`
			OK     bool     `json:"ok"`
			MS     float64  `json:"ms"`
			Detail []string `json:"detail"`
		}
		if err := json.Unmarshal([]byte(line), &step); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if !step.OK || len(step.Detail) == 0 {
			t.Errorf("step: %s", line)
		}
		names = append(names, step.Step)
	}
	return names
}

func TestDevTourOfItsOwn(t *testing.T) {
	home := newDevHome(t)
	d := home.start(t, "--tour")
	d.process.poll(t, "the end of the tour", func() bool {
		text, err := os.ReadFile(home.file("stdout"))
		return err == nil && strings.Contains(string(text), "goes on running at")
	})
	text, err := os.ReadFile(home.file("stdout"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		d.url + "/api/servers", "alice@example.test", "claude mcp add --transport http demo " + d.url + "/mcp/demo", "Open " + d.url + " in a browser",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the banner lacks %q", want)
		}
	}
	// A browser that opens the gateway's address is told the same; whoever came by another name is not.
	for host, want := range map[string]int{"": http.StatusOK, "gate.example.com": http.StatusForbidden} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+"/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != want || (want == http.StatusOK) != strings.Contains(string(page), "claude mcp add --transport http demo "+d.url+"/mcp/demo") {
			t.Errorf("the page for host %q: %d, %v\n%s", host, response.StatusCode, err, page)
		}
	}
	if strings.Count(string(text), "✓") != 17 || devKey.Match(text) || strings.Contains(string(text), "✗") || strings.Contains(string(text), `"level"`) {
		t.Errorf("standard output:\n%s", text)
	}
	d.process.waitFor(t, d.url+"/readyz")
	if code := d.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}
}

func TestDevTourFails(t *testing.T) {
	home := newDevHome(t)
	got := home.command(t, "tour", "--json", "--url", "http://127.0.0.1:"+freePort(t))
	var step struct {
		Step, Error, Hint string
		OK                bool
	}
	if err := json.Unmarshal([]byte(got.stdout), &step); err != nil {
		t.Fatalf("%v: %s", err, got.stdout)
	}
	if got.code != 1 || step.Step != "login" || step.OK || !strings.Contains(step.Error, "cannot connect") || !strings.Contains(step.Hint, "durward dev") {
		t.Errorf("exit code %d: %s", got.code, got.stdout)
	}
}

// devService is the id of the agent without a person of development mode.
const devService = "0198f2c4-0000-7000-8000-0000000000d5"

func TestDevToken(t *testing.T) {
	home := newDevHome(t)
	d := home.start(t)
	for _, test := range []struct {
		name      string
		arguments []string
		want      map[string]any
	}{
		{"a user", []string{"--as", "alice@example.test"}, map[string]any{"client_id": "dev-agent", "azp": nil, "email": nil}},
		{"another agent", []string{"--as", "eve@rival.test", "--agent", "dev-console"}, map[string]any{"client_id": "dev-console"}},
		{"the service itself", []string{"--agent", "dev-service"}, map[string]any{"client_id": devService, "sub": devService, "sid": nil}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := home.command(t, append([]string{"token", "--url", d.url + "/"}, test.arguments...)...)
			if got.code != 0 || got.stderr != "" || strings.Count(got.stdout, "\n") != 1 || !strings.HasSuffix(got.stdout, "\n") {
				t.Fatalf("exit code %d, standard output %q, standard error %q", got.code, got.stdout, got.stderr)
			}
			claims := devClaims(t, got.stdout)
			test.want["iss"], test.want["aud"] = d.url, d.url
			for name, want := range test.want {
				if claims[name] != want {
					t.Errorf("%s is %v, want %v", name, claims[name], want)
				}
			}
			if status, body := d.api(t, strings.TrimSpace(got.stdout), http.MethodGet, "/api/servers"); status != http.StatusOK {
				t.Errorf("the API answers %d %s", status, body)
			}
		})
	}
	for _, test := range []struct {
		name      string
		arguments []string
		want      []string // in the message
	}{
		{"unknown user", []string{"--as", "mallory@example.test", "--url", d.url}, []string{"mallory@example.test", "alice@example.test", "eve@rival.test"}},
		{"unknown agent", []string{"--as", "alice@example.test", "--agent", "stranger", "--url", d.url}, []string{"does not know the client", "dev-agent, dev-console, dev-service"}},
		{"a user through the service", []string{"--as", "alice@example.test", "--agent", "dev-service", "--url", d.url}, []string{"without a person", "--as"}},
		{"nobody", []string{"--url", d.url}, []string{"--as"}},
		{"another name of the gateway", []string{"--as", "alice@example.test", "--url", strings.Replace(d.url, "127.0.0.1", "localhost", 1)}, []string{d.url}},
		{"nothing listens", []string{"--as", "alice@example.test", "--url", "http://127.0.0.1:" + freePort(t)}, []string{"cannot connect", "durward dev"}},
		{"not an address", []string{"--as", "alice@example.test", "--url", "127.0.0.1:8080"}, []string{"--url"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := home.command(t, append([]string{"token"}, test.arguments...)...)
			if got.code != 1 || got.stdout != "" {
				t.Errorf("exit code %d, standard output %q", got.code, got.stdout)
			}
			for _, want := range test.want {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("standard error lacks %q: %s", want, got.stderr)
				}
			}
		})
	}
}

func devClaims(t *testing.T, token string) map[string]any {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("not a JWT: %q", token)
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(payload, &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

// TestDevRefusedTokens checks that where `durward dev` runs, `doctor tokens` needs no option to find it. Elsewhere it
// says which it needs.
func TestDevRefusedTokens(t *testing.T) {
	home := newDevHome(t)
	d := home.start(t)
	if status, _ := d.api(t, "nobody's", http.MethodGet, "/api/servers"); status != http.StatusUnauthorized {
		t.Fatalf("status %d", status)
	}
	got := home.command(t, "doctor", "tokens")
	if got.code != 0 || !strings.Contains(got.stdout, "401") || !strings.Contains(got.stdout, "/api/servers") {
		t.Errorf("exit code %d: %s%s", got.code, got.stdout, got.stderr)
	}
	d.process.kill()
	<-d.process.exited
	// A killed process leaves its socket, on which nobody answers, and a folder is no configuration: both times the
	// gateway is looked for where Caddy's admin endpoint is by default, here at a port that nobody has.
	if err := os.Mkdir(home.file("Caddyfile"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(home.file("data", "admin.sock")); err != nil {
		t.Fatal(err)
	}
	for name, where := range map[string]devHome{"killed": home, "elsewhere": newDevHome(t)} {
		where.admin = "localhost:" + freePort(t)
		if got := where.command(t, "doctor", "tokens"); got.code == 0 || !strings.Contains(got.stderr, " at "+where.admin+":") || !strings.Contains(got.stderr, "--address unix//ABSOLUTE/DIR/admin.sock") {
			t.Errorf("%s: exit code %d: %s", name, got.code, got.stderr)
		}
	}
}

// TestDevRestart also starts on another port than before, which is what port 0 does.
func TestDevRestart(t *testing.T) {
	for _, test := range []struct {
		name string
		end  func(*dev, *testing.T)
	}{
		{"after Ctrl-C", func(d *dev, t *testing.T) {
			if code := d.end(t, syscall.SIGINT); code != 0 {
				t.Errorf("SIGINT: exit code %d", code)
			}
			if _, err := os.Stat(d.home.file("data", "address")); err == nil {
				t.Error("the address is still there")
			}
		}},
		{"after kill -9", func(d *dev, t *testing.T) {
			d.end(t, syscall.SIGKILL)
			// So that the next start is not taken to have listened already.
			if err := os.Remove(d.home.file("data", "address")); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			home := newDevHome(t)
			d := home.start(t)
			before := d.token(t)
			d.connect(t, before, "somebody-else")
			if got := d.whoami(t, before); got != "somebody-else" {
				t.Fatalf("whoami answers %q", got)
			}
			test.end(d, t)

			d = home.start(t)
			after := d.token(t)
			if was, is := devClaims(t, before)["sub"], devClaims(t, after)["sub"]; was != is {
				t.Errorf("alice was %v and is %v", was, is)
			}
			if status, body := d.api(t, after, http.MethodGet, "/api/servers/demo/connection"); status != http.StatusOK || !strings.Contains(body, "connected") {
				t.Errorf("connection: %d %s", status, body)
			}
			if got := d.whoami(t, after); got != "somebody-else" {
				t.Errorf("whoami answers %q", got)
			}
			// The clients are the same agents at the new address, under whatever name of their issuer.
			admin := d.tokenOf(t, "admin@example.test")
			if status, body := d.api(t, admin, http.MethodGet, "/api/agents?search=dev-"); status != http.StatusOK || strings.Count(body, `"external_id":"dev-`) != 3 {
				t.Errorf("agents: %d %s", status, body)
			}
			for _, issuer := range []string{"", d.url, d.url + "/dev/idp"} {
				body := `{"application_directory":{"external_id":"dev-agent","issuer":"` + issuer + `"}}`
				if issuer == "" {
					body = `{"application_directory":{"external_id":"dev-agent"}}`
				}
				if status, said := d.asked(t, admin, http.MethodPost, "/api/agents", body); status != http.StatusConflict {
					t.Errorf("dev-agent of %q once more: %d %s", issuer, status, said)
				}
			}
			// Connecting anew works at the new address too.
			d.tour(t)
		})
	}
}

func TestDevReset(t *testing.T) {
	home := newDevHome(t)
	d := home.start(t)
	before := d.token(t)
	if code := d.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}

	t.Run("not with somebody's file in the directory", func(t *testing.T) {
		precious := home.file("data", "precious.txt")
		if err := os.WriteFile(precious, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(precious)
		got := home.command(t, "dev", "--listen", "127.0.0.1:0", "--reset")
		if got.code != 1 || !strings.Contains(got.stderr, "precious.txt") {
			t.Errorf("exit code %d: %s", got.code, got.stderr)
		}
		for _, kept := range []string{precious, home.file("data", "durward.db"), home.file("data", "master.key")} {
			if _, err := os.Stat(kept); err != nil {
				t.Error(err)
			}
		}
	})

	d = home.start(t, "--reset")
	if was, is := devClaims(t, before)["sub"], devClaims(t, d.token(t))["sub"]; was == is {
		t.Error("alice is who she was before the reset")
	}
	d.tour(t)

	t.Run("not while it runs", func(t *testing.T) {
		got := home.command(t, "dev", "--listen", "127.0.0.1:0", "--reset")
		if got.code != 1 || !strings.Contains(got.stderr, "is running") || !strings.Contains(got.stderr, d.url) {
			t.Errorf("exit code %d: %s", got.code, got.stderr)
		}
		d.tour(t)
	})
}

func TestDevRefuses(t *testing.T) {
	home := newDevHome(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if err := os.Mkdir(home.file("project"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(home.file("project", "address"), []byte("12 High Street"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name      string
		arguments []string
		want      string
	}{
		{"every address", []string{"--listen", "0.0.0.0:0"}, "this machine only"},
		{"every IPv6 address", []string{"--listen", "[::]:0"}, "this machine only"},
		{"no host", []string{"--listen", ":0"}, "this machine only"},
		{"a public address", []string{"--listen", "192.0.2.1:0"}, "this machine only"},
		{"a name", []string{"--listen", "gate.example.com:0"}, "this machine only"},
		{"no port", []string{"--listen", "127.0.0.1"}, "such as 127.0.0.1:8080"},
		{"a port that is taken", []string{"--listen", taken.Addr().String()}, "is taken"},
		{"somebody's directory", []string{"--listen", "127.0.0.1:0", "--data", "project"}, "holds address"},
		{"somebody's directory, reset", []string{"--listen", "127.0.0.1:0", "--data", "project", "--reset"}, "holds address"},
		{"a path too long for a socket", []string{"--listen", "127.0.0.1:0", "--data", strings.Repeat("d", 110)}, "too long"},
		{"an argument", []string{"now"}, "unknown command"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := home.command(t, append([]string{"dev"}, test.arguments...)...)
			if got.code != 1 || got.stdout != "" || !strings.Contains(got.stderr, test.want) {
				t.Errorf("exit code %d, standard output %q, standard error %s", got.code, got.stdout, got.stderr)
			}
		})
	}
	if _, err := os.Stat(home.file(strings.Repeat("d", 110))); err == nil {
		t.Error("the directory with too long a path was made")
	}
	if text, err := os.ReadFile(home.file("project", "address")); err != nil || string(text) != "12 High Street" {
		t.Errorf("somebody's file: %q, %v", text, err)
	}
}

// TestDevInAwkwardPlaces starts in a directory whose path is too long for a socket and means something to a Caddyfile.
func TestDevInAwkwardPlaces(t *testing.T) {
	home := devHome{path: newDevHome(t).file(`my "project" {env.HOME} 100%? #1`, strings.Repeat("d", 120))}
	if err := os.MkdirAll(home.path, 0o700); err != nil {
		t.Fatal(err)
	}
	d := home.start(t)
	d.tour(t)
	if code := d.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}
}

func TestDevWritesNothingOutsideItsData(t *testing.T) {
	home := newDevHome(t)
	d := home.start(t)
	d.tour(t)
	if code := d.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}
	err := filepath.WalkDir(home.path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(home.path, path)
		switch {
		case err != nil:
			return err
		case name == "data":
			return fs.SkipDir
		case name != "." && name != "stdout":
			t.Errorf("it made %s", name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(home.file("data"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the data directory's mode is %v, %v", info.Mode(), err)
	}
}
