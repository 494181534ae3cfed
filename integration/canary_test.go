package integration

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// TestCanarySweep checks that with a secret of its own in every place where a secret can be, and the log at its most
// talkative, nothing that the gateway writes, answers or stores shows one (L01, L03, L05, D08).
func TestCanarySweep(t *testing.T) {
	t.Parallel()
	c := startCanaries(t)
	c.connectAndUse()
	c.configuredClient()
	c.typedCredentials()
	c.failingExchanges()
	c.failingRefreshes()
	c.failingUpstreams()
	c.badRequests()
	c.gatewayKeys()
	c.mustReload(strings.Replace(c.written(), "persist_config off", "", 1))
	c.plant()
	c.learn()

	everywhere := map[string]string{"metrics": c.admin("/metrics"), "configuration": c.admin("/config/")}
	if !strings.Contains(everywhere["metrics"], "durward_calls_total") || !strings.Contains(everywhere["configuration"], "{env.DURWARD_TEST_KEY}") {
		t.Error("metrics or configuration are not what is searched")
	}
	c.readFiles(everywhere, "running")
	if everywhere["running .config/caddy/autosave.json"] == "" {
		t.Error("there is no autosave to search")
	}
	c.stop(t)
	c.readFiles(everywhere, "stopped")
	everywhere["log"] = c.output.String()
	for _, said := range []string{`"level":"debug"`, `"uri":"/api/oauth/callback?code=REDACTED`, `"handled request"`} {
		if !strings.Contains(everywhere["log"], said) {
			t.Errorf("the log does not say %s", said)
		}
	}
	for where, text := range everywhere {
		if found := c.sweep.find([]byte(text), "planted"); len(found) > 0 {
			t.Errorf("%s: %v", where, found)
			c.showLines(text)
		}
	}
	for _, a := range c.sweep.answers {
		if found := c.sweep.find(a.whole, append(a.meant, "planted")...); len(found) > 0 {
			t.Errorf("answer to %s: %v\n%s", a.request, found, tail(string(a.whole), 2_000))
		}
	}
	c.wantPlanted(everywhere)
	t.Logf("%d secrets of these kinds, in %d answers and %d other places: %s", len(c.sweep.known), len(c.sweep.answers), len(everywhere),
		strings.Join(c.sweep.kinds(), ", "))
}

// canaries is a gateway whose every secret is known.
type canaries struct {
	*gateway
	sweep        *sweep
	party        *thirdParty
	admin_, user string // tokens
}

func startCanaries(t *testing.T) *canaries {
	s := newSweep()
	party := newThirdParty(t)
	party.draw = s.draw
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(hex.EncodeToString(masterKey(s))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := startGateway(t, settings{
		global: "debug\nservers {\nlog_credentials\n}", option: approvalConsole + "\nmaster_key {file." + file + "}",
		site: "log",
		env:  []string{"DURWARD_TEST_KEY=" + base64.StdEncoding.EncodeToString(masterKey(s))},
	})
	g.client.Transport = &recorder{s, g.client.Transport}
	return &canaries{gateway: g, sweep: s, party: party, admin_: g.token(admin), user: g.token(alice)}
}

func masterKey(s *sweep) []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	s.add("master key", string(key))
	return key
}

// learn remembers the secrets that the gateway itself has made.
func (c *canaries) learn() {
	state, undo := regexp.MustCompile(`[?&]state=([\w-]{43})`), regexp.MustCompile(`name="undo" value="([^"]+)"`)
	for _, a := range c.sweep.answers {
		for _, match := range state.FindAllSubmatch(a.whole, -1) {
			c.sweep.add("state", string(match[1]))
		}
		for _, match := range undo.FindAllSubmatch(a.whole, -1) {
			c.sweep.add("undo token", string(match[1]))
		}
	}
	for _, form := range c.party.requests {
		c.sweep.add("verifier", form.Get("code_verifier"))
	}
	for _, kind := range []string{"state", "undo token", "verifier", "access token", "refresh token", "registered client secret", "caller's token"} {
		if !slices.Contains(c.sweep.kinds(), kind) {
			c.t.Errorf("the run had no %s", kind)
		}
	}
}

