package llm_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// raw begins an event stream and sends text in it.
func raw(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}

const roleChunk = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"

// charged reports whether tokens are as many as a test wants; of a call that is guessed at, no fewer, and no more than was reserved for it.
func charged(tokens, want int64) bool {
	if want < guessed {
		return tokens == want
	}
	return tokens >= want-guessed && tokens <= want-guessed+reservedOf
}

// TestErrorInPlaceOfAnAnswer checks that an error with status 200 that comes before anything of an answer is a failure
// like one with a status of its own: another target is asked and nothing is charged for it (W42).
func TestErrorInPlaceOfAnAnswer(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		first      func(w http.ResponseWriter)
		tried      string
		status     int
		charged    int64
	}{
		{"the first event", askedStream, func(w http.ResponseWriter) {
			raw(w, `data: {"error":{"message":"overloaded","type":"server_error"}}`+"\n\n")
		}, "first second", 200, 42},
		{"after comments and a role", askedStream, func(w http.ResponseWriter) {
			raw(w, ": OPENROUTER PROCESSING\r\n\r\n"+roleChunk+`data: {"error":{"message":"x","code":502},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`+"\n\n")
		}, "first second", 200, 42},
		{"busy", askedStream, func(w http.ResponseWriter) { raw(w, `data: {"error":{"message":"x","code":429}}`+"\n\n") }, "first second", 200, 42},
		{"no credit", askedStream, func(w http.ResponseWriter) { raw(w, `data: {"error":{"type":"insufficient_quota"}}`+"\n\n") }, "first second", 200, 42},
		{"a stream that breaks off before its first event", askedStream, func(w http.ResponseWriter) {
			raw(w, ": x\n\n")
			panic(http.ErrAbortHandler)
		}, "first second", 200, guessed + promptOf + 42}, // nobody knows what it did (attack T07)
		{"an empty stream", askedStream, func(w http.ResponseWriter) { raw(w, "") }, "first second", 200, guessed + promptOf + 42},
		{"a whole one", asked, func(w http.ResponseWriter) {
			reply(w, 200, `{"error":{"message":"Provider returned error","code":502}}`)
		}, "first second", 200, 42},
		{"a choice of a whole one", asked, func(w http.ResponseWriter) {
			reply(w, 200, `{"choices":[{"finish_reason":"error","native_finish_reason":"error","error":{"message":"x","code":502},"message":{"role":"assistant","content":""}}]}`)
		}, "first second", 200, 42},
		{"a choice of a stream", askedStream, func(w http.ResponseWriter) {
			raw(w, `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"error","native_finish_reason":"error"}]}`+"\n\ndata: [DONE]\n\n")
		}, "first second", 200, 42},
		{"a whole one for a stream", askedStream, func(w http.ResponseWriter) { reply(w, 200, `{"error":{"type":"overloaded_error"}}`) }, "first second", 200, 42},
		{"a wrong request", asked, func(w http.ResponseWriter) { reply(w, 200, `{"error":{"type":"invalid_request_error"}}`) }, "first", 400, 0},
		{"a stream for a wrong request", askedStream, func(w http.ResponseWriter) {
			raw(w, `data: {"error":{"type":"invalid_request_error"}}`+"\n\n")
		}, "first", 200, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, p := twoTargets(t, nil, func(w http.ResponseWriter, _ *http.Request) { tc.first(w) })
			g.limited()
			got := g.ask(tc.body).want(tc.status)
			if tried := p.tried(); tried != tc.tried {
				t.Errorf("tried %q", tried)
			}
			if second := strings.Contains(tc.tried, "second"); second != (got.body == whole) || got.err != nil {
				t.Errorf("%s %v", got.body, got.err)
			}
			if requests, tokens := g.used(); requests != 1 || !charged(tokens, tc.charged) {
				t.Errorf("%d requests, %d tokens", requests, tokens)
			}
		})
	}
}

// TestErrorInTheMiddle checks that a choice that fails after something of it came is the client's, and is settled with
// the provider's numbers where it told them, otherwise by what was seen and the time that it took (W42).
func TestErrorInTheMiddle(t *testing.T) {
	const failed = `data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"x"}}]`
	for _, tc := range []struct {
		name, body string
		first      func(w http.ResponseWriter)
		charged    int64
	}{
		{"a stream", askedStream, func(w http.ResponseWriter) {
			raw(w, "data: "+chunk+"\n\n"+failed+"}\n\ndata: [DONE]\n\n")
		}, guessed + promptOf + 2},
		{"a stream with numbers", askedStream, func(w http.ResponseWriter) {
			raw(w, "data: "+chunk+"\n\n"+failed+`,"usage":{"prompt_tokens":30,"completion_tokens":5}}`+"\n\ndata: [DONE]\n\n")
		}, 35},
		{"a whole one", asked, func(w http.ResponseWriter) {
			reply(w, 200, `{"choices":[{"finish_reason":"error","error":{"code":502},"message":{"content":"12345678"}}],"usage":{"prompt_tokens":30,"completion_tokens":5}}`)
		}, 35},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g, p := twoTargets(t, nil, func(w http.ResponseWriter, _ *http.Request) { tc.first(w) })
			g.limited()
			got := g.ask(tc.body).want(200)
			if tried := p.tried(); tried != "first" || !strings.Contains(got.body, "12345678") || !strings.Contains(got.body, `"finish_reason":"error"`) {
				t.Errorf("tried %q: %s", tried, got.body)
			}
			if requests, tokens := g.used(); requests != 1 || !charged(tokens, tc.charged) {
				t.Errorf("%d requests, %d tokens", requests, tokens)
			}
		})
	}
}

