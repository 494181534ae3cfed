package llm_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/proxy/loopback"
)

const (
	whole   = `{"choices":[{"index":0,"message":{"role":"assistant","content":"Hello there"},"finish_reason":"stop"}],"usage":{"prompt_tokens":30,"completion_tokens":12}}`
	noUsage = `{"choices":[{"index":0,"message":{"role":"assistant","content":"12345678"},"finish_reason":"stop"}]}`
	// asked has a prompt of 8 bytes in strings that count: "user" and "abcd".
	asked       = `{"model":"small","max_tokens":100,"messages":[{"role":"user","content":"abcd"}]}`
	askedStream = `{"model":"small","stream":true,"max_tokens":100,"messages":[{"role":"user","content":"abcd"}]}`
	promptOf    = 2
	reservedOf  = promptOf + 100
	chunk       = `{"choices":[{"index":0,"delta":{"content":"12345678"},"finish_reason":null}]}`
	lastChunk   = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	usageChunk  = `{"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":12}}`
)

// limited makes the one limit of the organization, far away.
func (g *gateway) limited() {
	g.make("/admin/rate-limits", object{"name": "all", "scope_type": "org", "traffic_type": "llm", "requests_per_minute": 1000, "tokens_per_minute": 1_000_000})
}

// For a call without a usage report at least the seen part is charged, and far less than the reservation for many
// tokens.
const (
	guessed    = 1_000_000_000 // beside what was seen
	far        = 30_000
	many       = `{"model":"small","max_tokens":60000,"messages":[{"role":"user","content":"abcd"}]}`
	manyStream = `{"model":"small","stream":true,"max_tokens":60000,"messages":[{"role":"user","content":"abcd"}]}`
)

// TestSettling checks that with every result of a call, its tokens are counted once, and never fewer than those that
// are known (T07).
func TestSettling(t *testing.T) {
	for _, tc := range []struct {
		name   string
		body   string
		serve  func(w http.ResponseWriter, r *http.Request)
		abort  bool // the client goes away after the first event
		status int
		want   int64
	}{
		{"a whole answer", asked, func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, whole) }, false, 200, 42},
		{"T07 a whole answer without usage", asked, func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, noUsage) }, false, 200, promptOf + 2},
		{"T07 an answer that is no JSON", asked, func(w http.ResponseWriter, _ *http.Request) { reply(w, 200, `{"choices": oops`) }, false, 200, promptOf},
		{"a stream", askedStream, func(w http.ResponseWriter, _ *http.Request) {
			say := events(w)
			for _, s := range []string{chunk, lastChunk, usageChunk, "[DONE]"} {
				say(s)
			}
		}, false, 200, 42},
		{"T07 a stream without usage", manyStream, func(w http.ResponseWriter, _ *http.Request) {
			say := events(w)
			say(chunk)
			say(lastChunk)
			say("[DONE]")
		}, false, 200, guessed + promptOf + 2},
		{"T07 a stream that writes more than was reserved, and does not say so", askedStream, func(w http.ResponseWriter, _ *http.Request) {
			say := events(w)
			for range 100 {
				say(chunk)
			}
			say(lastChunk)
		}, false, 200, promptOf + 200},
		{"T07 a stream that breaks off", manyStream, func(w http.ResponseWriter, _ *http.Request) {
			events(w)(chunk)
			panic(http.ErrAbortHandler)
		}, false, 200, guessed + promptOf + 2},
		{"T07 a client that goes away in the middle of a stream", manyStream, func(w http.ResponseWriter, r *http.Request) {
			events(w)(chunk)
			<-r.Context().Done()
		}, true, 200, guessed + promptOf + 2},
		{"the request is wrong", asked, func(w http.ResponseWriter, _ *http.Request) { reply(w, 400, `{"error":{}}`) }, false, 400, 0},
		{"the provider fails", asked, func(w http.ResponseWriter, _ *http.Request) { reply(w, 500, `{}`) }, false, 502, 0},
		{"T07 the provider breaks the connection without an answer", many, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, 502, guessed + promptOf},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newProvider(t, func(w http.ResponseWriter, r *http.Request, _ []byte) { tc.serve(w, r) })
			g := newGateway(t, p.URL+"/v1", nil)
			g.limited()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			response := g.open(ctx, http.MethodPost, chat, g.token, tc.body)
			defer response.Body.Close()
			if response.StatusCode != tc.status {
				t.Fatalf("status %d", response.StatusCode)
			}
			if tc.abort {
				if _, err := bufio.NewReader(response.Body).ReadString('\n'); err != nil {
					t.Fatal(err)
				}
				cancel()
			} else if _, err := io.ReadAll(response.Body); err != nil {
				t.Fatal(err)
			}
			var requests, tokens int64
			least, most := tc.want, tc.want
			if tc.want >= guessed {
				least, most = tc.want-guessed, far
			}
			soon(t, fmt.Sprint(least, " tokens"), func() bool { requests, tokens = g.used(); return tokens >= least && tokens <= most })
			if requests != 1 {
				t.Errorf("%d requests", requests)
			}
		})
	}
}