// oauthServer makes a server of the third party about which everything has to be discovered.
func (c *canaries) oauthServer() server {
	return c.createServer(c.party.url()+"/mcp", map[string]any{"provider": "oauth2", "requires_auth": true, "events_url": c.party.url() + "/events"})
}

// connectAndUse is the main job, with the refresh of a token in the middle, and its undoing.
func (c *canaries) connectAndUse() {
	s := c.oauthServer()
	c.callTool(c.user, s, "", "echo").wantConnect(c.t)
	c.connectOAuth(c.user, s).want(c.t, http.StatusOK)
	session := c.initialize(c.user, s)
	c.callTool(c.user, s, session, "echo").want(c.t, http.StatusOK)
	stream := c.listen(http.MethodGet, "/sse/"+s.Slug, c.user, nil)
	stream.next()
	stream.close()
	stream.ended()
	c.party.forgetAccess()
	c.callTool(c.user, s, session, "echo").want(c.t, http.StatusOK) // refreshed
	c.send(http.MethodDelete, s.path, c.user, nil, mcpHeader(session)...).want(c.t, http.StatusNoContent)
	c.api(c.user, http.MethodDelete, "/api/servers/"+s.ID+"/connection", nil)
	c.callTool(c.user, s, session, "echo").want(c.t, http.StatusOK)
	c.sweep.lastMeans("state") // it tells where to connect anew

	page := c.connectOAuth(c.user, s).want(c.t, http.StatusOK)
	undo := regexp.MustCompile(`name="undo" value="([^"]+)"`).FindSubmatch(page.body)
	if undo == nil {
		c.t.Fatalf("the page offers no undoing: %s", page.body)
	}
	form := url.Values{"undo": {string(undo[1])}}.Encode()
	c.send(http.MethodPost, "/api/oauth/undo", "", form, "Content-Type", "application/x-www-form-urlencoded", "Origin", "null").want(c.t, http.StatusOK)
	c.send(http.MethodPost, "/api/oauth/undo", "", form, "Content-Type", "application/x-www-form-urlencoded", "Origin", "null").want(c.t, http.StatusBadRequest)
	c.connectOAuth(c.user, s).want(c.t, http.StatusOK)
	c.api(c.admin_, http.MethodDelete, "/api/servers/"+s.ID, nil)
}

// configuredClient works with an OAuth client that an administrator supplies.
func (c *canaries) configuredClient() {
	endpoints := c.party.endpoints()
	delete(endpoints, "registration_endpoint")
	s := c.createServer(c.party.url()+"/mcp", map[string]any{"provider": "oauth2", "requires_auth": true, "oauth": endpoints})
	secret := c.sweep.draw("configured client secret")
	path := "/api/servers/" + s.ID
	c.api(c.admin_, http.MethodPut, path, map[string]any{"client_id": "configured-client", "client_secret": secret})
	c.api(c.user, http.MethodGet, path, nil)
	c.api(c.user, http.MethodGet, "/api/servers?limit=100", nil)
	c.connectOAuth(c.user, s).want(c.t, http.StatusOK)
	c.callTool(c.user, s, "", "echo").want(c.t, http.StatusOK)
	for _, wrong := range []any{[]string{secret}, secret + "...", strings.Repeat(secret, 200), secret + "\n"} {
		c.send(http.MethodPut, path, c.admin_, map[string]any{"client_secret": wrong}).want(c.t, http.StatusUnprocessableEntity)
	}
	c.api(c.admin_, http.MethodPut, path, map[string]any{"client_secret": c.sweep.draw("configured client secret")})
	c.api(c.admin_, http.MethodDelete, path, nil)
}

