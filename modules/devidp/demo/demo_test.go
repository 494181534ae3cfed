package demo

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	callback = "http://127.0.0.1:7777/api/oauth/callback"
	verifier = "a-verifier-of-enough-characters-0123456789-abcdef"
	patience = 10 * time.Second
)

type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// bench is a demo third party behind a real listener.
type bench struct {
	t      *testing.T
	base   string
	demo   *Demo
	clock  *clock
	client *http.Client
}

func open(t *testing.T, dir string) *bench {
	t.Helper()
	b := &bench{t: t, clock: &clock{t: time.Now()}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.demo.Handler().ServeHTTP(w, r) }))
	b.base = "http://" + server.Listener.Addr().String()
	var err error
	if b.demo, err = Open(Options{Dir: dir, BaseURL: b.base, Now: b.clock.now}); err != nil {
		t.Fatal(err)
	}
	server.Start()
	t.Cleanup(func() {
		if err := b.demo.Close(); err != nil {
			t.Errorf("closing: %v", err)
		}
		server.Close()
	})
	b.client = server.Client()
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return b
}

func (b *bench) do(method, path string, form url.Values, header ...string) (*http.Response, []byte) {
	b.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequest(method, b.base+path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	answer, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	read, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer, read
}

func (b *bench) register() string {
	b.t.Helper()
	m, err := oauthex.RegisterClient(context.Background(), b.base+"/register", &oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{callback}, ClientName: "durward", TokenEndpointAuthMethod: "none", GrantTypes: []string{"authorization_code", "refresh_token"},
	}, b.client)
	if err != nil {
		b.t.Fatal(err)
	}
	return m.ClientID
}

func (b *bench) request(client string) url.Values {
	sum := sha256.Sum256([]byte(verifier))
	return url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {callback}, "state": {"st"}, "scope": {Scope}, "resource": {b.demo.MCPURL()},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
}

var ticketField = regexp.MustCompile(`name="ticket" value="([^"]+)"`)

func (b *bench) login(q url.Values, account string) url.Values {
	b.t.Helper()
	answer, body := b.do(http.MethodGet, "/authorize?"+q.Encode(), nil)
	m := ticketField.FindSubmatch(body)
	if answer.StatusCode != http.StatusOK || m == nil {
		b.t.Fatalf("login page: %d %s", answer.StatusCode, body)
	}
	answer, body = b.do(http.MethodPost, "/authorize", url.Values{"ticket": {string(m[1])}, "account": {account}}, "Origin", b.base)
	u, err := url.Parse(answer.Header.Get("Location"))
	if answer.StatusCode != http.StatusSeeOther || err != nil {
		b.t.Fatalf("login: %d %s", answer.StatusCode, body)
	}
	return u.Query()
}

type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Expires int    `json:"expires_in"`
	Error   string `json:"error"`
}

func (b *bench) token(form url.Values) tokens {
	b.t.Helper()
	_, body := b.do(http.MethodPost, "/token", form)
	var got tokens
	if err := json.Unmarshal(body, &got); err != nil {
		b.t.Fatalf("%s: %v", body, err)
	}
	return got
}

func (b *bench) connect(client, account string) tokens {
	b.t.Helper()
	back := b.login(b.request(client), account)
	if back.Get("iss") != b.base || back.Get("state") != "st" {
		b.t.Fatalf("answer %v", back)
	}
	got := b.token(url.Values{"grant_type": {"authorization_code"}, "code": {back.Get("code")}, "redirect_uri": {callback}, "client_id": {client},
		"code_verifier": {verifier}, "resource": {b.demo.MCPURL()}})
	if got.Access == "" || got.Refresh == "" || got.Expires != 600 {
		b.t.Fatalf("token: %+v", got)
	}
	return got
}

func refreshForm(client, token string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {client}}
}

// good tells whether an access token opens the MCP server, by a request that no session is made for.
func (b *bench) good(token string) bool {
	b.t.Helper()
	answer, _ := b.do(http.MethodDelete, "/mcp", nil, "Authorization", "Bearer "+token)
	return answer.StatusCode != http.StatusUnauthorized
}