// TestAborted checks that row by row as issue 22 describes it, calls whose client leaves at once, before and after the
// answer begins, take next to nothing of the limit and the budget of their organization, whatever they ask for (T07).
func TestAborted(t *testing.T) {
	for _, most := range []string{"60000", "9000000000000000000", `60000,"n":9000000000000000000`} {
		for _, begins := range []bool{true, false} {
			t.Run(fmt.Sprint(most, begins), func(t *testing.T) {
				asked := make(chan struct{}, 3)
				p := newProvider(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
					if begins {
						events(w)(chunk)
					}
					asked <- struct{}{}
					<-r.Context().Done()
				})
				g := newGateway(t, p.URL+"/v1", object{"prices": prices(t, "real")})
				g.make("/admin/rate-limits", object{"name": "all", "scope_type": "org", "traffic_type": "llm", "tokens_per_minute": 1_200_000})
				budget := g.make("/admin/budgets", object{"name": "b", "scope_type": "org", "period": "month", "amount": 150_000})
				for n := range 3 {
					ctx, leave := context.WithCancel(t.Context())
					gone := make(chan struct{})
					go func() {
						defer close(gone)
						r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+chat, strings.NewReader(strings.Replace(manyStream, "60000", most, 1)))
						if err != nil {
							t.Error(err)
							return
						}
						r.Host = "gate.example.com"
						r.Header.Set("Content-Type", "application/json")
						r.Header.Set("Authorization", "Bearer "+g.token)
						if response, err := g.client.Do(r); err == nil {
							_, _ = io.Copy(io.Discard, response.Body) // until it leaves
							_ = response.Body.Close()
						}
					}()
					<-asked
					leave()
					<-gone
					soon(t, "the settlement", func() bool { _, tokens := g.used(); return tokens > 0 && tokens <= int64(n+1)*far })
				}
				var shown struct{ Spent float64 }
				got := g.send(http.MethodGet, base+"/admin/budgets/"+budget["id"].(string), "").want(200)
				if err := json.Unmarshal([]byte(got.body), &shown); err != nil || shown.Spent > 3*far/10. {
					t.Errorf("%s %v", got.body, err)
				}
			})
		}
	}
}

// TestMaxOutputTokens checks that the reservation is bounded by the alias's greatest output.
func TestMaxOutputTokens(t *testing.T) {
	release := make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		<-release
		reply(w, 200, whole)
	})
	g := newGateway(t, p.URL+"/v1", object{"alias": []any{
		object{"name": "small", "max_output_tokens": 500, "targets": []any{object{"provider": "up", "model": "real"}}},
	}})
	g.limited()
	done := make(chan answer, 1)
	go func() { done <- g.ask(many) }()
	soon(t, "the reservation", func() bool { _, tokens := g.used(); return tokens == promptOf+500 })
	close(release)
	(<-done).want(200)
	if _, tokens := g.used(); tokens != 42 {
		t.Errorf("%d tokens", tokens)
	}
}

// TestBrokenStreamEndsWithAnError checks that the reader of a stream that broke off gets an error, in the form of its
// API.
func TestBrokenStreamEndsWithAnError(t *testing.T) {
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		events(w)(chunk)
		panic(http.ErrAbortHandler)
	})
	g := newGateway(t, p.URL, nil)
	got := g.ask(askedStream).want(200)
	if !strings.HasPrefix(got.body, "data: "+chunk+"\n\n") || !strings.Contains(got.body, `"code":"upstream_error"`) || got.err != nil {
		t.Errorf("%q %v", got.body, got.err)
	}
	got = g.send(http.MethodPost, base+"/v1/messages", `{"model":"claude","stream":true,"max_tokens":9,"messages":[]}`).want(200)
	if !strings.Contains(got.body, "event: error\ndata: {\"type\":\"error\"") {
		t.Errorf("%q", got.body)
	}
}