// typedCredentials connects with what users type, and sees it arrive.
func (c *canaries) typedCredentials() {
	open := c.party.url() + "/open"
	key, bearer, name, password := c.sweep.draw("API key"), c.sweep.draw("bearer token"), c.sweep.draw("user name"), c.sweep.draw("password")
	c.sweep.add("basic credentials", base64.StdEncoding.EncodeToString([]byte(name+":"+password)))
	for _, kind := range []struct {
		entry   map[string]any
		connect map[string]any
		arrived func(http.Header, url.Values) bool
	}{
		{map[string]any{"provider": "api_key"}, map[string]any{"api_key": key},
			func(h http.Header, _ url.Values) bool { return h.Get("X-API-Key") == key }},
		{map[string]any{"provider": "api_key", "auth_params": map[string]any{"in": "query", "name": "key"}}, map[string]any{"api_key": key},
			func(_ http.Header, q url.Values) bool { return q.Get("key") == key }},
		{map[string]any{"provider": "bearer_token"}, map[string]any{"token": bearer},
			func(h http.Header, _ url.Values) bool { return h.Get("Authorization") == "Bearer "+bearer }},
		{map[string]any{"provider": "basic_auth"}, map[string]any{"username": name, "password": password},
			func(h http.Header, _ url.Values) bool {
				return h.Get("Authorization") == "Basic "+base64.StdEncoding.EncodeToString([]byte(name+":"+password))
			}},
	} {
		kind.entry["requires_auth"], kind.entry["events_url"] = true, open+"/events"
		s := c.createServer(open, kind.entry)
		c.api(c.user, http.MethodPost, "/api/servers/"+s.ID+"/connect", kind.connect)
		c.callTool(c.user, s, c.initialize(c.user, s), "echo").want(c.t, http.StatusOK)
		if header, query := c.party.lastSeen(); !kind.arrived(header, query) {
			c.t.Errorf("%v: the credential did not arrive", kind.entry)
		}
		c.callTool(c.user, s, "", "page").want(c.t, http.StatusBadGateway)
		c.api(c.user, http.MethodDelete, "/api/servers/"+s.ID+"/connection", nil)
	}
}

// failingExchanges are providers that answer a code with what they were sent.
func (c *canaries) failingExchanges() {
	for name, answer := range c.failures() {
		s := c.oauthServer()
		c.party.setTokenAnswer(answer)
		if a := c.connectOAuth(c.user, s); a.status != http.StatusBadRequest {
			c.t.Errorf("exchange %s: status %d", name, a.status)
		}
		c.party.setTokenAnswer(nil)
	}
	s := c.oauthServer()
	for _, answer := range []url.Values{
		{"error": {"access_denied"}}, {"error": {"server_error"}}, {"code": {c.sweep.draw("authorization code")}, "iss": {"https://other.example"}},
		{"code": {c.sweep.draw("authorization code"), c.sweep.draw("authorization code")}},
	} {
		begun, err := url.Parse(c.beginConnect(c.user, s))
		if err != nil {
			c.t.Fatal(err)
		}
		state := begun.Query().Get("state")
		answer.Set("state", state)
		answer.Set("error_description", "state "+state+" was not good")
		c.send(http.MethodGet, "/api/oauth/callback?"+answer.Encode(), "", nil).want(c.t, http.StatusBadRequest)
		c.send(http.MethodGet, "/api/oauth/callback?"+answer.Encode(), "", nil).want(c.t, http.StatusBadRequest) // spent
		c.send(http.MethodPost, "/api/oauth/callback?"+answer.Encode(), "", nil).want(c.t, http.StatusMethodNotAllowed)
	}
}

