package integration

import (
	"bufio"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
)

// browser is a Chromium that a test drives.
type browser struct {
	t       *testing.T
	input   io.Writer
	answers chan page
}

// page is what the browser shows after a command.
type page struct {
	URL        string     `json:"url"`
	Title      string     `json:"title"`
	Text       string     `json:"text"`
	Documents  []document `json:"documents"` // all that it went through, redirects included
	Complaints []string   `json:"complaints"`
	Error      string     `json:"error"`
}

type document struct {
	Status  int    `json:"status"`
	Method  string `json:"method"`
	URL     string `json:"url"`
	Origin  string `json:"origin"`
	Referer string `json:"referer"`
}

// startBrowser starts the Chromium that is installed, with an empty profile.
func startBrowser(t *testing.T) *browser {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v; `make setup` installs it on Debian", err)
	}
	tools := rig.Tools(t, "browser")
	home, err := os.MkdirTemp("", "browser-") //nolint:usetesting // the browser may still write to it while it ends
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("node", "browser/drive.mjs", tools, chromium, filepath.Join(home, "profile"))
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "XDG_RUNTIME_DIR=" + home}
	var complaint transcript
	command.Stderr, command.WaitDelay = &complaint, stopTimeout
	input, output := rig.Pipes(t, command)
	b := &browser{t: t, input: input, answers: make(chan page)}
	go b.read(output)
	t.Cleanup(func() {
		_ = input.Close() // ends the driver, which ends the browser
		timer := time.AfterFunc(stopTimeout, func() { _ = command.Process.Kill() })
		err := command.Wait()
		timer.Stop()
		if err != nil {
			t.Errorf("the browser's driver: %v\n%s", err, complaint.String())
		}
		_ = os.RemoveAll(home)
	})
	return b
}

func (b *browser) read(output io.Reader) {
	defer close(b.answers)
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var p page
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			p.Error = fmt.Sprintf("%v: %s", err, lines.Bytes())
		}
		b.answers <- p
	}
}

// command gives the browser a command. A page that the browser complains about (a script, a style or a form that its
// policy forbids, a request that fails) fails the test.
func (b *browser) command(command map[string]string) page {
	b.t.Helper()
	encoded, err := json.Marshal(command)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.input.Write(append(encoded, '\n')); err != nil {
		b.t.Fatal(err)
	}
	select {
	case p, ok := <-b.answers:
		if !ok {
			b.t.Fatalf("%v: the browser's driver has ended", command)
		}
		if p.Error != "" {
			b.t.Fatalf("%v at %s: %s\n%v", command, p.URL, p.Error, p.Complaints)
		}
		if len(p.Complaints) > 0 {
			b.t.Errorf("%v: the browser complains at %s: %q", command, p.URL, p.Complaints)
		}
		return p
	case <-time.After(2 * callTimeout):
		b.t.Fatalf("%v: the browser does not answer", command)
	}
	return page{}
}

func (b *browser) open(address string) page {
	b.t.Helper()
	return b.command(map[string]string{"do": "open", "url": address})
}
func (b *browser) click(name string) page {
	b.t.Helper()
	return b.command(map[string]string{"do": "click", "name": name})
}
func (b *browser) follow(name string) page {
	b.t.Helper()
	return b.command(map[string]string{"do": "follow", "name": name})
}
func (b *browser) fill(name, text string) page {
	b.t.Helper()
	return b.command(map[string]string{"do": "fill", "name": name, "text": text})
}

// picture keeps what the browser shows, on a desk and on a phone, in light and in dark, in the directory BROWSER_PICTURES, for
// whoever wants to look at it.
func (b *browser) picture(name string) {
	b.t.Helper()
	if directory := os.Getenv("BROWSER_PICTURES"); directory != "" {
		b.command(map[string]string{"do": "picture", "path": filepath.Join(directory, name+".png")})
	}
}

// contains fails the test unless the page shows all of the texts.
func (b *browser) contains(p page, texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		if !strings.Contains(p.Title+"\n"+p.Text, text) {
			b.t.Errorf("%s does not show %q: %s", p.URL, text, p.Text)
		}
	}
}

