package integration

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// TestBrowser checks that a person with a browser can log in and connect by clicking. No page needs a script, and the
// browser complains about none.
func TestBrowser(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	alice := d.token(t)
	b := rig.StartBrowser(t)
	landing := newLanding(t)

	t.Run("connecting and undoing", func(t *testing.T) {
		b.T = t
		p := b.Open(d.authURL(t, alice, ""))
		b.Contains(p, "Connect your demo account", "demo")
		b.Picture("demo-login")
		b.Fill("Account", "demo-bob")
		p = b.Click("Connect")
		b.Contains(p, "is connected", "alice@example.test", "acme", "Undo this connection")
		b.Picture("connected")
		if !strings.HasPrefix(p.URL, d.url+"/api/oauth/callback?") {
			t.Errorf("the browser ended at %s", p.URL)
		}
		if got := d.connection(t, alice); got != "connected" {
			t.Errorf("the connection is %s", got)
		}
		if got := d.whoami(t, alice); got != "demo-bob" {
			t.Errorf("connected as %s", got)
		}
		p = b.Click("Undo this connection")
		b.Contains(p, "undone")
		b.Picture("undone")
		form := p.Documents[len(p.Documents)-1]
		if form.Method != http.MethodPost || form.Status != http.StatusOK || form.Origin != "null" || form.Referer != "" {
			t.Errorf("the form was sent like this: %+v", form)
		}
		if got := d.connection(t, alice); got != "available" {
			t.Errorf("after undoing the connection is %s", got)
		}
	})
	t.Run("returning to an application", func(t *testing.T) {
		b.T = t
		for _, test := range []struct{ button, status string }{{"Do not allow", "error"}, {"Connect", "connected"}} {
			b.Open(d.authURL(t, alice, landing+"/app?tab=1"))
			p := b.Click(test.button)
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
		b.Contains(b.Open(d.authURL(t, alice, "")), "Connect")
		p := b.Click("Do not allow")
		b.Contains(p, "not connected", "denied")
		b.Picture("denied")
		b.Contains(b.Follow("Try again"), "Log in as")
	})
	t.Run("logging in", func(t *testing.T) {
		b.T = t
		verifier := rand.Text() + rand.Text()
		challenge := sha256.Sum256([]byte(verifier))
		query := url.Values{
			"response_type": {"code"}, "client_id": {"dev-agent"}, "redirect_uri": {landing + "/callback"}, "state": {"state-1"},
			"code_challenge": {base64url(challenge[:])}, "code_challenge_method": {"S256"}, "resource": {d.url + "/mcp/demo"},
		}
		p := b.Open(d.url + "/oauth/authorize?" + query.Encode())
		b.Contains(p, loginTitle, "The gateway", "durward", "alice@example.test", "eve@rival.test")
		b.Picture("login")
		p = b.Click("bob@example.test")
		b.Contains(p, "Let Development agent act for you?", "set up by the gateway's operator", "bob@example.test")
		p = b.Click("Let it act for me")
		b.Contains(p, "Connect your account at Demo?")
		p = b.Click("Later")
		back, err := url.Parse(p.URL)
		if err != nil || !strings.HasPrefix(p.URL, landing+"/callback?") || back.Query().Get("state") != "state-1" {
			t.Fatalf("the browser ended at %s", p.URL)
		}
		response, err := newClient(t).PostForm(d.url+"/oauth/token", url.Values{
			"grant_type": {"authorization_code"}, "code": {back.Query().Get("code")}, "redirect_uri": {landing + "/callback"},
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
		if status, body := d.api(t, tokens.AccessToken, http.MethodGet, "/api/servers"); status != http.StatusUnauthorized {
			t.Errorf("a token for the server demo alone opens the API: %d %s", status, body)
		}
		if claims := devClaims(t, tokens.AccessToken); claims["sub"] != devClaims(t, d.tokenOf(t, "bob@example.test"))["sub"] || claims["aud"] != d.url+"/mcp/demo" {
			t.Errorf("logged in as %v", claims)
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

// authURL begins a connection to the demo and returns the address to which the user has to go.
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
