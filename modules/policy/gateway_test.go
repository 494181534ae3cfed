package policy_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/caddyserver/caddy/v2/modules/standard" // the modules that the shipped binary links
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app"
	_ "github.com/durward-gateway/durward/modules/auth"
	"github.com/durward-gateway/durward/modules/caddytest"
	_ "github.com/durward-gateway/durward/modules/identities"
	_ "github.com/durward-gateway/durward/modules/policy"
	_ "github.com/durward-gateway/durward/modules/stores"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

type object = caddytest.Object

const (
	organization = "0192f0c1-5bd2-7000-8000-0000000000aa" // of the tokens that caddytest's issuer makes
	user         = "0192f0c1-5bd2-7000-8000-00000000a11c"
	modern       = "2026-07-28"
)

// gateway is a running configuration of durward_auth, durward_policy and a handler that keeps the requests it gets.
type gateway struct {
	t      *testing.T
	url    string
	issuer *caddytest.Issuer
	store  storage.Store
	server storage.Server // the server with the slug demo

	mu     sync.Mutex
	passed []*app.Call // of the requests that were let through
	then   func(*app.Call, http.ResponseWriter, *http.Request)
}

// newGateway starts a gateway whose handler of policies has the settings, and with changes to the app's.
func newGateway(t *testing.T, settings, change object) *gateway {
	t.Helper()
	dir := caddytest.Directory(t)
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte(seal.NewMasterKey().Reveal()), 0o600); err != nil {
		t.Fatal(err)
	}
	address := caddytest.Address(t)
	g := &gateway{t: t, url: "http://" + address, issuer: caddytest.NewIssuer(t)}
	config := object{
		"public_url": g.url, "store": object{"driver": "sqlite", "path": sqlitetest.PathIn(t, dir)}, "master_key": []string{"{file." + key + "}"},
		"identity": []any{object{"kind": "oidc", "issuer": g.issuer.URL}}, "egress": object{"http": []string{"127.0.0.0/8"}},
	}
	maps.Copy(config, change)
	handler := object{"handler": "durward_policy"}
	maps.Copy(handler, settings)
	if err := caddytest.Load(t, caddytest.Config(config, address, caddytest.Named("durward_auth"), handler, caddytest.Handle(t, g.pass))); err != nil {
		t.Fatal(err)
	}
	g.then = func(call *app.Call, _ http.ResponseWriter, _ *http.Request) { g.store = call.Core.Store }
	g.send(request{method: http.MethodGet, path: "/setup"})
	g.then = nil
	g.server = g.createServer("demo")
	g.calls()
	return g
}