func TestDiscoveryFromTheServerAlone(t *testing.T) {
	b := open(t, t.TempDir())
	for _, path := range []string{"/mcp", "/events"} {
		answer, _ := b.do(http.MethodGet, path, nil)
		challenges, err := oauthex.ParseWWWAuthenticate(answer.Header.Values("WWW-Authenticate"))
		if answer.StatusCode != 401 || err != nil || len(challenges) != 1 {
			t.Fatalf("%s: %d %v %v", path, answer.StatusCode, challenges, err)
		}
		prm, err := oauthex.GetProtectedResourceMetadata(context.Background(), challenges[0].Params["resource_metadata"], b.demo.MCPURL(), b.client)
		if err != nil || len(prm.AuthorizationServers) != 1 || prm.AuthorizationServers[0] != b.base {
			t.Fatalf("%s: %+v %v", path, prm, err)
		}
	}
	meta, err := auth.GetAuthServerMetadata(context.Background(), b.base, b.client)
	if err != nil || meta == nil || meta.RevocationEndpoint == "" || meta.RegistrationEndpoint == "" || !cmp.Equal(meta.CodeChallengeMethodsSupported, []string{"S256"}) {
		t.Errorf("%+v %v", meta, err)
	}
}

func TestRefusals(t *testing.T) {
	b := open(t, t.TempDir())
	client := b.register()
	for name, test := range map[string]struct{ param, value, want string }{
		"A05 plain PKCE":     {"code_challenge_method", "plain", "invalid_request"},
		"unknown scope":      {"scope", "admin", "invalid_scope"},
		"another's resource": {"resource", "http://other.test/mcp", "invalid_target"},
	} {
		q := b.request(client)
		q.Set(test.param, test.value)
		answer, _ := b.do(http.MethodGet, "/authorize?"+q.Encode(), nil)
		u, _ := url.Parse(answer.Header.Get("Location"))
		if u.Query().Get("error") != test.want || u.Query().Get("iss") != b.base {
			t.Errorf("%s: %d %s", name, answer.StatusCode, u)
		}
	}
	q := b.request(client)
	q.Set("redirect_uri", "http://127.0.0.1:7777/other")
	if answer, _ := b.do(http.MethodGet, "/authorize?"+q.Encode(), nil); answer.StatusCode != 400 {
		t.Errorf("wrong redirect: %d", answer.StatusCode)
	}
	token := b.connect(client, "demo-alice").Access
	for name, header := range map[string][]string{
		"J03 another scheme": {"Authorization", "Basic " + token},
		"a changed token":    {"Authorization", "Bearer " + token + "x"},
		"two tokens":         {"Authorization", "Bearer " + token, "Authorization", "Bearer " + token},
		"two blanks":         {"Authorization", "Bearer  " + token},
	} {
		if answer, _ := b.do(http.MethodPost, "/mcp", nil, header...); answer.StatusCode != 401 || !strings.Contains(answer.Header.Get("WWW-Authenticate"), "invalid_token") {
			t.Errorf("%s: %d", name, answer.StatusCode)
		}
	}
	for name, header := range map[string][]string{
		"H15 Origin of another site": {"Origin", "https://evil.tld"},
		"H15 two Origins":            {"Origin", "http://localhost", "Origin", "http://localhost"},
		"X-Forwarded-Host":           {"X-Forwarded-Host", "localhost"},
	} {
		if answer, _ := b.do(http.MethodPost, "/mcp", nil, append(header, "Authorization", "Bearer "+token)...); answer.StatusCode != 403 {
			t.Errorf("%s: %d", name, answer.StatusCode)
		}
	}
	r, _ := http.NewRequest(http.MethodGet, b.base+"/events", nil)
	r.Host = "rebind.evil.tld"
	if answer, err := b.client.Do(r); err != nil || answer.StatusCode != 403 {
		t.Errorf("H15 rebinding Host: %v %v", answer, err)
	} else {
		_ = answer.Body.Close()
	}
}

func TestTokensOverTime(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir)
	client := b.register()
	first := b.connect(client, "demo-alice")
	b.clock.advance(10 * time.Minute)
	if b.good(first.Access) {
		t.Error("the access token outlived ten minutes")
	}
	second := b.token(refreshForm(client, first.Refresh))
	if !b.good(second.Access) || second.Refresh == first.Refresh {
		t.Fatalf("refreshed: %+v", second)
	}

	// A restart keeps client, access and refresh tokens, and none of them is on disk.
	after := open(t, dir)
	after.clock.advance(10*time.Minute - time.Second)
	if !after.good(second.Access) {
		t.Error("the access token did not survive a restart")
	}
	content, err := os.ReadFile(filepath.Join(dir, "demo-grants.json"))
	if err != nil || bytes.Contains(content, []byte(second.Access)) || bytes.Contains(content, []byte(second.Refresh)) {
		t.Errorf("tokens are stored in the clear, or not at all: %v", err)
	}
	third := after.token(refreshForm(client, second.Refresh))
	if !after.good(third.Access) {
		t.Fatalf("refreshed after a restart: %+v", third)
	}
	// Reuse of a spent refresh token ends the whole family.
	if got := after.token(refreshForm(client, first.Refresh)); got.Error != "invalid_grant" {
		t.Errorf("reuse: %+v", got)
	}
	if after.good(third.Access) || after.good(second.Access) {
		t.Error("access tokens outlived the reuse of a refresh token")
	}
	if got := after.token(refreshForm(client, third.Refresh)); got.Error != "invalid_grant" {
		t.Errorf("the family outlived a reuse: %+v", got)
	}
}

