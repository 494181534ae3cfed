package integration

import (
	"net/http"
	"testing"
	"time"
)

// TestExpiry checks that a token is valid for half a minute beyond its end, because clocks differ, on every path alike,
// and that its streams end then (J13, W07).
func TestExpiry(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	calls := g.createServer(sessionUpstream(t).url, nil)
	events := newUpstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	streams := g.createServer(events.url, map[string]any{"protocol": "sse"})
	ended := func(ago time.Duration) string {
		return g.token(alice.with(claims{"iat": time.Now().Add(-time.Hour).Unix(), "exp": time.Now().Add(-ago).Unix()}))
	}

	g.send(http.MethodGet, "/api/servers", ended(5*time.Second), nil).want(t, http.StatusOK)
	g.send(http.MethodPost, calls.path, ended(5*time.Second), initialize, "Accept", acceptBoth).want(t, http.StatusOK)
	for _, path := range []string{"/api/servers", "/sse/" + streams.Slug} {
		g.send(http.MethodGet, path, ended(40*time.Second), nil).want(t, http.StatusUnauthorized)
	}

	end := time.Now().Add(-15 * time.Second).Truncate(time.Second)
	stream := g.listen(http.MethodGet, "/sse/"+streams.Slug, g.token(alice.with(claims{"iat": end.Add(-time.Hour).Unix(), "exp": end.Unix()})), nil)
	stream.next() // connected
	stream.want("status_change", `{"reason":"token_expired","status":"disconnected"}`)
	if late := time.Since(end) - 30*time.Second; late < 0 || late > allowed(time.Second) {
		t.Errorf("the stream ended %v after half a minute beyond the token's end", late)
	}
	if rest := stream.ended(); len(rest) > 0 {
		t.Errorf("after the last event came %v", rest)
	}
}