func (g *gateway) createServer(slug string) storage.Server {
	g.t.Helper()
	now := time.Now().UTC()
	entry := storage.DirectoryEntry{
		ID: newID(), OrganizationID: organization, Name: slug, Slug: slug, URL: "https://upstream.example/mcp", EventsURL: "https://upstream.example/events",
		Protocol: storage.ProtocolMCP, Source: storage.SourceCustom, Provider: storage.ProviderNone, CreatedAt: now, UpdatedAt: now,
	}
	server := storage.Server{ID: newID(), OrganizationID: organization, Name: slug, Slug: slug, DirectoryID: entry.ID, Status: storage.ServerActive, CreatedAt: now, UpdatedAt: now}
	if err := g.store.CreateDirectoryEntry(g.t.Context(), entry); err != nil {
		g.t.Fatal(err)
	}
	if err := g.store.CreateServer(g.t.Context(), server); err != nil {
		g.t.Fatal(err)
	}
	return server
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// policy stores a policy of the server for all agents.
func (g *gateway) policy(status storage.PolicyStatus, rules ...storage.Rule) storage.PolicyView {
	g.t.Helper()
	now := time.Now().UTC()
	p, err := g.store.CreatePolicy(g.t.Context(), storage.Policy{
		ID: newID(), OrganizationID: organization, Name: newID(), Status: status, ServerID: g.server.ID, Rules: rules, CreatedAt: now, UpdatedAt: now,
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return p
}

func (g *gateway) update(p storage.PolicyView, edit func(*storage.Policy)) {
	g.t.Helper()
	_, err := g.store.UpdatePolicy(g.t.Context(), organization, p.ID, "", time.Now().UTC(), func(p *storage.Policy) error {
		edit(p)
		return nil
	})
	if err != nil {
		g.t.Fatal(err)
	}
}

// grant and deny are rules for everybody.
func grant(actions ...string) storage.Rule { return rule(true, "", actions) }
func deny(actions ...string) storage.Rule  { return rule(false, "", actions) }

// when adds a condition.
func when(r storage.Rule, expr string) storage.Rule {
	condition, _ := json.Marshal(object{"match": object{"expr": expr}})
	r.Condition = condition
	return r
}

func rule(authorized bool, name string, actions []string) storage.Rule {
	if name == "" {
		name = newID()
	}
	return storage.Rule{Name: name, Active: true, Authorized: authorized, Actions: actions, RolesGroups: []string{"*"}}
}

func (g *gateway) pass(w http.ResponseWriter, r *http.Request) {
	call, ok := app.CallOf(r)
	if !ok {
		g.t.Error("a request came through without a call")
		return
	}
	g.mu.Lock()
	g.passed = append(g.passed, call)
	then := g.then
	g.mu.Unlock()
	if then != nil {
		then(call, w, r)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// calls returns, and forgets, the calls of the requests that were let through.
func (g *gateway) calls() []*app.Call {
	g.mu.Lock()
	defer g.mu.Unlock()
	passed := g.passed
	g.passed = nil
	return passed
}

// request is a request of a test; method POST and the demo server's address by default.
type request struct {
	method, path, body string
	version            string // of the protocol, in the header
	claims             object // of the token, beyond the issuer's
	header             []string
}

type answer struct {
	status int
	header http.Header
	body   string
	passed *app.Call // nil when the request went no further
}

func (g *gateway) send(q request) answer {
	g.t.Helper()
	a, err := g.do(q)
	if err != nil {
		g.t.Fatal(err)
	}
	return a
}

func (g *gateway) do(q request) (answer, error) {
	if q.method == "" {
		q.method = http.MethodPost
	}
	if q.path == "" {
		q.path = "/mcp/demo"
	}
	ctx, cancel := context.WithTimeout(g.t.Context(), 30*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, q.method, g.url+q.path, strings.NewReader(q.body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Authorization", "Bearer "+g.issuer.Token(g.url, q.claims))
	if q.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if q.version != "" {
		r.Header.Set("MCP-Protocol-Version", q.version)
	}
	for i := 0; i+1 < len(q.header); i += 2 {
		r.Header.Set(q.header[i], q.header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{status: response.StatusCode, header: response.Header, body: string(body)}
	if passed := g.calls(); len(passed) == 1 {
		a.passed = passed[0]
	}
	return a, nil
}

// open sends a request that ends with the test, and returns its call. The filter of a call reads the
// store with the context of its request, so that it decides only while the request is open.
func (g *gateway) open(q request) *app.Call {
	g.t.Helper()
	opened, end, ended := make(chan *app.Call, 1), make(chan struct{}), make(chan struct{})
	g.mu.Lock()
	g.then = func(call *app.Call, _ http.ResponseWriter, _ *http.Request) {
		g.mu.Lock()
		g.then = nil // the next requests are answered at once
		g.mu.Unlock()
		opened <- call
		<-end
	}
	g.mu.Unlock()
	go func() {
		defer close(ended)
		_, _ = g.do(q) // it ends with the context of the test
	}()
	g.t.Cleanup(func() {
		close(end)
		<-ended
	})
	select {
	case call := <-opened:
		g.calls()
		return call
	case <-ended:
		g.t.Fatal("the request was not let through")
		return nil
	}
}

// rpc sends a request of a method.
func (g *gateway) rpc(method, params, version string) answer {
	g.t.Helper()
	return g.send(message(method, params, version))
}

// message makes a request of a method. A modern one gets what that revision demands in params and headers.
func message(method, params, version string) request {
	q := request{version: version}
	if version == modern {
		params = strings.TrimSuffix(params, "}")
		if params != "{" && params != "" {
			params += ","
		}
		if params == "" {
			params = "{"
		}
		params += `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`
		var named struct{ Name, URI, TaskID string }
		_ = json.Unmarshal([]byte(params), &named)
		q.header = []string{"Mcp-Method", method}
		if name := named.Name + named.URI + named.TaskID; name != "" {
			q.header = append(q.header, "Mcp-Name", name)
		}
	}
	if params == "" {
		params = "{}"
	}
	q.body = `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	return q
}

// refusal holds the error in a JSON-RPC answer.
type refusal struct {
	ID    any `json:"id"`
	Error struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
	Result struct {
		IsError    bool                    `json:"isError"`
		ResultType string                  `json:"resultType"`
		Content    []struct{ Text string } `json:"content"`
	} `json:"result"`
}

func (a answer) refusal(t *testing.T) refusal {
	t.Helper()
	var r refusal
	if err := json.Unmarshal([]byte(a.body), &r); err != nil {
		t.Fatalf("%d %q: %v", a.status, a.body, err)
	}
	return r
}
