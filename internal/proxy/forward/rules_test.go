package forward

import (
	"errors"
	"net/http"
	"testing"
	"time"
)

// TestRules checks that with explicit rules only the listed headers pass, in both directions. MCP's headers and session
// must not pass.
func TestRules(t *testing.T) { onBoth(t, testRules) }

func testRules(t *testing.T, via client) {
	var got http.Header
	up := newUpstream(t, func(c *conn) {
		r, _ := c.request()
		if r == nil {
			return
		}
		got = r.Header
		c.say("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Account: acme\r\nX-Request-Id: 7\r\nMcp-Session-Id: a\r\nMcp-Session-Id: b\r\nContent-Length: 2\r\n\r\n{}")
		c.untilGone()
	})
	f, _ := via.forwarder(t, Options{}, Limits{})
	rules := &Rules{Request: map[string]bool{"Content-Type": false, "X-Beta": true}, Response: map[string]bool{"Content-Type": false, "X-Request-Id": false}}
	sent := http.Header{
		"Content-Type": {"application/json"}, "X-Beta": {"a", "b"}, "X-Other": {"c"}, "Authorization": {"Bearer mine"}, "Mcp-Param-X": {"d"}, "Accept": {"*/*"},
	}
	res, err := f.Do(t.Context(), &Request{Method: "POST", URL: up.url("/v1"), Header: sent, Body: []byte("{}"), Rules: rules})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := res.ReadAll(10); err != nil {
		t.Fatal(err)
	}
	res.Close()
	passed := make(http.Header)
	res.CopyHeader(passed)
	if len(passed) != 2 || passed.Get("X-Request-Id") != "7" {
		t.Errorf("towards the client: %v", passed)
	}
	for _, name := range []string{"X-Other", "Authorization", "Mcp-Param-X", "Accept"} {
		if got.Get(name) != "" {
			t.Errorf("%s left", name)
		}
	}
	if len(got["X-Beta"]) != 2 || got.Get("Content-Type") == "" || got.Get("User-Agent") != "durward" {
		t.Errorf("towards the upstream: %v", got)
	}

	sent["Content-Type"] = []string{"application/json", "text/plain"}
	var refused *HeaderError
	if _, err := f.Do(t.Context(), &Request{Method: "POST", URL: up.url("/v1"), Header: sent, Body: []byte("{}"), Rules: rules}); !errors.As(err, &refused) {
		t.Errorf("two types of content: %v", err)
	}
}

// TestRequestTimes checks that a request may have its own time limits.
func TestRequestTimes(t *testing.T) { onBoth(t, testRequestTimes) }

func testRequestTimes(t *testing.T, via client) {
	up := newUpstream(t, func(c *conn) {
		if r, _ := c.request(); r != nil && r.URL.Path == "/begins" {
			c.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
		}
		c.untilGone()
	})
	f, _ := via.forwarder(t, Options{}, Limits{HeaderTimeout: time.Hour, Idle: time.Hour})
	if _, err := f.Do(t.Context(), &Request{Method: "POST", URL: up.url("/"), HeaderTimeout: 50 * time.Millisecond}); !errors.Is(err, ErrTimeout) {
		t.Errorf("got %v, want %v", err, ErrTimeout)
	}
	res, err := f.Do(t.Context(), &Request{Method: "POST", URL: up.url("/begins"), Idle: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	if _, err := res.ReadAll(10); !errors.Is(err, ErrIdle) {
		t.Errorf("got %v, want %v", err, ErrIdle)
	}
}
