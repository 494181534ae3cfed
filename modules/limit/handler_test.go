package limit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

// TestParallel checks that of 1,000 calls at a time exactly as many pass as the limit allows; T11, and the status says
// so at any time (T01).
func TestParallel(t *testing.T) {
	g := newCounting(t)
	g.set(rate(everybody, 100, 0))
	var passed, answered atomic.Int64
	var done sync.WaitGroup
	for range 1000 {
		done.Go(func() {
			if w := g.post(g.call(), ping); w.Code == http.StatusNoContent {
				passed.Add(1)
			} else if w.Code != http.StatusTooManyRequests {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			answered.Add(1)
			before := passed.Load()
			if used, _ := g.used(); used < before || used > 100 {
				t.Errorf("T11: %d used when %d had passed", used, before)
			}
		})
	}
	done.Wait()
	if used, _ := g.used(); passed.Load() != 100 || used != 100 || answered.Load() != 1000 {
		t.Errorf("%d of %d passed, %d are counted", passed.Load(), answered.Load(), used)
	}
}

// TestRotation checks that a caller with another key, agent, server or session is still the same organization and user
// (T03).
func TestRotation(t *testing.T) {
	for _, scope := range []storage.Scope{
		everybody, {Type: storage.ScopeUser}, {Type: storage.ScopeUser, ID: alice}, {Type: storage.ScopeUser, Value: "auth0|alice"},
		{Type: storage.ScopeUser, Value: "ALICE@example.com"}, {Type: storage.ScopeGroup, Value: "eng"},
	} {
		t.Run("T03 "+string(scope.Type)+" "+scope.ID+scope.Value, func(t *testing.T) {
			g := newCounting(t)
			g.set(rate(scope, 3, 0))
			for i := range 5 {
				call := g.call()
				call.Caller.Key.ID = keyID[:35] + strconv.Itoa(i)
				call.Agent = &storage.Agent{ID: agentID[:35] + strconv.Itoa(i)}
				call.Server = &storage.Server{ID: serverID[:35] + strconv.Itoa(i), Slug: strconv.Itoa(i)}
				w := g.send(call, http.MethodPost, "/mcp/github", ping, "Content-Type", "application/json", "X-Mcp-Session-Id", strconv.Itoa(i))
				if want := map[bool]int{true: 204, false: 429}[i < 3]; w.Code != want {
					t.Errorf("call %d: %d, want %d", i, w.Code, want)
				}
			}
		})
	}
}

// TestWindow checks that a burst at the edge of the window gains nothing; T06, nor does a clock that goes back, and it
// locks nobody out (T05).
func TestWindow(t *testing.T) {
	g := newCounting(t)
	g.set(rate(everybody, 10, 0))
	burst := func() (passed int) {
		for range 20 {
			if g.post(g.call(), ping).Code == http.StatusNoContent {
				passed++
			}
		}
		return passed
	}
	g.clock.advance(59900 * time.Millisecond)
	if n := burst(); n != 10 {
		t.Errorf("%d passed", n)
	}
	for _, step := range []time.Duration{200 * time.Millisecond, -time.Hour, time.Hour, 59 * time.Second} {
		g.clock.advance(step)
		if n := burst(); n != 0 {
			t.Errorf("%d passed, %v later", n, step)
		}
	}
	g.clock.advance(2 * time.Second)
	if n := burst(); n != 10 {
		t.Errorf("%d passed in the next minute", n)
	}
}

// TestAnswers checks that the answer to a refused caller, in each protocol, has no number except that of the limit that
// refused, and no name (T08).
func TestAnswers(t *testing.T) {
	g := newCounting(t)
	g.set(rate(everybody, 1, 0))
	g.post(g.call(), ping)
	const rpc = `{"jsonrpc":"2.0","id":null,"error":{"code":-31429,"message":"Rate limit exceeded","data":{"error":"RateLimitExceeded","message":"Rate limit exceeded"}}}`
	for _, tc := range []struct{ name, method, path, want string }{
		{"mcp", http.MethodPost, "/mcp/github", rpc},
		{"sse", http.MethodGet, "/sse/github", `{"error":"RateLimitExceeded","message":"Rate limit exceeded"}`},
		{"a prompt", http.MethodPost, "/api/llm-gateway/v1/chat/completions", `"code":"rate_limit_exceeded"`},
		{"a prompt of the other kind", http.MethodPost, "/api/llm-gateway/v1/messages", `"type":"rate_limit_error"`},
	} {
		t.Run("T08 "+tc.name, func(t *testing.T) {
			w := g.send(g.call(), tc.method, tc.path, ping, "Content-Type", "application/json")
			if w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), tc.want) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if strings.Contains(w.Body.String(), "secret") || strings.Contains(w.Body.String(), acme) {
				t.Errorf("%s", w.Body)
			}
			for name, want := range map[string]string{"Retry-After": `^6[01]$`, "RateLimit": `^"requests";r=0;t=6[01]$`, "RateLimit-Policy": `^"requests";q=1;w=60$`} {
				if got := w.Header().Get(name); !regexp.MustCompile(want).MatchString(got) {
					t.Errorf("%s: %s", name, got)
				}
			}
		})
	}
	for family, want := range map[string]float64{"mcp": 1, "sse": 1, "llm": 2} {
		if n := g.counted(family, "limited"); n != want {
			t.Errorf("%v calls of %s are counted", n, family)
		}
	}
}