// failures are ways in which a token endpoint refuses while repeating what it was sent.
func (c *canaries) failures() map[string]func(http.ResponseWriter, url.Values) bool {
	refuse := func(status int, body func(echo string) any) func(http.ResponseWriter, url.Values) bool {
		return func(w http.ResponseWriter, form url.Values) bool {
			echo := strings.Join([]string{form.Get("code"), form.Get("code_verifier"), form.Get("refresh_token"), form.Get("client_secret")}, " ")
			writeJSON(w, status, body(echo))
			return true
		}
	}
	object := func(code string) func(string) any {
		return func(echo string) any {
			return map[string]string{"error": code, "error_description": "you sent " + echo}
		}
	}
	return map[string]func(http.ResponseWriter, url.Values) bool{
		"invalid_grant":  refuse(http.StatusBadRequest, object("invalid_grant")),
		"invalid_client": refuse(http.StatusUnauthorized, object("invalid_client")),
		"error in a 200": refuse(http.StatusOK, object("invalid_request")),
		"server error":   refuse(http.StatusInternalServerError, object("server_error")),
		"wrong type":     refuse(http.StatusBadRequest, func(echo string) any { return map[string]any{"error": []string{echo}} }),
		"a string":       refuse(http.StatusOK, func(echo string) any { return echo }),
		"a secret for a code": func(w http.ResponseWriter, form url.Values) bool {
			writeJSON(w, http.StatusBadRequest, map[string]string{"error": form.Get("code") + form.Get("code_verifier")})
			return true
		},
		"a redirect": func(w http.ResponseWriter, form url.Values) bool {
			w.Header().Set("Location", "/elsewhere?"+form.Encode())
			w.WriteHeader(http.StatusTemporaryRedirect)
			return true
		},
		"odd tokens": func(w http.ResponseWriter, _ url.Values) bool {
			writeJSON(w, http.StatusOK, map[string]any{
				"token_type": c.sweep.draw("access token"), "access_token": c.sweep.draw("access token"), "refresh_token": c.sweep.draw("refresh token"),
			})
			return true
		},
		"half an answer": func(w http.ResponseWriter, form url.Values) bool {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"error":"` + form.Encode() + c.sweep.draw("access token")))
			panic(http.ErrAbortHandler)
		},
	}
}

// failingRefreshes are upstreams that refuse tokens whose refresh fails.
func (c *canaries) failingRefreshes() {
	for name, answer := range c.failures() {
		s := c.oauthServer()
		c.connectOAuth(c.user, s).want(c.t, http.StatusOK)
		c.party.forgetAccess()
		c.party.setTokenAnswer(answer)
		if a := c.callTool(c.user, s, "", "echo"); !rig.LeadsToConnect(a.status, a.body) && a.status != http.StatusServiceUnavailable {
			c.t.Errorf("refresh %s: status %d: %s", name, a.status, a.body)
		}
		c.send(http.MethodGet, "/sse/"+s.Slug, c.user, nil)
		c.party.setTokenAnswer(nil)
		c.connection(c.user, s)
	}
	// The token that a refresh brings is refused as well.
	s := c.oauthServer()
	c.connectOAuth(c.user, s).want(c.t, http.StatusOK)
	c.party.forgetAccess()
	c.party.setTokenAnswer(func(w http.ResponseWriter, _ url.Values) bool {
		writeJSON(w, http.StatusOK, map[string]any{"token_type": "Bearer", "access_token": c.sweep.draw("access token")})
		return true
	})
	c.callTool(c.user, s, "", "echo")
	c.callTool(c.user, s, "", "echo").wantConnect(c.t)
	c.party.setTokenAnswer(nil)
}

// failingUpstreams cannot be reached, with a credential in their address.
func (c *canaries) failingUpstreams() {
	nowhere := "http://127.0.0.1:" + freePort(c.t)
	s := c.createServer(nowhere+"/mcp", map[string]any{
		"provider": "api_key", "requires_auth": true, "auth_params": map[string]any{"in": "query", "name": "key"}, "events_url": nowhere + "/events",
	})
	c.api(c.user, http.MethodPost, "/api/servers/"+s.ID+"/connect", map[string]any{"api_key": c.sweep.draw("API key")})
	c.callTool(c.user, s, "", "echo").want(c.t, http.StatusBadGateway)
	c.send(http.MethodGet, "/sse/"+s.Slug, c.user, nil).want(c.t, http.StatusBadGateway)
}