// TestBrowser: a person with a browser logs in and connects by clicking; no page needs a script, and none is complained about.
func TestBrowser(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	alice := d.token(t)
	b := startBrowser(t)
	landing := newLanding(t)

	t.Run("connecting and undoing", func(t *testing.T) {
		b.t = t
		p := b.open(d.authURL(t, alice, ""))
		b.contains(p, "Connect your demo account", "demo")
		b.picture("demo-login")
		b.fill("Account", "demo-bob")
		p = b.click("Connect")
		b.contains(p, "is connected", "alice@example.test", "acme", "Undo this connection")
		b.picture("connected")
		if !strings.HasPrefix(p.URL, d.url+"/api/oauth/callback?") {
			t.Errorf("the browser ended at %s", p.URL)
		}
		if got := d.connection(t, alice); got != "connected" {
			t.Errorf("the connection is %s", got)
		}
		if got := d.whoami(t, alice); got != "demo-bob" {
			t.Errorf("connected as %s", got)
		}
		p = b.click("Undo this connection")
		b.contains(p, "undone")
		b.picture("undone")
		form := p.Documents[len(p.Documents)-1]
		if form.Method != http.MethodPost || form.Status != http.StatusOK || form.Origin != "null" || form.Referer != "" {
			t.Errorf("the form was sent like this: %+v", form)
		}
		if got := d.connection(t, alice); got != "available" {
			t.Errorf("after undoing the connection is %s", got)
		}
	})
	t.Run("returning to an application", func(t *testing.T) {
		b.t = t
		for _, test := range []struct{ button, status string }{{"Do not allow", "error"}, {"Connect", "connected"}} {
			b.open(d.authURL(t, alice, landing+"/app?tab=1"))
			p := b.click(test.button)
			if want := landing + "/app?tab=1&status=" + test.status + "&server=demo"; p.URL != want {
				t.Errorf("%s: the browser ended at %s instead of %s", test.button, p.URL, want)
			}
			back := p.Documents[len(p.Documents)-2]
			if back.Status != http.StatusSeeOther || !strings.HasPrefix(back.URL, d.url+"/api/oauth/callback?") {
				t.Errorf("%s: it came from %+v", test.button, back)
			}
			if last := p.Documents[len(p.Documents)-1]; last.Referer != "" {
				t.Errorf("%s: the application learns where the browser came from: %s", test.button, last.Referer)
			}
		}
		b.contains(b.open(d.authURL(t, alice, "")), "Connect")
		p := b.click("Do not allow")
		b.contains(p, "not connected", "denied")
		b.picture("denied")
		b.contains(b.follow("Try again"), "Log in as")
	})
	t.Run("logging in", func(t *testing.T) {
		b.t = t
		verifier := rand.Text() + rand.Text()
		challenge := sha256.Sum256([]byte(verifier))
		query := url.Values{
			"response_type": {"code"}, "client_id": {"dev-agent"}, "redirect_uri": {landing + "/login"}, "state": {"state-1"},
			"code_challenge": {base64url(challenge[:])}, "code_challenge_method": {"S256"}, "resource": {d.url + "/mcp/demo"},
		}
		p := b.open(d.url + "/dev/idp/authorize?" + query.Encode())
		b.contains(p, "dev-agent", "alice@example.test", "eve@rival.test")
		b.picture("login")
		p = b.click("bob@example.test")
		back, err := url.Parse(p.URL)
		if err != nil || !strings.HasPrefix(p.URL, landing+"/login?") || back.Query().Get("state") != "state-1" {
			t.Fatalf("the browser ended at %s", p.URL)
		}
		response, err := newClient(t).PostForm(d.url+"/dev/idp/token", url.Values{
			"grant_type": {"authorization_code"}, "code": {back.Query().Get("code")}, "redirect_uri": {landing + "/login"},
			"client_id": {"dev-agent"}, "code_verifier": {verifier},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var tokens struct {
			AccessToken string `json:"access_token"`
		}
		if err := json.NewDecoder(response.Body).Decode(&tokens); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("token endpoint: %s, %v", response.Status, err)
		}
		if claims := devClaims(t, tokens.AccessToken); claims["email"] != "bob@example.test" {
			t.Errorf("logged in as %v", claims["email"])
		}
	})
	d.process.stop(t)
	d.process.checkLog(t)
}

// newLanding is an application's page, to which browsers are sent back.
func newLanding(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>Application</title><p>You are back.</p></html>`)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// authURL begins a connection to the demo and returns where the user has to go.
func (d *dev) authURL(t *testing.T, token, returnURL string) string {
	t.Helper()
	path := "/api/servers/demo/connect"
	if returnURL != "" {
		path += "?return_url=" + url.QueryEscape(returnURL)
	}
	status, body := d.api(t, token, http.MethodPost, path)
	var begun struct {
		AuthURL string `json:"auth_url"`
	}
	if err := json.Unmarshal([]byte(body), &begun); err != nil || status != http.StatusOK {
		t.Fatalf("connect: status %d, %v: %s", status, err, body)
	}
	return begun.AuthURL
}

// connection returns the status of a user's connection to the demo.
func (d *dev) connection(t *testing.T, token string) string {
	t.Helper()
	status, body := d.api(t, token, http.MethodGet, "/api/servers/demo/connection")
	var connection struct {
		Status string `json:"status"`
	}
	if err := json.Unmarshal([]byte(body), &connection); err != nil || status != http.StatusOK {
		t.Fatalf("connection: status %d, %v: %s", status, err, body)
	}
	return connection.Status
}