// TestHostileProviders checks that a text that is no answer becomes a 502 of the gateway, and no part of it reaches the
// client.
func TestHostileProviders(t *testing.T) {
	for _, tc := range []struct{ name, says, more string }{
		{"endless headers", "HTTP/1.1 200 OK\r\n", "X-A: " + strings.Repeat("secret", 200) + "\r\n"},
		{"endless interim answers", "", "HTTP/1.1 103 Early Hints\r\nX-A: secret\r\n\r\n"},
		{"no HTTP", "secret\r\n\r\n", ""},
		{"a redirect", "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/secret\r\nContent-Length: 0\r\n\r\n", ""},
		{"a page", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\nsecret", ""},
		{"Cloudflare's page", "HTTP/1.1 521 Web Server Is Down\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\nsecret", ""},
		{"an encoded answer", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 6\r\n\r\nsecret", ""},
		{"two lengths", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 6\r\nContent-Length: 7\r\n\r\nsecret", ""},
		{"an answer that is cut off", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 60\r\n\r\nsecret", ""},
		{"an answer without end", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n", ""},
		{"a body with 204", "HTTP/1.1 204 No Content\r\nContent-Type: application/json\r\n\r\n{}", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			listener, err := loopback.Listen(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				for {
					c, err := listener.Accept()
					if err != nil {
						return
					}
					go hostile(c, tc.says, tc.more)
				}
			}()
			t.Cleanup(func() { _ = listener.Close(); <-done })
			g := newGateway(t, "http://"+listener.Addr().String(), nil)
			got := g.ask(asked).refused(http.StatusBadGateway, "upstream_error")
			if strings.Contains(got.body, "secret") || strings.Contains(fmt.Sprint(got.header), "secret") {
				t.Errorf("%v %s", got.header, got.body)
			}
		})
	}
}

func hostile(c net.Conn, says, more string) {
	defer c.Close()
	if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
		return
	}
	if _, err := io.WriteString(c, says); err != nil {
		return
	}
	for more != "" {
		if _, err := io.WriteString(c, more); err != nil {
			return
		}
	}
}

func TestBodies(t *testing.T) {
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) { reply(w, 200, whole) })
	g := newGateway(t, p.URL, object{"sizes": object{"llm": 1000}})
	filler := func(n int) string {
		return `{"model":"small","messages":[{"role":"user","content":"` + strings.Repeat("x", n) + `"}]}`
	}
	g.ask(filler(100)).want(200)
	g.ask(filler(1000)).refused(http.StatusRequestEntityTooLarge, "")
	g.ask(``).refused(http.StatusUnsupportedMediaType, "")
	for _, body := range []string{`{`, `[]`, `{"model":1}`, `{"messages":[]}`, `{"model":"small","stream":"true"}`, `{"model":"small","Model":"large"}`} {
		g.ask(body).refused(http.StatusBadRequest, "")
	}
	if n := len(p.calls()); n != 1 {
		t.Errorf("%d calls left", n)
	}
}

// TestLimits checks that a call that a limit refuses is answered in the words of its API, counts nothing and does not
// leave.
func TestLimits(t *testing.T) {
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) { reply(w, 200, whole) })
	g := newGateway(t, p.URL, object{"prices": prices(t, "real", "real-large")})
	g.make("/admin/rate-limits", object{"name": "real", "scope_type": "model", "scope_value": "real", "requests_per_minute": 1})
	g.ask(asked).want(200)
	got := g.ask(asked).refused(http.StatusTooManyRequests, "rate_limit_exceeded")
	if got.header.Get("Retry-After") == "" || got.header.Get("Ratelimit") == "" {
		t.Errorf("%v", got.header)
	}
	if requests, _ := g.used(); requests != 1 || len(p.calls()) != 1 {
		t.Errorf("%d requests", requests)
	}
	g.ask(strings.Replace(asked, "small", "large", 1)).want(200) // another model
	g.make("/admin/budgets", object{"name": "none", "scope_type": "org", "period": "day", "amount": 0, "hard_stop": true})
	got = g.ask(strings.Replace(asked, "small", "large", 1)).refused(http.StatusTooManyRequests, "budget_exceeded")
	if got.header.Get("Retry-After") == "" {
		t.Errorf("%v", got.header)
	}
}