func TestConcurrentRefreshSpendsOnce(t *testing.T) {
	b := open(t, t.TempDir())
	client := b.register()
	got := b.connect(client, "demo-alice")
	results := make(chan tokens)
	for range 8 {
		go func() {
			answer, err := b.client.PostForm(b.base+"/token", refreshForm(client, got.Refresh))
			var r tokens
			if err == nil {
				err = json.NewDecoder(answer.Body).Decode(&r)
				_ = answer.Body.Close()
			}
			if err != nil {
				r.Error = err.Error()
			}
			results <- r
		}()
	}
	won := 0
	for range 8 {
		if r := <-results; r.Access != "" {
			won++
		} else if r.Error != "invalid_grant" {
			t.Errorf("%+v", r)
		}
	}
	if won != 1 {
		t.Errorf("%d refreshes with one token", won)
	}
}

func TestRevocation(t *testing.T) {
	b := open(t, t.TempDir())
	client, other := b.register(), b.register()
	revoke := func(client, token string) int {
		answer, _ := b.do(http.MethodPost, "/revoke", url.Values{"token": {token}, "client_id": {client}})
		return answer.StatusCode
	}
	got := b.connect(client, "demo-alice")
	if status := revoke(other, got.Refresh); status != 400 {
		t.Errorf("another client's refresh token: %d", status)
	}
	if status := revoke(other, got.Access); status != 400 || !b.good(got.Access) {
		t.Errorf("another client's access token: %d", status)
	}
	if status := revoke("nobody", got.Access); status != 401 {
		t.Errorf("unknown client: %d", status)
	}
	if status := revoke(client, "unknown"); status != 200 {
		t.Errorf("unknown token: %d", status)
	}
	if status := revoke(client, got.Access); status != 200 || b.good(got.Access) {
		t.Errorf("access token: %d", status)
	}
	next := b.token(refreshForm(client, got.Refresh))
	if status := revoke(client, next.Refresh); status != 200 || b.good(next.Access) {
		t.Errorf("refresh token: %d", status)
	}
	if again := b.token(refreshForm(client, next.Refresh)); again.Error != "invalid_grant" {
		t.Errorf("revoked refresh token: %+v", again)
	}
}

type bearer struct {
	token string
	next  http.RoundTripper
}

func (t bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+t.token)
	return t.next.RoundTrip(r)
}

