package llm_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
)

// TestParallelStreams checks that of many streams at once, with several keys of one user, no more begin than a limit of
// tokens has room for by their estimates, and all of them together have used what their provider says (T01, T03).
func TestParallelStreams(t *testing.T) {
	const calls, most, passing = 40, 1000, 1000 / reservedOf
	release := make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		say := events(w)
		say(chunk)
		select {
		case <-release:
		case <-r.Context().Done():
		}
		say(lastChunk)
		say(usageChunk)
		say("[DONE]")
	})
	g := newGateway(t, p.URL, nil)
	g.make("/admin/rate-limits", object{"name": "each", "scope_type": "user", "traffic_type": "llm", "tokens_per_minute": most})
	var keys []string
	for i := range 5 {
		keys = append(keys, g.make("/user/api-keys", object{"name": fmt.Sprint(i)})["key"].(string))
	}
	answers := make(chan *http.Response, calls)
	for i := range calls {
		go func() { answers <- g.open(t.Context(), http.MethodPost, chat, keys[i%len(keys)], askedStream) }()
	}
	var streams []io.ReadCloser
	for range calls {
		answer := <-answers
		switch answer.StatusCode {
		case http.StatusOK:
			streams = append(streams, answer.Body)
			continue
		case http.StatusTooManyRequests:
		default:
			t.Errorf("status %d", answer.StatusCode)
		}
		_ = answer.Body.Close()
	}
	if len(streams) != passing {
		t.Errorf("%d streams began, not %d", len(streams), passing)
	}
	close(release)
	for _, stream := range streams {
		if _, err := io.Copy(io.Discard, stream); err != nil {
			t.Error(err)
		}
		_ = stream.Close()
	}
	soon(t, "what was used", func() bool { _, tokens := g.used(); return tokens == passing*42 })
}