// TestWhatCounts checks that exactly these count: each request with an id, and each opening of a stream.
func TestWhatCounts(t *testing.T) {
	caller := newCounting(t).call()
	asked := string(session.NewQuestions(plainMACs{}).Mark([]byte("1"), "", caller.Binding()))
	for _, tc := range []struct {
		name, method, path, body string
		requests                 int64
	}{
		{"a request", http.MethodPost, "/mcp/github", ping, 1},
		{"a notification", http.MethodPost, "/mcp/github", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, 0},
		{"an answer", http.MethodPost, "/mcp/github", `{"jsonrpc":"2.0","id":` + asked + `,"result":{}}`, 0},
		{"an answer that nobody asked for", http.MethodPost, "/mcp/github", `{"jsonrpc":"2.0","id":1,"result":{}}`, 1},
		{"a batch", http.MethodPost, "/mcp/github", `[` + ping + `,{"jsonrpc":"2.0","method":"notifications/initialized"},` + ping + `,` + ping + `]`, 3},
		{"a stream of MCP", http.MethodGet, "/mcp/github", "", 0},
		{"the end of a session", http.MethodDelete, "/mcp/github", "", 0},
		{"a stream of events", http.MethodGet, "/sse/github", "", 1},
		{"a body that cannot be read", http.MethodPost, "/mcp/github", `{`, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newCounting(t)
			g.set(rate(everybody, 10, 0))
			g.send(g.call(), tc.method, tc.path, tc.body, "Content-Type", "application/json")
			if got, _ := g.used(); got != tc.requests {
				t.Errorf("%d requests are counted, want %d", got, tc.requests)
			}
		})
	}
	own := sha256.Sum256([]byte(publicURL)) // anybody can make an id that looks like the gateway's
	for name, tc := range map[string]struct{ id, version string }{
		"an answer to the gateway that no durward_policy took": {fmt.Sprintf(`"gw-%x-0"`, own[:6]), "2025-11-25"},
		"an answer of a revision without answers":              {"1", "2026-07-28"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newCounting(t)
			g.set(rate(everybody, 10, 0))
			g.send(g.call(), http.MethodPost, "/mcp/github", `{"jsonrpc":"2.0","id":`+tc.id+`,"result":{}}`, "Content-Type", "application/json", "MCP-Protocol-Version", tc.version)
			if got, _ := g.used(); got != 1 {
				t.Errorf("%d requests are counted", got)
			}
		})
	}
	t.Run("an answer again", func(t *testing.T) {
		g := newCounting(t)
		g.set(rate(everybody, 10, 0))
		for range 3 {
			g.send(g.call(), http.MethodPost, "/mcp/github", `{"jsonrpc":"2.0","id":`+asked+`,"result":{}}`, "Content-Type", "application/json")
		}
		if got, _ := g.used(); got != 2 {
			t.Errorf("%d requests are counted", got)
		}
	})
	t.Run("a batch beyond the limit", func(t *testing.T) {
		g := newCounting(t)
		g.set(rate(everybody, 2, 0))
		w := g.post(g.call(), `[`+ping+`,`+ping+`,`+ping+`]`)
		if used, _ := g.used(); w.Code != http.StatusTooManyRequests || used != 0 {
			t.Errorf("%d %s, %d used", w.Code, w.Body, used)
		}
	})
	t.Run("the id is told when it is known", func(t *testing.T) {
		g := newCounting(t)
		g.set(rate(everybody, 10, 0))
		call := g.call()
		call.Limits.Count()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp/github", strings.NewReader(ping))
		r.Header.Set("Content-Type", "application/json")
		if _, ok := call.ReadInbound(httptest.NewRecorder(), r); !ok {
			t.Fatal("unreadable")
		}
		g.set(rate(everybody, -1, 0))
		w := httptest.NewRecorder()
		if call.Admission().Charge(w, r) || w.Code != 429 || !strings.Contains(w.Body.String(), `"id":1,`) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
	t.Run("charged once", func(t *testing.T) {
		g := newCounting(t)
		g.set(rate(everybody, 10, 0))
		call := g.call()
		g.post(call, ping)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp/github", http.NoBody) // it was read before
		if w := httptest.NewRecorder(); !call.Admission().Charge(w, r) {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if used, _ := g.used(); used != 1 {
			t.Errorf("%d used", used)
		}
	})
}

// TestSubjects checks that a call counts in every limit that is for one of its properties, of its kind of traffic, and
// in no other (T10).
func TestSubjects(t *testing.T) {
	subjects := map[storage.ScopeType]struct{ id, value string }{
		storage.ScopeOrganization: {}, storage.ScopeUser: {alice, "auth0|alice"}, storage.ScopeAgent: {agentID, ""}, storage.ScopeAPIKey: {keyID, ""},
		storage.ScopeMCPServer: {serverID, "github"}, storage.ScopeRole: {"", "dev"}, storage.ScopeGroup: {"", "eng"}, storage.ScopeTeam: {"", "core"},
		storage.ScopeProject: {"", "apollo"}, storage.ScopeLLMProvider: {serverID, "openai"}, storage.ScopeModel: {"", "gpt"}, storage.ScopeModelAlias: {"", "fast"},
	}
	for kind, named := range subjects {
		var scopes []storage.Scope
		matches := kind != storage.ScopeLLMProvider && kind != storage.ScopeModel && kind != storage.ScopeModelAlias
		if kind == storage.ScopeOrganization {
			scopes = append(scopes, everybody)
		}
		if named.id != "" {
			scopes = append(scopes, storage.Scope{Type: kind}, storage.Scope{Type: kind, ID: named.id})
		}
		if named.value != "" {
			scopes = append(scopes, storage.Scope{Type: kind, Value: named.value})
		}
		for _, scope := range scopes {
			for _, traffic := range []storage.TrafficType{storage.TrafficAll, storage.TrafficMCP, storage.TrafficLLM} {
				g := newCounting(t)
				l := rate(scope, 10, 0)
				l.Traffic = traffic
				g.set(l)
				g.post(g.call(), ping)
				want := int64(0)
				if matches && traffic != storage.TrafficLLM {
					want = 1
				}
				if used, _ := g.used(); used != want {
					t.Errorf("T10 %v %s: %d used, want %d", scope, traffic, used, want)
				}
			}
		}
		if kind == storage.ScopeOrganization {
			continue
		}
		g := newCounting(t)
		g.set(rate(storage.Scope{Type: kind, Value: "another"}, 10, 0))
		g.post(g.call(), ping)
		if used, _ := g.used(); used != 0 {
			t.Errorf("T10 another %s: %d used", kind, used)
		}
	}
}

// TestChanges checks that a change is in force for the next call, and organizations are nothing to each other.
func TestChanges(t *testing.T) {
	g := newCounting(t)
	var got []int
	call := func(limits ...storage.RateLimit) {
		if limits != nil {
			g.set(limits...)
		}
		got = append(got, g.post(g.call(), ping).Code)
	}
	call()
	call(rate(everybody, 1, 0))
	call()
	call(rate(everybody, 2, 0))
	call()
	call([]storage.RateLimit{}...)
	call(rate(everybody, -1, 0))
	call(rate(storage.Scope{Type: storage.ScopeRole, Value: "nobody"}, 1, 0))
	if diff := cmp.Diff([]int{204, 204, 429, 204, 429, 204, 429, 204}, got); diff != "" {
		t.Error(diff)
	}
	g.set(rate(everybody, -1, 0))
	other := g.call()
	other.Caller.OrganizationID = rival
	if w := g.post(other, ping); w.Code != http.StatusNoContent {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestUnreadable checks that nobody passes when limits cannot be read.
func TestUnreadable(t *testing.T) {
	g := newCounting(t)
	g.err = errors.New("away")
	for _, path := range []string{"/mcp/github", "/sse/github", "/api/llm-gateway/v1/messages"} {
		method := http.MethodPost
		if strings.HasPrefix(path, "/sse") {
			method = http.MethodGet
		}
		w := g.send(g.call(), method, path, ping, "Content-Type", "application/json")
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestOff checks that traffic that is off counts nothing, and passes. A kind of traffic that is not named is refused.
func TestOff(t *testing.T) {
	g := newCounting(t)
	g.set(rate(everybody, -1, 0))
	g.handler.Off = true
	if w := g.post(g.call(), ping); w.Code != http.StatusNoContent {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	model := g.call()
	if w := g.send(model, http.MethodPost, paths.ModelsPrefix+"messages", ping); w.Code != http.StatusNoContent || !model.Limits.Seen() {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	g.handler.Off, g.handler.mcp, g.handler.llm = false, false, false
	if w := g.post(g.call(), ping); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "durward_limit off") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	model = g.call()
	if g.send(model, http.MethodPost, paths.ModelsPrefix+"messages", ping); model.Limits.Seen() {
		t.Error("durward_limit has seen a call of a kind that it is not for")
	}
}