// badRequests hold secrets in the wrong shape or place.
func (c *canaries) badRequests() {
	s := c.createServer(c.party.url()+"/open", map[string]any{"provider": "api_key", "requires_auth": true})
	key := c.sweep.draw("API key")
	path := "/api/servers/" + s.ID + "/connect"
	for _, body := range []any{
		map[string]any{"api_key": []string{key}}, map[string]any{"api_key": map[string]any{key: 1}}, map[string]any{"api_key": strings.Repeat(key, 300)},
		map[string]any{"api_key": key + "\n"}, map[string]any{"bearer_token": key}, map[string]any{key: key},
		`{"api_key":"` + base64url([]byte(key)) + `",}`, `{"api_key":"` + base64url([]byte(key)) + `","api_key":"x"}`, `{"api_key":` + base64url([]byte(key)),
		map[string]any{"api_key": key, "return_url": 1}, map[string]any{"username": key, "password": []string{key}, "token": map[string]any{"token": key}},
	} {
		a := c.send(http.MethodPost, path, c.user, body)
		if a.status != http.StatusUnprocessableEntity && a.status != http.StatusBadRequest && a.status != http.StatusOK {
			c.t.Errorf("%v: status %d: %s", body, a.status, a.body)
		}
	}
	c.send(http.MethodPost, path+"?return_url="+url.QueryEscape("https://evil.example/"), c.user, map[string]any{"api_key": key}).want(c.t, http.StatusUnprocessableEntity)

	c.misplacedSecrets(s)
	other := newIdentityProvider(c.t)
	expired := alice.with(claims{"exp": time.Now().Add(-time.Hour).Unix()})
	forged := other.sign(c.identity.complete(alice, c.url), map[string]any{"alg": "ES256", "kid": kidES256})
	nobody := c.token(alice.with(claims{"org_id": nil}))
	for _, token := range []string{c.token(expired), forged, nobody, c.user + "x", "dw-" + c.sweep.draw("API key")} {
		if a := c.send(http.MethodGet, "/api/servers", token, nil); a.status != http.StatusUnauthorized && a.status != http.StatusForbidden {
			c.t.Errorf("a token that is not good: status %d", a.status)
		}
		c.send(http.MethodPost, s.path, token, toolCall("echo"))
	}
	for _, header := range [][]string{
		{"X-Api-Key", c.sweep.draw("API key")}, {"Cookie", "session=" + c.sweep.draw("cookie")}, {"Proxy-Authorization", "Basic " + c.sweep.draw("proxy credentials")},
		{"Authorization", "Basic " + c.sweep.draw("basic credentials")},
	} {
		c.send(http.MethodGet, "/api/servers", "", nil, header...).want(c.t, http.StatusUnauthorized)
	}
	c.send(http.MethodGet, "/api/servers?access_token="+c.user, "", nil).want(c.t, http.StatusUnauthorized)
}

// misplacedSecrets are those in fields of another type, within their values and beside them.
func (c *canaries) misplacedSecrets(s server) {
	secret := c.sweep.draw("client secret")
	for _, name := range []any{
		map[string]any{"client_secret": secret}, []any{map[string]any{"deep": []any{map[string]any{"Access-Token": secret}}}},
		[]any{`{"client_secret":"` + secret + `"}`}, []any{"Authorization: Bearer " + secret},
	} {
		for _, to := range []struct {
			method, path, token string
			body                map[string]any
		}{
			{http.MethodPost, "/api/servers", c.admin_, map[string]any{"name": name, "directory_id": name, "meta": []any{name}}},
			{http.MethodPut, "/api/servers/" + s.ID, c.admin_, map[string]any{"name": name, "filters": name}},
			{http.MethodPost, "/api/server-directory", c.admin_, map[string]any{"name": name, "url": name, "oauth": []any{name}}},
			{http.MethodPost, "/api/v2/policies", c.admin_, map[string]any{"name": name, "rules": name}},
			{http.MethodPost, "/api/agents", c.admin_, map[string]any{"name": name, "status": name}},
			{http.MethodPost, "/api/servers", c.admin_, map[string]any{"name": []any{secret}, "client_secret": secret}},
			{http.MethodPost, "/api/server-directory", c.admin_, map[string]any{"slug": secret + "!", "oauth": map[string]any{"client_secret": secret, "scopes": secret}}},
		} {
			if a := c.send(to.method, to.path, to.token, to.body); a.status != http.StatusUnprocessableEntity && a.status != http.StatusBadRequest {
				c.t.Errorf("%s %s %v: status %d: %s", to.method, to.path, to.body, a.status, a.body)
			}
		}
	}
	for _, address := range []string{"http://user:" + secret + "@example.com/mcp", "https://example.com:a/?access_token=" + secret} {
		c.send(http.MethodPost, "/api/server-directory", c.admin_, map[string]any{"name": "x", "url": address}).want(c.t, http.StatusUnprocessableEntity)
	}
}

