package llm_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// knowsNone answers streams as a provider does that knows no stream_options: Groq's words of 2024.
func knowsNone(status int, says string) func(w http.ResponseWriter, r *http.Request, body []byte) {
	return func(w http.ResponseWriter, _ *http.Request, body []byte) {
		if strings.Contains(string(body), `"stream_options"`) {
			reply(w, status, says)
			return
		}
		say := events(w)
		for _, s := range []string{chunk, lastChunk, "[DONE]"} {
			say(s)
		}
	}
}

const unsupported = `{"error":{"message":"property 'stream_options' is unsupported, did you mean 'stream'?","type":"invalid_request_error"}}`

// TestNoStreamOptions checks that a provider that knows no stream_options is asked without it after it said so, from
// then on at once (W41). It tells no numbers, and may have thought without showing it: the time that they took is
// charged (attack T07).
func TestNoStreamOptions(t *testing.T) {
	for _, tc := range []struct {
		name   string
		body   string
		status int
		says   string
	}{
		{"ours", askedStream, 400, unsupported},
		{"ours, refused as FastAPI does", askedStream, 422, `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`},
		{"ours, refused as Mistral does", askedStream, 422, `{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","stream_options","include_usage"],"msg":"Extra inputs are not permitted","input":true}]},"type":"invalid_request_error","param":null,"code":null}`},
		{"ours, wrapped as Azure AI Foundry does", askedStream, 400, `{"error":{"code":"Invalid input","message":"{\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":[\"body\",\"stream_options\",\"include_usage\"]}]}","status":422}}`},
		{"the client's", `{"stream_options":{"include_usage":true},` + askedStream[1:], 400, unsupported},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newProvider(t, knowsNone(tc.status, tc.says))
			g := newGateway(t, p.URL, nil)
			g.limited()
			for i, calls := range []int{2, 1} {
				got := g.ask(tc.body).want(200)
				if !strings.HasSuffix(got.body, "data: [DONE]\n\n") || got.err != nil {
					t.Errorf("%q %v", got.body, got.err)
				}
				if seen := p.calls(); len(seen) != calls || strings.Contains(seen[calls-1], "stream_options") {
					t.Errorf("%d: %q", i, seen)
				}
				if requests, tokens := g.used(); requests != int64(i+1) || tokens < int64(i+1)*(promptOf+2) || tokens > int64(i+1)*reservedOf {
					t.Errorf("%d requests, %d tokens", requests, tokens)
				}
			}
			g.ask(strings.Replace(tc.body, "small", "large", 1)).want(200) // another model may know it
			if n := len(p.calls()); n != 2 {
				t.Errorf("%d calls", n)
			}
		})
	}
}

// TestWordsOfUsers checks that a user who has the word stream_options repeated in a refusal ends the metering of nobody
// (T07).
func TestWordsOfUsers(t *testing.T) {
	var calls atomic.Int64
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		if calls.Add(1) == 1 {
			reply(w, 400, `{"error":{"message":"Failed to download https://evil.test/stream_options.png","type":"invalid_request_error","param":"messages[0].content","code":"invalid_image_url"}}`)
			return
		}
		knowsNone(0, "")(w, r, []byte(strings.ReplaceAll(string(body), "stream_options", "")))
	})
	g := newGateway(t, p.URL, nil)
	g.ask(askedStream).want(400)
	if n := len(p.calls()); n != 1 {
		t.Errorf("%d calls", n)
	}
	g.ask(askedStream).want(200)
	if seen := p.calls(); len(seen) != 1 || !strings.Contains(seen[0], `"include_usage":true`) {
		t.Errorf("%q", seen)
	}
}

// TestStreamOptionsOff checks that a provider that is configured to know none is never asked with it, and what it used
// is estimated by the text (W41).
func TestStreamOptionsOff(t *testing.T) {
	p := newProvider(t, knowsNone(400, unsupported))
	g := newGateway(t, p.URL, object{"provider": []any{
		object{"kind": "openai", "name": "up", "base_url": p.URL, "stream_options": "off"}, object{"kind": "anthropic", "name": "claude", "base_url": p.URL},
	}})
	g.limited()
	g.ask(askedStream).want(200)
	if seen := p.calls(); len(seen) != 1 || strings.Contains(seen[0], "stream_options") {
		t.Errorf("%q", seen)
	}
	if _, tokens := g.used(); tokens != promptOf+2 {
		t.Errorf("%d tokens", tokens)
	}
	made := g.make("/admin/providers", object{"name": "mine", "kind": "openai", "base_url": p.URL, "stream_options": "off"})
	g.make("/admin/model-mappings", object{"model_alias": "mine", "targets": []any{object{"provider_id": made["id"], "model": "m"}}})
	g.ask(strings.Replace(askedStream, "small", "mine", 1)).want(200)
	if seen := p.calls(); len(seen) != 1 || made["stream_options"] != "off" {
		t.Errorf("%q %v", seen, made)
	}
	g.send(http.MethodPut, base+"/admin/providers/"+made["id"].(string), `{"stream_options":"auto"}`).want(200)
	g.ask(strings.Replace(askedStream, "small", "mine", 1)).want(200)
	if seen := p.calls(); len(seen) != 2 {
		t.Errorf("%q", seen)
	}
	g.send(http.MethodPut, base+"/admin/providers/"+made["id"].(string), `{"stream_options":"never"}`).want(400)
}

// TestStreamOptionsOfOthers checks that a refusal that asking without it does not cure is the client's, and nothing is
// remembered; nor is a client's own stream_options taken away that say more (W41).
func TestStreamOptionsOfOthers(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		calls      []int
	}{
		{"cured by nothing", askedStream, []int{2, 2}},
		{"the client's own", strings.Replace(askedStream, `"stream":true`, `"stream":true,"stream_options":{"x":1}`, 1), []int{1, 1}},
		{"no stream", asked, []int{1, 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) { reply(w, 400, unsupported) })
			g := newGateway(t, p.URL, nil)
			for _, calls := range tc.calls {
				if got := g.ask(tc.body).want(400); got.body != unsupported {
					t.Errorf("%s", got.body)
				}
				if seen := p.calls(); len(seen) != calls {
					t.Errorf("%q", seen)
				}
			}
		})
	}
}
