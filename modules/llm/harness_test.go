package llm_test

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

	"github.com/durward-gateway/durward/internal/seal"
	_ "github.com/durward-gateway/durward/modules/auth"
	"github.com/durward-gateway/durward/modules/caddytest"
	_ "github.com/durward-gateway/durward/modules/gatewayapi"
	_ "github.com/durward-gateway/durward/modules/identities"
	_ "github.com/durward-gateway/durward/modules/limit"
	_ "github.com/durward-gateway/durward/modules/llm"
	_ "github.com/durward-gateway/durward/modules/providers"
	_ "github.com/durward-gateway/durward/modules/stores"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

type object = caddytest.Object

const (
	public = "https://gate.example.com"
	bound  = 30 * time.Second
	base   = "/api/llm-gateway"
	chat   = base + "/v1/chat/completions"
)

// gateway is a running configuration with the LLM gateway and its administration.
type gateway struct {
	t      *testing.T
	url    string
	issuer *caddytest.Issuer
	token  string // of an administrator
	client *http.Client
}

// newGateway runs a gateway with the provider `up` at a base URL, and change over its settings.
func newGateway(t *testing.T, baseURL string, change object) *gateway {
	t.Helper()
	dir := caddytest.Directory(t)
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte(seal.NewMasterKey().Reveal()), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DURWARD_TEST_SECRET", "sk-secret")
	address := caddytest.Address(t)
	g := &gateway{t: t, url: "http://" + address, issuer: caddytest.NewIssuer(t), client: &http.Client{Timeout: bound, Transport: &http.Transport{}}}
	t.Cleanup(g.client.CloseIdleConnections)
	g.token = g.issuer.Token(public, object{"roles": []string{"admin"}})
	config := object{
		"public_url": public, "store": object{"driver": "sqlite", "path": sqlitetest.PathIn(t, dir)}, "master_key": []string{"{file." + key + "}"},
		"identity": []any{object{"kind": "oidc", "issuer": g.issuer.URL}}, "egress": object{"http": []string{"127.0.0.0/8"}},
		"provider": []any{
			object{"kind": "openai", "name": "up", "base_url": baseURL, "key": "{env.DURWARD_TEST_SECRET}"},
			object{"kind": "anthropic", "name": "claude", "base_url": baseURL},
		},
		"alias": []any{
			object{"name": "small", "targets": []any{object{"provider": "up", "model": "real"}}},
			object{"name": "large", "targets": []any{object{"provider": "up", "model": "real-large"}}},
			object{"name": "claude", "targets": []any{object{"provider": "claude", "model": "real-claude"}}},
		},
	}
	for k, v := range change {
		config[k] = v
	}
	why := object{"handler": "headers", "response": object{"deferred": true, "set": object{"X-Log": []string{"{durward.model} {durward.routed_model} {durward.route_reason}"}}}}
	handlers := []any{why, caddytest.Named("durward_auth"), caddytest.Named("durward_limit"), caddytest.Named("durward_llm"), caddytest.Named("durward_gateway")}
	if err := caddytest.Load(t, caddytest.Config(config, address, handlers...)); err != nil {
		t.Fatal(err)
	}
	return g
}

type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   string
	err    error // of reading the body
}

func (g *gateway) open(ctx context.Context, method, path, token, body string) *http.Response {
	g.t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	if body == "" {
		r.Body = http.NoBody
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Host = "gate.example.com"
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := g.client.Do(r)
	if err != nil {
		g.t.Fatalf("%s %s: %v", method, path, err)
	}
	return response
}

func (g *gateway) send(method, path, body string) answer {
	g.t.Helper()
	response := g.open(g.t.Context(), method, path, g.token, body)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return answer{g.t, response.StatusCode, response.Header, string(content), err}
}

func (g *gateway) ask(body string) answer { g.t.Helper(); return g.send(http.MethodPost, chat, body) }

// make makes an object through the administration, and returns it.
func (g *gateway) make(path string, body object) object {
	g.t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		g.t.Fatal(err)
	}
	got := g.send(http.MethodPost, base+path, string(encoded)).want(http.StatusOK)
	var made object
	if err := json.Unmarshal([]byte(got.body), &made); err != nil {
		g.t.Fatal(err)
	}
	return made
}

// used returns the values that the one limit of the organization has counted.
func (g *gateway) used() (requests, tokens int64) {
	g.t.Helper()
	var status []struct {
		Requests int64 `json:"rpm_used"`
		Tokens   int64 `json:"tpm_used"`
	}
	got := g.send(http.MethodGet, base+"/admin/rate-limits/status", "").want(http.StatusOK)
	if err := json.Unmarshal([]byte(got.body), &status); err != nil || len(status) != 1 {
		g.t.Fatalf("%s %v", got.body, err)
	}
	return status[0].Requests, status[0].Tokens
}

func (a answer) want(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// refused checks that an answer is an error in OpenAI's envelope.
func (a answer) refused(status int, code string) answer {
	a.t.Helper()
	var body struct {
		Error struct {
			Message, Type string
			Code          *string
		}
	}
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || body.Error.Message == "" || body.Error.Type == "" || a.status != status {
		a.t.Fatalf("%d %s, want %d", a.status, a.body, status)
	}
	if got := body.Error.Code; code != "" && (got == nil || *got != code) {
		a.t.Errorf("%s, want the code %s", a.body, code)
	}
	return a
}

// provider is an upstream that a test serves, and that keeps the bodies it got.
type provider struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

func newProvider(t *testing.T, serve func(w http.ResponseWriter, r *http.Request, body []byte)) *provider {
	t.Helper()
	p := new(provider)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.seen = append(p.seen, string(bytes.Clone(body)))
		p.mu.Unlock()
		serve(w, r, body)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *provider) calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.seen
	p.seen = nil
	return seen
}

func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// events begins an event stream, and returns what writes an event.
func events(w http.ResponseWriter) func(data string) {
	w.Header().Set("Content-Type", "text/event-stream")
	return func(data string) {
		_, _ = io.WriteString(w, "data: "+data+"\n\n")
		_ = http.NewResponseController(w).Flush()
	}
}

// soon waits until a condition holds.
func soon(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}