// TestBreaker checks that a provider that fails again and again is left alone, and its calls go to others.
func TestBreaker(t *testing.T) {
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) { reply(w, 500, `{}`) })
	g := newGateway(t, p.URL, nil)
	for range 8 {
		g.ask(asked).refused(http.StatusBadGateway, "upstream_error")
	}
	if n := len(p.calls()); n != 5 {
		t.Errorf("%d calls came", n)
	}
}

// TestSmartModels checks that the determiner chooses, on the caller's tokens and not as a request of theirs.
func TestSmartModels(t *testing.T) {
	says := "1"
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
		if strings.Contains(string(body), `"real"`) {
			reply(w, 200, `{"choices":[{"message":{"role":"assistant","content":"`+says+`"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`)
			return
		}
		reply(w, 200, whole)
	})
	g := newGateway(t, p.URL, nil)
	g.limited()
	made := g.make("/admin/smart-models", object{
		"model_alias": "smart", "determiner_model_alias": "small", "default_slot_on_failure": 0,
		"slots": []any{object{"model_alias": "claude", "label": "easy"}, object{"model_alias": "large", "label": "hard"}},
	})
	got := g.ask(strings.Replace(asked, "small", "smart", 1)).want(200)
	if got.body != whole || got.header.Get("X-Durward-Model") != "large" || got.header.Get("X-Durward-Route-Reason") != "determiner" ||
		got.header.Get("X-Log") != "smart large determiner" {
		t.Errorf("%v %s", got.header, got.body)
	}
	if requests, tokens := g.used(); requests != 1 || tokens != 6+42 {
		t.Errorf("%d requests, %d tokens", requests, tokens)
	}
	calls := p.calls()
	if len(calls) != 2 || !strings.Contains(calls[0], `"max_completion_tokens"`) || !strings.Contains(calls[0], "abcd") {
		t.Errorf("%q", calls)
	}
	for _, alias := range []string{"smart", "large"} { // limits of either
		limit := g.make("/admin/rate-limits", object{"name": alias, "scope_type": "model_alias", "scope_value": alias, "requests_per_minute": 0})
		if got := g.ask(strings.Replace(asked, "small", "smart", 1)); got.status != http.StatusTooManyRequests {
			t.Errorf("with a limit on %s: %d", alias, got.status)
		}
		g.send(http.MethodDelete, base+"/admin/rate-limits/"+limit["id"].(string), "").want(200)
	}
	_, before := g.used()
	says = "hm"
	got = g.ask(strings.Replace(asked, "small", "smart", 1)) // to a slot that does not serve the address
	if got.status != http.StatusBadRequest || !strings.Contains(got.body, "call it at /messages.") || got.header.Get("X-Durward-Route-Reason") != "default:garbage" {
		t.Errorf("%d %v", got.status, got.header)
	}
	if requests, tokens := g.used(); requests != 2 || tokens != before+6 { // T07 or determiners could be asked without end
		t.Errorf("%d requests, %d tokens", requests, tokens)
	}
	g.send(http.MethodPut, base+"/admin/smart-models/"+made["id"].(string), `{"enabled":false}`).want(200)
	g.ask(strings.Replace(asked, "small", "smart", 1)).refused(http.StatusNotFound, "model_not_found")
}

// TestRevokedKeyEndsItsStream checks that a stream ends with the key that it was opened with, and says so (K02).
func TestRevokedKeyEndsItsStream(t *testing.T) {
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		events(w)(chunk)
		<-r.Context().Done()
	})
	g := newGateway(t, p.URL, nil)
	key := g.make("/admin/api-keys", object{"name": "k"})
	response := g.open(t.Context(), http.MethodPost, chat, key["key"].(string), askedStream)
	defer response.Body.Close()
	reader := bufio.NewReader(response.Body)
	if line, err := reader.ReadString('\n'); err != nil || line != "data: "+chunk+"\n" {
		t.Fatalf("%q %v", line, err)
	}
	g.send(http.MethodDelete, base+"/admin/api-keys/"+key["id"].(string), "").want(200)
	rest, err := io.ReadAll(reader)
	if err != nil || !strings.Contains(string(rest), `"code":"revoked"`) {
		t.Errorf("%q %v", rest, err)
	}
	again := g.open(t.Context(), http.MethodPost, chat, key["key"].(string), askedStream)
	defer again.Body.Close()
	if again.StatusCode != http.StatusUnauthorized {
		t.Errorf("status %d", again.StatusCode)
	}
}
