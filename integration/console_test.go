package integration

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
)

const (
	consoleSources = "../modules/console"
	// maxConsoleScript is the budget of the console's scripts, compressed.
	maxConsoleScript = 60 << 10
)

// TestConsoleAssets checks that the assets in the repository are those that its sources make, that the script stays small,
// and that its types are right. Compressed bytes may differ between versions of Go, and are unpacked before.
func TestConsoleAssets(t *testing.T) {
	t.Parallel()
	made := t.TempDir()
	command := exec.CommandContext(within(t, suiteTimeout), "go", "run", "-C", filepath.Join(consoleSources, "build"), ".", "-to", made)
	command.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	want, got := consoleAssets(t, made), consoleAssets(t, filepath.Join(consoleSources, "assets"))
	for name, content := range want {
		if !bytes.Equal(got[name], content) {
			t.Errorf("%s is not what the sources make; run `go run -C modules/console/build .` and commit it", name)
		}
	}
	if len(want) != len(got) || len(want) < 5 {
		t.Errorf("%d assets are made, and %d are there", len(want), len(got))
	}
	scripts, err := filepath.Glob(filepath.Join(consoleSources, "assets/*.js.gz"))
	if err != nil || len(scripts) != 2 {
		t.Fatalf("the scripts are %q: %v", scripts, err)
	}
	size := int64(0)
	for _, script := range scripts {
		info, err := os.Stat(script)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > maxConsoleScript {
		t.Errorf("the scripts have %d bytes, more than %d", size, maxConsoleScript)
	}
	types := exec.CommandContext(within(t, suiteTimeout), filepath.Join(rig.Tools(t, "console"), "node_modules/.bin/tsc"), "--project", consoleSources)
	if output, err := types.CombinedOutput(); err != nil {
		t.Errorf("types: %v\n%s", err, output)
	}
}

// TestNoConsole checks that the console says in words why it is not there: nobody logs in with a browser, or the gateway makes
// no tokens.
func TestNoConsole(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		settings settings
		says     string
	}{
		"nobody logs in":    {settings{}, "has no login for browsers"},
		"no tokens of ours": {settings{identity: "login_client " + loginClient, option: "authorization_server off"}, "this gateway makes none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, test.settings)
			response, page := (consoleVisit{&dev{url: g.url}, g.client}).send(t, http.MethodGet, "/console", map[string]string{"Accept": "text/html"})
			if response.StatusCode != http.StatusNotFound || !strings.Contains(page, "There is no console here") || !strings.Contains(page, test.says) {
				t.Errorf("%s: %s", response.Status, page)
			}
			if status, body := (consoleVisit{&dev{url: g.url}, g.client}).token(t, nil); status == http.StatusOK {
				t.Errorf("it gives a token: %s", body)
			}
		})
	}
}

func consoleAssets(t *testing.T, directory string) map[string][]byte {
	t.Helper()
	files, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	assets := make(map[string][]byte)
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(directory, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file.Name(), ".gz") {
			unpacked, err := gzip.NewReader(bytes.NewReader(content))
			if err != nil {
				t.Fatal(err)
			}
			if content, err = io.ReadAll(unpacked); err != nil {
				t.Fatal(err)
			}
		}
		assets[file.Name()] = content
	}
	return assets
}

// consolePolicy is the policy of the console's page, to the letter.
const consolePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; " +
	"frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// consoleVisit is a browser of a test, without scripts: its cookies are those of a user who has logged in.
type consoleVisit struct {
	d      *dev
	client *http.Client
}