func (b *bench) session(version, token string, options *mcp.ClientOptions) *mcp.ClientSession {
	b.t.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options).Connect(context.Background(),
		&mcp.StreamableClientTransport{Endpoint: b.demo.MCPURL(), HTTPClient: &http.Client{Transport: bearer{token, b.client.Transport}}},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func TestTools(t *testing.T) {
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			b := open(t, t.TempDir())
			token := b.connect(b.register(), "demo-alice").Access
			progress := make(chan float64, 16)
			s := b.session(version, token, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
				progress <- r.Params.Progress
			}})
			defer func() { _ = s.Close() }()
			if got := s.InitializeResult().ProtocolVersion; got != version {
				t.Fatalf("speaks %s", got)
			}
			list, err := s.ListTools(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range list.Tools {
				names = append(names, tool.Name)
				if tool.Description == "" || tool.Annotations == nil || tool.Annotations.Title == "" {
					t.Errorf("%s is not described", tool.Name)
				}
			}
			if diff := cmp.Diff([]string{"add", "create_issue", "delete_issue", "echo", "list_issues", "slow", "whoami"}, names); diff != "" {
				t.Errorf("tools (-want +got):\n%s", diff)
			}
			call := func(name string, arguments map[string]any) string {
				t.Helper()
				r, err := s.CallTool(context.Background(), &mcp.CallToolParams{Name: name, Arguments: arguments})
				if err != nil {
					return "error: " + err.Error()
				}
				text := r.Content[0].(*mcp.TextContent).Text
				if r.IsError {
					return "refused: " + text
				}
				return text
			}
			for _, test := range []struct {
				name      string
				arguments map[string]any
				want      string
			}{
				{"echo", map[string]any{"message": "hello"}, "hello"},
				{"add", map[string]any{"a": 2, "b": 0.5}, "2.5"},
				{"whoami", map[string]any{}, "demo-alice"},
				{"list_issues", map[string]any{"team": "marketing"}, `{"issues":[{"id":3,"priority":3,"team":"marketing","title":"Write the announcement"}]}`},
				{"create_issue", map[string]any{"title": "New", "team": "marketing", "priority": 4}, `{"id":4,"priority":4,"team":"marketing","title":"New"}`},
				{"delete_issue", map[string]any{"id": 3}, `{"id":3,"priority":3,"team":"marketing","title":"Write the announcement"}`},
				{"list_issues", map[string]any{"team": "marketing"}, `{"issues":[{"id":4,"priority":4,"team":"marketing","title":"New"}]}`},
				{"list_issues", map[string]any{"team": "nobody"}, `{"issues":[]}`},
				{"delete_issue", map[string]any{"id": 3}, "refused: no such issue"},
			} {
				if got := call(test.name, test.arguments); got != test.want {
					t.Errorf("%s %v: %s, want %s", test.name, test.arguments, got, test.want)
				}
			}
			for name, arguments := range map[string]map[string]any{
				"create_issue": {"title": "x", "priority": "high"}, "delete_issue": {}, "slow": {"seconds": 1000}, "add": {"a": 1e308, "b": 1e308}, "nothing": {},
			} {
				if got := call(name, arguments); !strings.HasPrefix(got, "refused: ") && !strings.HasPrefix(got, "error: ") {
					t.Errorf("%s %v: %s", name, arguments, got)
				}
			}
			params := &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{"seconds": 0.02}}
			params.SetProgressToken("p")
			if _, err := s.CallTool(context.Background(), params); err != nil {
				t.Fatal(err)
			}
			select {
			case <-progress:
			case <-time.After(patience):
				t.Error("no progress")
			}
			// A call that is cancelled ends, long before its two minutes.
			ctx, cancel := context.WithCancel(context.Background())
			params = &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{"seconds": 120}}
			params.SetProgressToken("q")
			ended := make(chan error, 1)
			go func() { _, err := s.CallTool(ctx, params); ended <- err }()
			select {
			case <-progress:
			case <-time.After(patience):
				t.Error("no progress")
			}
			cancel()
			select {
			case err := <-ended:
				if err == nil {
					t.Error("a cancelled call succeeded")
				}
			case <-time.After(patience):
				t.Error("a cancelled call goes on")
			}
		})
	}
}

func TestSessionsBelongToAnAccount(t *testing.T) {
	b := open(t, t.TempDir())
	client := b.register()
	s := b.session("2025-11-25", b.connect(client, "demo-alice").Access, nil)
	defer func() { _ = s.Close() }()
	bob := b.connect(client, "demo-bob").Access
	answer, _ := b.do(http.MethodDelete, "/mcp", nil, "Authorization", "Bearer "+bob, "Mcp-Session-Id", s.ID())
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("alice's session with bob's token: %d", answer.StatusCode)
	}
}

