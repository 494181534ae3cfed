package policy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/caddyserver/caddy/v2/modules/standard" // the modules that the shipped binary links

	"github.com/durward-gateway/durward/internal/proxy/sse"
	"github.com/durward-gateway/durward/internal/seal"
	_ "github.com/durward-gateway/durward/modules/auth"
	"github.com/durward-gateway/durward/modules/caddytest"
	_ "github.com/durward-gateway/durward/modules/credential"
	_ "github.com/durward-gateway/durward/modules/identities"
	_ "github.com/durward-gateway/durward/modules/mcp"
	_ "github.com/durward-gateway/durward/modules/platformapi"
	_ "github.com/durward-gateway/durward/modules/policy"
	_ "github.com/durward-gateway/durward/modules/stores"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

// patience is the longest time that a test waits for an event that is about to come.
const patience = 30 * time.Second

// Clients of the tests. Those that are registered have a channel.
const (
	inBandAgent   = "in-band-agent"
	externalAgent = "external-agent"
	stranger      = "stranger" // not registered
	console       = "console"  // decides out of band
)

// Users of the tests.
const (
	alice = "0192f0c1-5bd2-7000-8000-00000000a11c"
	bob   = "0192f0c1-5bd2-7000-8000-0000000000bb"
)

// pipeline is the whole pipeline in this process, an upstream behind it, and a policy for its only server: delete asks,
// purge asks out of band, everything else is granted.
type pipeline struct {
	*testing.T
	address string
	issuer  *caddytest.Issuer
	config  []byte
	base    string // of the upstream
	entry   string
	server  string
	policy  string

	mu       sync.Mutex
	received []received // by the upstream, without initialize
	reply    func(w http.ResponseWriter, body []byte)
	// stateless: the upstream has no sessions.
	stateless bool
}

type received struct {
	method  string // of the message, or GET or DELETE
	body    string
	session string // id of it
	resumes string // the event after which a stream is to go on
}

func newPipeline(t *testing.T) *pipeline {
	t.Helper()
	g := &pipeline{T: t, address: caddytest.Address(t), issuer: caddytest.NewIssuer(t)}
	g.base = g.serveUpstream()
	dir := caddytest.Directory(t)
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte(seal.NewMasterKey().Reveal()), 0o600); err != nil {
		t.Fatal(err)
	}
	g.config = caddytest.Config(object{
		"public_url": "https://gate.example.com", "store": object{"driver": "sqlite", "path": sqlitetest.PathIn(t, dir)},
		"master_key": []string{"{file." + key + "}"}, "identity": []any{object{"kind": "oidc", "issuer": g.issuer.URL, "login_client": console}},
		"egress": object{"http": []string{"127.0.0.0/8"}}, "approval_clients": []string{console, inBandAgent}, "streams": object{"heartbeat": int64(time.Second)},
	}, g.address, caddytest.Named("durward_auth"), object{"handler": "durward_limit", "off": true}, caddytest.Named("durward_policy"), caddytest.Named("durward_credential"), caddytest.Named("durward_mcp"),
		caddytest.Named("durward_platform"))
	g.load()

	entry := g.api(console, http.MethodPost, "/api/server-directory", g.entryAt(g.base))
	g.entry = entry["id"].(string)
	server := g.api(console, http.MethodPost, "/api/servers?test=false", object{"name": "Tracker", "mcp_server_directory_id": g.entry})
	g.server = server["id"].(string)
	for client, dcr := range map[string]bool{inBandAgent: false, externalAgent: true} {
		g.api(console, http.MethodPost, "/api/agents", object{"application_directory": object{"external_id": client, "name": client, "dcr": dcr}})
	}
	saved := g.api(console, http.MethodPost, "/api/v2/policies", object{"name": "p", "mcp_server_id": server["id"], "status": "ACTIVE", "rules": askingRules()})
	g.policy = saved["policy"].(object)["id"].(string)
	return g
}

// serveUpstream serves the upstream at an address more.
func (g *pipeline) serveUpstream() string {
	upstream := httptest.NewServer(http.HandlerFunc(g.upstream))
	g.Cleanup(upstream.Close)
	return upstream.URL
}