// TestErrorsBreak checks that a provider that fails in its first event is left alone after five of them (W42).
func TestErrorsBreak(t *testing.T) {
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		raw(w, `data: {"error":{"type":"server_error"}}`+"\n\n")
	})
	g := newGateway(t, p.URL, nil)
	for range 8 {
		g.ask(askedStream).refused(http.StatusBadGateway, "upstream_error")
	}
	if n := len(p.calls()); n != 5 {
		t.Errorf("%d calls came", n)
	}
}

// TestErrorsOfUsers checks that errors that a user brings about leave no provider alone for the others (T07). What is
// wrong with the request is the client's to know, and is tried nowhere else; what nobody knows is tried at the next
// target.
func TestErrorsOfUsers(t *testing.T) {
	for _, tc := range []struct {
		code, tried string
		status      int // of a whole answer
	}{
		{"image_parse_error", "first", 400},
		{"data_inspection_failed", "first", 400},
		{"content_filter", "first", 400},
		{"new_one", "first second", 200},
	} {
		for _, way := range []string{asked, askedStream} {
			says := `{"error":{"code":"` + tc.code + `","message":"x"}}`
			g, p := twoTargets(t, nil, func(w http.ResponseWriter, _ *http.Request) {
				if way == asked {
					reply(w, 200, says)
				} else {
					raw(w, "data: "+says+"\n\n")
				}
			})
			for i := range 8 {
				got := g.ask(way)
				if tried := p.tried(); tried != tc.tried {
					t.Errorf("%s, %d: tried %q", tc.code, i, tried)
				}
				if way == asked && got.status != tc.status || tc.status == 400 && !strings.Contains(got.body, tc.code) {
					t.Errorf("%s, %d: %d %s", tc.code, i, got.status, got.body)
				}
			}
		}
	}
}

// TestResponsesOfUsers checks T07, the same of the Responses API, whose errors come in an event of their own.
func TestResponsesOfUsers(t *testing.T) {
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		raw(w, `data: {"type":"response.failed","response":{"status":"failed","error":{"code":"image_parse_error","message":"x"},"usage":null}}`+"\n\n")
	})
	g := newGateway(t, p.URL, nil)
	for range 8 {
		got := g.send(http.MethodPost, base+"/v1/responses", `{"model":"small","stream":true,"input":"x"}`).want(200)
		if !strings.Contains(got.body, "image_parse_error") {
			t.Errorf("%s", got.body)
		}
	}
	if n := len(p.calls()); n != 8 {
		t.Errorf("%d calls came", n)
	}
}

// TestOverloaded checks that a provider that is overloaded is told from one that fails, in the words of the client's
// API; W40, with the time after which it can be asked again (W42).
func TestOverloaded(t *testing.T) {
	const message = `{"model":"claude","stream":true,"max_tokens":9,"messages":[]}`
	overloaded := func(w http.ResponseWriter) {
		raw(w, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n")
	}
	with := func(status int) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "17")
			reply(w, status, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
		}
	}
	for _, tc := range []struct {
		name, path, body string
		first            func(w http.ResponseWriter)
		status           int
		says, after      string
	}{
		{"Anthropic's status", base + "/v1/messages", message, with(529), 529, `"type":"overloaded_error"`, "17"},
		{"Anthropic's event", base + "/v1/messages", message, overloaded, 529, `"type":"overloaded_error"`, "5"},
		{"503 on Anthropic's path", base + "/v1/messages", message, with(503), 503, `"type":"overloaded_error"`, "17"},
		{"529 on OpenAI's path", chat, asked, with(529), 503, `"code":"server_is_overloaded"`, "17"},
		{"503 on OpenAI's path", chat, asked, with(503), 503, `"code":"server_is_overloaded"`, "17"},
		{"an event on OpenAI's path", chat, askedStream, overloaded, 503, `"code":"server_is_overloaded"`, "5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) { tc.first(w) })
			g := newGateway(t, p.URL, nil)
			got := g.send(http.MethodPost, tc.path, tc.body).want(tc.status)
			if !strings.Contains(got.body, tc.says) || got.header.Get("Retry-After") != tc.after {
				t.Errorf("%v %s", got.header, got.body)
			}
		})
	}
}

// TestBusy checks that the time after which a busy provider can be asked again reaches the client, and is at most a day
// (W40).
func TestBusy(t *testing.T) {
	for _, tc := range []struct {
		name, header, value string
		least, most         int
	}{
		{"seconds", "Retry-After", "17", 17, 17},
		{"days", "Retry-After", "287441", 86400, 86400},
		{"a date", "Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), 3000, 3600},
		{"milliseconds", "Retry-After-Ms", "1500", 2, 2},
		{"a date that has passed", "Retry-After", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat), 5, 5},
		{"nonsense", "Retry-After", "-1", 5, 5},
		{"nothing", "X-A", "b", 5, 5},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
				w.Header().Set(tc.header, tc.value)
				reply(w, http.StatusTooManyRequests, `{"error":{"message":"org-secret is over its limit"}}`)
			})
			g := newGateway(t, p.URL, nil)
			got := g.ask(asked).refused(http.StatusTooManyRequests, "rate_limit_exceeded")
			after, err := strconv.Atoi(got.header.Get("Retry-After"))
			if err != nil || after < tc.least || after > tc.most || strings.Contains(fmt.Sprint(got.header, got.body), "secret") {
				t.Errorf("%v %s", got.header, got.body)
			}
		})
	}
}