func TestModernRequestWithoutHeaderIsNotLegacy(t *testing.T) {
	b := open(t, t.TempDir())
	token := b.connect(b.register(), "demo-alice").Access
	r, _ := http.NewRequest(http.MethodPost, b.demo.MCPURL(), strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	answer, err := b.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != 400 || !bytes.Contains(body, []byte("-32020")) {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
}

// reader reads events of /events one by one.
type reader struct {
	t     *testing.T
	lines chan string
	stop  context.CancelFunc
}

func (b *bench) events(token, query string) *reader {
	b.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.demo.EventsURL()+query, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := b.client.Do(r)
	if err != nil || answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "text/event-stream" {
		b.t.Fatalf("events: %v %v", answer, err)
	}
	e := &reader{t: b.t, lines: make(chan string, 100), stop: cancel}
	go func() {
		defer close(e.lines)
		defer func() { _ = answer.Body.Close() }()
		for scanner := bufio.NewScanner(answer.Body); scanner.Scan(); {
			e.lines <- scanner.Text()
		}
	}()
	b.t.Cleanup(cancel)
	return e
}

// next returns the next event as "name data", or "end".
func (e *reader) next() string {
	e.t.Helper()
	var event string
	for {
		select {
		case line, ok := <-e.lines:
			switch {
			case !ok:
				return "end"
			case line == "":
				return event
			case strings.HasPrefix(line, "event: "):
				event = line[len("event: "):]
			case strings.HasPrefix(line, "data: "):
				event += " " + line[len("data: "):]
			}
		case <-time.After(patience):
			e.t.Fatal("no event")
		}
	}
}

func (e *reader) want(events ...string) {
	e.t.Helper()
	for _, want := range events {
		if got := e.next(); got != want {
			e.t.Fatalf("event %q, want %q", got, want)
		}
	}
}

func TestEvents(t *testing.T) {
	b := open(t, t.TempDir())
	client := b.register()
	alice, bob := b.connect(client, "demo-alice"), b.connect(client, "demo-bob")
	const latest = `data_update {"type":"issue","id":"3","changes":{"priority":3,"team":"marketing","title":"Write the announcement"}}`
	all, other := b.events(alice.Access, ""), b.events(bob.Access, "")
	two := b.events(alice.Access, "?object_type=issue&limit=2")
	none := b.events(alice.Access, "?object_type=page")
	all.want(latest)
	other.want(latest)
	two.want(latest)

	s := b.session("2026-07-28", alice.Access, nil)
	defer func() { _ = s.Close() }()
	for _, call := range []*mcp.CallToolParams{
		{Name: "create_issue", Arguments: map[string]any{"title": "New"}}, {Name: "delete_issue", Arguments: map[string]any{"id": 1}},
	} {
		if _, err := s.CallTool(context.Background(), call); err != nil {
			t.Fatal(err)
		}
	}
	const first = `data_update {"type":"issue","id":"4","changes":{"priority":0,"team":"","title":"New"}}`
	all.want(first, `data_update {"type":"issue","id":"1","changes":{"deleted":true}}`)
	two.want(first, "end")

	if answer, _ := b.do(http.MethodPost, "/revoke", url.Values{"token": {alice.Refresh}, "client_id": {client}}); answer.StatusCode != 200 {
		t.Fatalf("revoke: %d", answer.StatusCode)
	}
	const revoked = `status_change {"reason":"revoked","status":"disconnected"}`
	all.want(revoked, "end")
	none.want(revoked, "end")
	if err := b.demo.Close(); err != nil {
		t.Fatal(err)
	}
	other.want(`status_change {"reason":"shutdown","status":"disconnected"}`, "end")
	if answer, _ := b.do(http.MethodGet, "/", nil); answer.StatusCode != 503 {
		t.Errorf("after Close: %d", answer.StatusCode)
	}
}

func TestEventsRefusals(t *testing.T) {
	b := open(t, t.TempDir())
	token := b.connect(b.register(), "demo-alice").Access
	for _, limit := range []string{"0", "-1", "x", "1e3"} {
		if answer, _ := b.do(http.MethodGet, "/events?limit="+limit, nil, "Authorization", "Bearer "+token); answer.StatusCode != 400 {
			t.Errorf("limit %s: %d", limit, answer.StatusCode)
		}
	}
	if answer, _ := b.do(http.MethodPost, "/events", nil, "Authorization", "Bearer "+token); answer.StatusCode != 405 {
		t.Errorf("POST: %d", answer.StatusCode)
	}
	if answer, _ := b.do(http.MethodGet, "/events?access_token="+token, nil); answer.StatusCode != 401 {
		t.Errorf("J03 token in the query: %d", answer.StatusCode)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	h := newHub()
	var last *stream
	for range maxStreams {
		if last = h.open("a", "g"); last == nil {
			t.Fatal("refused too early")
		}
	}
	if h.open("a", "g") != nil {
		t.Error("one stream too many")
	}
	for range streamBuffer + 1 {
		h.publish("a", change{})
	}
	if reason := <-last.ended; reason != "limit" || len(h.streams) != 0 {
		t.Errorf("a reader that does not read: %q, %d streams", reason, len(h.streams))
	}
}

func TestOpenRefusesOrigins(t *testing.T) {
	for _, base := range []string{"", "http://127.0.0.1:1/", "http://gateway.test", "http://localhost:1/mcp", "ws://localhost"} {
		if d, err := Open(Options{Dir: t.TempDir(), BaseURL: base}); err == nil {
			t.Errorf("%q was taken", base)
			_ = d.Close()
		}
	}
}