// entryAt returns the only server's entry when the upstream is at that address.
func (g *pipeline) entryAt(base string) object {
	return object{"name": "Tracker", "url": base + "/mcp", "provider": "none", "requires_auth": false}
}

func askingRules() []any {
	return []any{
		object{"name": "ask", "authorized": true, "actions": []string{"tools/call:delete:approve"}},
		object{"name": "ask elsewhere", "authorized": true, "actions": []string{"tools/call:purge:approve"}, "approval": "out_of_band"},
		object{"name": "others", "authorized": true, "actions": []string{"tools/call:list"}},
	}
}

// load starts the gateway anew on the same store.
func (g *pipeline) load() {
	g.Helper()
	if err := caddytest.Load(g.T, g.config); err != nil {
		g.Fatal(err)
	}
}

// upstream plays an MCP server of every revision. It answers tools/call with "done" unless reply is set.
func (g *pipeline) upstream(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var m struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.Unmarshal(body, &m)
	g.mu.Lock()
	reply, stateless := g.reply, g.stateless
	if r.Method != http.MethodPost {
		m.Method = r.Method
	}
	if m.Method != "initialize" {
		g.received = append(g.received, received{m.Method, string(body), r.Header.Get("Mcp-Session-Id"), r.Header.Get("Last-Event-Id")})
	}
	g.mu.Unlock()
	switch {
	case r.Method != http.MethodPost && stateless:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case m.Method == "initialize":
		if !stateless {
			w.Header().Set("Mcp-Session-Id", "upstream-session")
		}
		writeJSON(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`)
	case m.ID == nil || m.Method == "":
		w.WriteHeader(http.StatusAccepted)
	case reply != nil:
		reply(w, body)
	default:
		writeJSON(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"content":[{"type":"text","text":"done"}]}}`)
	}
}

func writeJSON(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, text)
}

// answer lets the upstream answer requests in another way.
func (g *pipeline) answer(reply func(w http.ResponseWriter, body []byte)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reply = reply
}

// calls returns, and forgets, what the upstream got.
func (g *pipeline) calls() []received {
	g.mu.Lock()
	defer g.mu.Unlock()
	got := g.received
	g.received = nil
	return got
}

// do sends a request as a user with a client. The answer must be closed.
func (g *pipeline) do(ctx context.Context, user, client, method, path string, body []byte, header ...string) *http.Response {
	g.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+g.address+path, bytes.NewReader(body))
	if err != nil {
		g.Fatal(err)
	}
	r.Host = "gate.example.com"
	claims := object{"sub": user, "azp": client, "email": user}
	if client == console {
		claims["roles"] = []string{"admin"}
	}
	if client == "machine" {
		claims["sub"], claims["client_id"], claims["email"], claims["name"] = client, client, nil, nil
		claims["gty"] = "client-credentials"
	}
	r.Header.Set("Authorization", "Bearer "+g.issuer.Token("https://gate.example.com", claims))
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		g.Fatal(err)
	}
	return response
}

// api calls the API as alice and wants it to succeed.
func (g *pipeline) api(client, method, path string, body any) object {
	g.Helper()
	status, answer := g.tryAPI(alice, client, method, path, body)
	if status >= 300 {
		g.Fatalf("%s %s: %d %v", method, path, status, answer)
	}
	return answer
}

func (g *pipeline) tryAPI(user, client, method, path string, body any) (int, object) {
	g.Helper()
	var encoded []byte
	if body != nil {
		encoded, _ = json.Marshal(body)
	}
	response := g.do(g.Context(), user, client, method, path, encoded)
	defer response.Body.Close()
	var answer object
	_ = json.NewDecoder(response.Body).Decode(&answer)
	return response.StatusCode, answer
}

// rpc posts a message and returns the status and, decoded, the answer.
func (g *pipeline) rpc(user, client, body string, header ...string) (int, object) {
	g.Helper()
	response := g.do(g.Context(), user, client, http.MethodPost, "/mcp/tracker", []byte(body), header...)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		g.Error(err)
	}
	var answer object
	_ = json.Unmarshal(text, &answer)
	return response.StatusCode, answer
}