// TestConsole checks how the console is served, and that its token lives in one browser's session: it is given to the page
// alone, opens the API alone, decides on no held call, makes no key for MCP servers, and ends with the session.
func TestConsole(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	alice := d.token(t)
	v := d.logsIn(t, "/console/keys?x=1")

	t.Run("the page", func(t *testing.T) {
		nobody := consoleVisit{d, newClient(t)}
		nobody.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		response, _ := nobody.send(t, http.MethodGet, "/console/keys?x=1", nil)
		if location := response.Header.Get("Location"); response.StatusCode != http.StatusSeeOther || location != "/login?return=%2Fconsole%2Fkeys%3Fx%3D1" {
			t.Errorf("nobody is logged in: %s, to %s", response.Status, location)
		}
		if page := v.get(t, "/connect"); !strings.Contains(page, `<a href="/console">Console</a>`) {
			t.Errorf("the pages do not lead to the console: %s", page)
		}
		response, page := v.send(t, http.MethodGet, "/console/keys?x=1", nil)
		for name, want := range map[string]string{
			"Content-Security-Policy": consolePolicy, "Cache-Control": "no-store", "Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
		} {
			if got := response.Header.Get(name); got != want {
				t.Errorf("%s: %s", name, got)
			}
		}
		script := regexp.MustCompile(`/console/assets/console\.[0-9a-f]{12}\.js`).FindString(page)
		for _, coding := range []string{"gzip", "identity"} {
			response, body := nobody.send(t, http.MethodGet, script, map[string]string{"Accept-Encoding": coding})
			if response.StatusCode != http.StatusOK || !strings.Contains(response.Header.Get("Cache-Control"), "immutable") ||
				(response.Header.Get("Content-Encoding") == "gzip") != (coding == "gzip") || (coding == "gzip") != strings.HasPrefix(body, "\x1f\x8b") {
				t.Errorf("%s as %s: %s %v", script, coding, response.Status, response.Header)
			}
		}
		for _, path := range []string{"/console/assets/index.html", "/console/assets/..%2findex.html", "/console/assets/none.js"} {
			if response, _ := v.send(t, http.MethodGet, path, nil); response.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %s", path, response.Status)
			}
		}
	})
	t.Run("only the page gets a token", func(t *testing.T) {
		for name, change := range map[string]map[string]string{
			"another site": {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, "a neighbouring site": {"Sec-Fetch-Site": "same-site"},
			"an old browser": {"Sec-Fetch-Site": ""}, "another origin": {"Origin": "http://127.0.0.1:1"}, "no origin": {"Origin": ""}, "a null origin": {"Origin": "null"},
		} {
			if status, body := v.token(t, change); status != http.StatusForbidden {
				t.Errorf("%s: %d %s", name, status, body)
			}
		}
		if response, _ := v.send(t, http.MethodGet, "/console/token", nil); response.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("by GET: %s", response.Status)
		}
		if status, body := (consoleVisit{d, newClient(t)}).token(t, nil); status != http.StatusUnauthorized {
			t.Errorf("nobody: %d %s", status, body)
		}
		if response, _ := v.send(t, http.MethodGet, "/api/me", nil); response.StatusCode != http.StatusUnauthorized {
			t.Errorf("the cookie opens the API: %s", response.Status)
		}
	})
	token := v.mustToken(t)
	t.Run("what the token is good for", func(t *testing.T) {
		claims := devClaims(t, token)
		if life := claims["exp"].(float64) - claims["iat"].(float64); life > 300 || claims["aud"] != d.url+"/api" {
			t.Errorf("the token is %v", claims)
		}
		status, body := d.api(t, token, http.MethodGet, "/api/me")
		if status != http.StatusOK || !strings.Contains(body, `"may":[]`) || !strings.Contains(body, `"agent":null`) {
			t.Errorf("who it is: %d %s", status, body)
		}
		admin := d.logsInAs(t, "admin@example.test", "/console").mustToken(t)
		if status, body := d.api(t, admin, http.MethodGet, "/api/me"); status != http.StatusOK || !strings.Contains(body, `"administer"`) || strings.Contains(body, "decide_approvals") {
			t.Errorf("who an administrator is: %d %s", status, body)
		}
		for _, path := range []string{"/mcp/demo", "/sse/demo", "/api/llm-gateway/v1/models"} {
			if status, body := d.asked(t, token, http.MethodGet, path, ""); status != http.StatusUnauthorized {
				t.Errorf("%s: %d %s", path, status, body)
			}
		}
		d.connect(t, alice, clientAccount)
		address := approvalPage.FindStringSubmatch(d.callTool(t, "delete_issue", `{"id":1}`))
		if address == nil {
			t.Fatal("the call was not held")
		}
		for _, decision := range []string{"approve", "deny"} {
			if status, body := d.asked(t, token, http.MethodPost, "/api/approvals/"+address[2]+"/"+decision, ""); status != http.StatusForbidden {
				t.Errorf("%s: %d %s", decision, status, body)
			}
		}
		const keys = "/api/llm-gateway/user/api-keys"
		if status, body := d.asked(t, token, http.MethodPost, keys, `{"name":"mine","scopes":["mcp"]}`); status != http.StatusForbidden {
			t.Errorf("a key for MCP servers: %d %s", status, body)
		}
		if status, body := d.asked(t, token, http.MethodPost, keys, `{"name":"mine","scopes":["llm"]}`); status != http.StatusOK {
			t.Errorf("a key for models: %d %s", status, body)
		}
	})
	t.Run("its end", func(t *testing.T) {
		other := d.logsIn(t, "/console")
		otherToken := other.mustToken(t)
		form := regexp.MustCompile(`name="form" value="([^"]+)"`).FindStringSubmatch(other.get(t, "/connect"))
		other.post(t, "/logout", "form="+form[1])
		began := time.Now()
		if status, body := d.api(t, otherToken, http.MethodGet, "/api/me"); status != http.StatusUnauthorized || time.Since(began) > time.Second {
			t.Errorf("after logging out: %d %s", status, body)
		}
		// Logging out ends the sessions that were begun before, and their tokens.
		if status, body := d.api(t, token, http.MethodGet, "/api/me"); status != http.StatusUnauthorized {
			t.Errorf("a session that was begun before: %d %s", status, body)
		}
		if status, _ := v.token(t, nil); status != http.StatusUnauthorized {
			t.Errorf("another token for it: %d", status)
		}
		ended := d.logsIn(t, "/console")
		token := ended.mustToken(t)
		id := devClaims(t, token)["sid"].(string)
		if status, body := d.asked(t, d.logsIn(t, "/console").mustToken(t), http.MethodDelete, "/api/sessions/"+id, ""); status != http.StatusNoContent {
			t.Fatalf("ending the login: %d %s", status, body)
		}
		if status, _ := d.api(t, token, http.MethodGet, "/api/me"); status != http.StatusUnauthorized {
			t.Errorf("after its login was ended: %d", status)
		}
		if status, _ := ended.token(t, nil); status != http.StatusUnauthorized {
			t.Errorf("another token after its login was ended: %d", status)
		}
	})
	d.process.stop(t)
	d.process.checkLog(t)
}