// gatewayKeys are keys of the gateway's own: shown once, used well and badly, revoked.
func (c *canaries) gatewayKeys() {
	s := c.createServer(c.party.url()+"/open", nil)
	for _, scope := range []string{"mcp", "llm"} {
		raw, id := c.makeKey(c.consoleToken(alice), scope)
		c.sweep.add("the gateway's API key", raw)
		c.sweep.lastMeans("the gateway's API key")
		for range 2 {
			for _, header := range [][]string{{"Authorization", "Bearer " + raw}, {"X-Api-Key", raw}, {"Authorization", "Bearer " + raw, "X-Api-Key", raw + "x"}, {"Authorization", raw}} {
				for _, path := range []string{s.path, "/sse/" + s.Slug, "/api/servers", "/api/llm-gateway/v1/models", "/api/llm-gateway/v1/messages"} {
					c.send(http.MethodPost, path, "", toolCall("echo"), header...)
				}
			}
			c.api(c.user, http.MethodDelete, keysPath+"/"+id, nil)
		}
	}
}

// showLines logs where secrets stand.
func (c *canaries) showLines(text string) {
	for line := range strings.Lines(text) {
		if found := c.sweep.find([]byte(line), "planted"); len(found) > 0 {
			c.t.Logf("%v in %s", found, tail(line, 2_000))
		}
	}
}

// plant puts a secret where it is kept: into the log, the database and an answer.
func (c *canaries) plant() {
	logged, kept := c.sweep.draw("planted"), c.sweep.draw("planted")
	c.send(http.MethodGet, "/sse/nothing", c.user, nil, "X-Session-Id", logged)
	c.send(http.MethodPost, "/mcp/nothing", c.user, "{}", "X-Session-Id", logged)
	c.createServer(c.party.url()+"/open", map[string]any{"description": kept})
}

// wantPlanted fails the test unless the sweep has found what was planted: it would have found the others as well.
func (c *canaries) wantPlanted(everywhere map[string]string) {
	places := []string{"log", "running durward.db-wal", "stopped durward.db"}
	if c.database() != "" {
		places = []string{"log", "running database", "stopped database"}
	}
	for _, where := range places {
		if len(c.sweep.find([]byte(everywhere[where]))) == 0 {
			c.t.Errorf("%s: what was planted is not found", where)
		}
	}
	if !slices.ContainsFunc(c.sweep.answers, func(a sentAnswer) bool { return len(c.sweep.find(a.whole, a.meant...)) > 0 }) {
		c.t.Error("answers: what was planted is not found")
	}
}

// readFiles adds every file of the gateway's directory, and what is in its database.
func (g *gateway) readFiles(everywhere map[string]string, when string) {
	if database := g.database(); database != "" {
		everywhere[when+" database"] = pgtest.Dump(g.t, database)
	}
	err := filepath.WalkDir(g.directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(g.directory, path)
		everywhere[fmt.Sprint(when, " ", name)] = string(content)
		return err
	})
	if err != nil {
		g.t.Fatal(err)
	}
}