// toolText returns the text of a tool's result, and whether it is an error.
func toolText(answer object) (text string, isError bool) {
	result, _ := answer["result"].(object)
	content, _ := result["content"].([]any)
	if len(content) == 0 {
		return "", false
	}
	isError, _ = result["isError"].(bool)
	text, _ = content[0].(object)["text"].(string)
	return text, isError
}

// session begins a session of a client with these capabilities and returns its headers.
func (g *pipeline) session(user, client, version, capabilities string) []string {
	g.Helper()
	id := g.initialize(user, client, version, capabilities)
	if id == "" {
		g.Fatal("no session")
	}
	return []string{"Mcp-Session-Id", id, "MCP-Protocol-Version", version}
}

// initialize begins a session and returns its id; "" when there is none.
func (g *pipeline) initialize(user, client, version, capabilities string) string {
	g.Helper()
	response := g.do(g.Context(), user, client, http.MethodPost, "/mcp/tracker", []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+version+
		`","capabilities":`+capabilities+`,"clientInfo":{"name":"c","version":"1"}}}`))
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.Header.Get("Mcp-Session-Id")
}

// openStream is the answer to a held call while it is being read.
type openStream struct {
	*testing.T
	response *http.Response
	events   *sse.Reader
	close    context.CancelFunc
}

// stream posts a call whose answer is an event stream.
func (g *pipeline) stream(user, client, body string, header ...string) *openStream {
	g.Helper()
	ctx, cancel := context.WithTimeout(g.Context(), patience)
	response := g.do(ctx, user, client, http.MethodPost, "/mcp/tracker", []byte(body), header...)
	g.Cleanup(func() {
		cancel()
		_ = response.Body.Close()
	})
	if kind := response.Header.Get("Content-Type"); kind != "text/event-stream" {
		text, _ := io.ReadAll(response.Body)
		g.Fatalf("%d %s %s", response.StatusCode, kind, text)
	}
	return &openStream{T: g.T, response: response, events: sse.NewReader(response.Body, 0), close: cancel}
}

// next returns the next message on the stream; nil at its end.
func (s *openStream) next() object {
	s.Helper()
	for {
		event, err := s.events.Next()
		if err != nil {
			return nil
		}
		if event.Comment || len(event.Data) == 0 {
			continue
		}
		if event.HasID {
			s.Errorf("an event of the gateway has an id: %s", event.Raw)
		}
		var m object
		if err := json.Unmarshal(event.Data, &m); err != nil {
			s.Fatalf("%s: %v", event.Data, err)
		}
		return m
	}
}

// asked returns the id of the next message, which must be a question.
func (s *openStream) asked() string {
	s.Helper()
	m := s.next()
	id, _ := m["id"].(string)
	if m["method"] != "elicitation/create" || !strings.HasPrefix(id, "gw-") {
		s.Fatalf("not a question: %v", m)
	}
	return id
}

// ownIDs returns the beginning of the ids of a gateway's questions, taken from one of them.
func ownIDs(id string) string { return id[:len("gw-012345678901-")] }

// reply answers a question.
func (g *pipeline) replyTo(user, client, id, result string, header ...string) int {
	g.Helper()
	status, _ := g.rpc(user, client, `{"jsonrpc":"2.0","id":"`+id+`",`+result+`}`, header...)
	return status
}

const (
	yes = `"result":{"action":"accept","content":{}}`
	no  = `"result":{"action":"decline"}`
)

// approvals lists everybody's approvals of a status; "" is all.
func (g *pipeline) approvals(status string) []object {
	g.Helper()
	var out []object
	path := "/api/approvals?limit=100"
	if status != "" {
		path += "&status=" + status
	}
	for _, item := range g.api(console, http.MethodGet, path, nil)["data"].([]any) {
		out = append(out, item.(object))
	}
	return out
}

// toolCall returns a tools/call of the revisions with sessions.
func toolCall(id int, tool, arguments string) string {
	encoded, _ := json.Marshal(id)
	return `{"jsonrpc":"2.0","id":` + string(encoded) + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments + `}}`
}
