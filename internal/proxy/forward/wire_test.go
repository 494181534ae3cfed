package forward

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/proxy/http1"
)

const okJSON = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"

// TestWireBytes fixes the exact bytes that an upstream gets.
func TestWireBytes(t *testing.T) { onBoth(t, testWireBytes) }

func testWireBytes(t *testing.T, via client) {
	hostile := http.Header{
		"Accept":                   {"application/json, text/event-stream"},
		"Content-Type":             {"application/json"},
		"Authorization":            {"Bearer client-jwt"},
		"Proxy-Authorization":      {"Basic eA=="},
		"Cookie":                   {"a=b"},
		"X-Api-Key":                {"client-key"},
		"X-Auth-User":              {"admin"},
		"Authorization_":           {"x"},
		"X-Upstream-Authorization": {"x"},
		"Connection":               {"authorization, x-request-id, Mcp-Name", "keep-alive"},
		"Keep-Alive":               {"timeout=1"},
		"Te":                       {"trailers"},
		"Trailer":                  {"Authorization"},
		"Transfer-Encoding":        {"chunked"},
		"Upgrade":                  {"websocket"},
		"Expect":                   {"100-continue"},
		"Host":                     {"evil.test"},
		"Content-Length":           {"999"},
		"Content-Encoding":         {"identity"},
		"Accept-Encoding":          {"gzip"},
		"Origin":                   {"https://evil.test"},
		"Referer":                  {"https://evil.test"},
		"Forwarded":                {"for=1.2.3.4"},
		"X-Forwarded-For":          {"1.2.3.4"},
		"X-Real-Ip":                {"1.2.3.4"},
		"Idempotency-Key":          {"k"},
		"X-Idempotency-Key":        {"k"},
		"X-Mcp-Session-Id":         {"tracking"},
		"Mcp-Agent-Session-Id":     {"tracking"},
		"Mcp-Session-Id":           {"sealed-by-the-gateway"},
		"X-Durward-Organization":   {"rival"},
		"Mcp_name":                 {"x"},
		"Mcp-Name":                 {"echo"},
		"Mcp-Method":               {"tools/call"},
		"Mcp-Param-Session-Id":     {"s"},
		"Mcp-Protocol-Version":     {"2025-11-25"},
		"Last-Event-Id":            {"7"},
		"User-Agent":               {"tester/1"},
		"Traceparent":              {"00-x"},
		"Tracestate":               {"a=1", "b=2"},
		"Baggage":                  {"k=v"},
		"Accept-Language":          {"de"},
	}
	const forwarded = "Accept: application/json, text/event-stream\r\nAccept-Encoding: identity\r\n" +
		"Authorization: Bearer provider\r\nBaggage: k=v\r\n"
	const rest = "Last-Event-Id: 7\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\nMcp-Param-Session-Id: s\r\nMcp-Protocol-Version: 2025-11-25\r\n" +
		"Mcp-Session-Id: up-1\r\nTraceparent: 00-x\r\nTracestate: a=1\r\nTracestate: b=2\r\n\r\n"
	for _, tc := range []struct {
		name string
		path string
		req  Request
		want string
	}{
		{
			"H01 H02 H03 H09 H16 POST with everything a client may try", "/base/mcp?as=sse&x=%2F",
			Request{Method: "POST", Header: hostile, SessionID: "up-1", Body: []byte(`{"id":1}`), Credential: bearer("provider")},
			"POST /base/mcp?as=sse&x=%2F HTTP/1.1\r\nHost: HOST\r\nUser-Agent: tester/1\r\nContent-Length: 8\r\n" + forwarded + "Content-Type: application/json\r\n" + rest + `{"id":1}`,
		},
		{
			"GET stream", "/mcp",
			Request{Method: "GET", Header: hostile, SessionID: "up-1", Credential: bearer("provider")},
			"GET /mcp HTTP/1.1\r\nHost: HOST\r\nUser-Agent: tester/1\r\n" + forwarded + rest,
		},
		{
			"DELETE, nothing from the client", "/mcp",
			Request{Method: "DELETE"},
			"DELETE /mcp HTTP/1.1\r\nHost: HOST\r\nUser-Agent: durward\r\nAccept-Encoding: identity\r\n\r\n",
		},
		{
			"P05 base path and query are kept, filters added, credential in the query replaces", "/a/%2e%2e/b?q=1&api_key=old&limit=9#f",
			Request{Method: "GET", EventsOnly: true, Query: url.Values{"limit": {"5"}, "object_type": {"a b", "c&d"}},
				Credential: CredentialFunc(func(r *http1.Request) error {
					SetQuery(r.URL, "api_key", "s3cret&x")
					return nil
				})},
			"GET /a/%2e%2e/b?q=1&limit=5&object_type=a+b&object_type=c%26d&api_key=s3cret%26x HTTP/1.1\r\nHost: HOST\r\nUser-Agent: durward\r\nAccept: text/event-stream\r\nAccept-Encoding: identity\r\n\r\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := make(chan string, 1)
			up := newUpstream(t, func(c *conn) {
				if _, raw := c.request(); raw != "" {
					got <- raw
					c.say(okJSON)
					c.untilGone()
				}
			})
			f, d := via.forwarder(t, Options{}, Limits{})
			tc.req.URL = up.url(tc.path)
			before := tc.req.URL.String()
			res, err := f.Do(t.Context(), &tc.req)
			if err != nil {
				t.Fatal(err)
			}
			res.Discard()
			want := strings.Replace(tc.want, "HOST", up.l.Addr().String(), 1)
			if diff := cmp.Diff(want, <-got); diff != "" {
				t.Errorf("wire bytes (-want +got):\n%s", diff)
			}
			if n := d.writes.Load(); n != 1 {
				t.Errorf("request left in %d writes, want 1", n)
			}
			if d.tls.Load() != 0 {
				t.Error("plain http was dialled by the dialer for TLS")
			}
			if tc.req.URL.String() != before {
				t.Errorf("server's URL was changed to %s", tc.req.URL)
			}
			if len(hostile["Tracestate"]) != 2 || hostile.Get("Authorization") != "Bearer client-jwt" {
				t.Error("client's headers were changed")
			}
		})
	}
}

func TestRefusedRequests(t *testing.T) {
	f := New(Over(roundTripFunc(func(*http.Request) (*http.Response, error) {
		t.Error("a refused request was sent")
		return nil, errors.New("sent")
	})), Limits{})
	ok, _ := url.Parse("https://up.test/mcp")
	for _, tc := range []struct {
		name   string
		req    Request
		header string // name in the HeaderError; "" for any other error
	}{
		{"H08 CR LF in a header", Request{Method: "POST", URL: ok, Header: http.Header{"Mcp-Name": {"a\r\nX: y"}}}, "Mcp-Name"},
		{"H08 NUL in a header", Request{Method: "POST", URL: ok, Header: http.Header{"Mcp-Name": {"a\x00"}}}, "Mcp-Name"},
		{"two Mcp-Method", Request{Method: "POST", URL: ok, Header: http.Header{"Mcp-Method": {"tools/list", "tools/call"}}}, "Mcp-Method"},
		{"two Content-Type", Request{Method: "POST", URL: ok, Body: []byte("{}"), Header: http.Header{"Content-Type": {"a", "b"}}}, "Content-Type"},
		{"session id with a line feed", Request{Method: "GET", URL: ok, SessionID: "a\nb"}, sessionHeader},
		{"session id with a blank", Request{Method: "GET", URL: ok, SessionID: "a b"}, sessionHeader},
		{"method", Request{Method: "CONNECT", URL: ok}, ""},
		{"GET with a body", Request{Method: "GET", URL: ok, Body: []byte("x")}, ""},
		{"no URL", Request{Method: "GET"}, ""},
		{"scheme", Request{Method: "GET", URL: &url.URL{Scheme: "file", Host: "x", Path: "/etc/passwd"}}, ""},
		{"no host", Request{Method: "GET", URL: &url.URL{Scheme: "http", Path: "/x"}}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := f.Do(t.Context(), &tc.req)
			var bad *HeaderError
			if err == nil || errors.As(err, &bad) != (tc.header != "") {
				t.Fatalf("got error %v", err)
			}
			if bad != nil && bad.Name != tc.header {
				t.Errorf("names %s, want %s", bad.Name, tc.header)
			}
		})
	}
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestAnswers sends scripted answers through a forwarder and checks the client's answers.
func TestAnswers(t *testing.T) { onBoth(t, testAnswers) }

func testAnswers(t *testing.T, via client) {
	for _, tc := range []struct {
		name, answer string
		class        error // of Do or Relay; nil: passes
		status       int   // 0: nothing was committed; -1: either
		header       http.Header
		body         string
	}{
		{"JSON", okJSON, nil, 200, http.Header{"Content-Type": {"application/json"}, "Content-Length": {"2"}}, "{}"},
		{"headers that pass and those that do not",
			"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nSet-Cookie: a=b\r\nServer: x\r\nWWW-Authenticate: Bearer\r\n" +
				"Access-Control-Allow-Origin: *\r\nLocation: /x\r\nMcp-Session-Id: up-1\r\nMcp-Thing: y\r\nRetry-After: 3\r\nEtag: \"e\"\r\nAllow: POST\r\nDate: x\r\nX-Powered-By: z\r\n\r\n{}",
			nil, 200, http.Header{"Content-Type": {"application/json"}, "Content-Length": {"2"}, "Mcp-Thing": {"y"}, "Retry-After": {"3"}, "Etag": {`"e"`}, "Allow": {"POST"}}, "{}"},
		{"202 without a body", "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", nil, 202, http.Header{"Content-Length": {"0"}}, ""},
		{"204", "HTTP/1.1 204 No Content\r\n\r\n", nil, 204, http.Header{}, ""},
		{"404 with JSON-RPC", "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", nil, 404, http.Header{"Content-Type": {"application/json"}, "Content-Length": {"2"}}, "{}"},
		{"H13 trailers are dropped", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTrailer: X-User-Id\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-User-Id: root\r\nAuthorization: x\r\n\r\n",
			nil, 200, http.Header{"Content-Type": {"application/json"}}, "{}"},
		{"event stream byte for byte", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: max-age=60\r\nConnection: close\r\n\r\n: hi\n\nid: 1\r\ndata:\r\n\r\nretry: 5\rdata: x\r\rdata: unfinished",
			nil, 200, http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}, "Cache-Control": {"no-cache, no-transform"}, "X-Accel-Buffering": {"no"}},
			": hi\n\nid: 1\r\ndata:\r\n\r\nretry: 5\rdata: x\r\rdata: unfinished"},
		{"1xx before the answer", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + okJSON, nil, 200, http.Header{"Content-Type": {"application/json"}, "Content-Length": {"2"}}, "{}"},
		{"W08 redirect", "HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:1/steal\r\nContent-Length: 0\r\n\r\n", ErrUpstream, 0, nil, ""},
		{"W08 301", "HTTP/1.1 301 M\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", ErrUpstream, 0, nil, ""},
		{"W08 206", "HTTP/1.1 206 P\r\nContent-Length: 2\r\n\r\n{}", ErrUpstream, 0, nil, ""},
		{"101", "HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", ErrUpstream, 0, nil, ""},
		{"status 999", "HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n", ErrUpstream, 0, nil, ""},
		{"W09 gzip", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxx", ErrUpstream, -1, nil, ""},
		{"H08 CR in a response header", "HTTP/1.1 200 OK\r\nMcp-X: a\rb\r\nContent-Length: 2\r\n\r\n{}", ErrUpstream, 0, nil, ""},
		{"H08 NUL in a response header", "HTTP/1.1 200 OK\r\nMcp-X: a\x00b\r\nContent-Length: 2\r\n\r\n{}", ErrUpstream, 0, nil, ""},
		{"two session ids", "HTTP/1.1 200 OK\r\nMcp-Session-Id: a\r\nMcp-Session-Id: b\r\nContent-Length: 2\r\n\r\n{}", ErrUpstream, 0, nil, ""},
		{"two content types", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\n{}", ErrUpstream, 0, nil, ""},
		{"garbage", "SSH-2.0-OpenSSH_9\r\n", ErrUpstream, 0, nil, ""},
		{"headers without end", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 200<<10), ErrUpstream, 0, nil, ""},
		{"declared body above the cap", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n", ErrTooLarge, 0, nil, ""},
		{"connection closed without a word", "", ErrUpstream, 0, nil, ""},
		{"body that stops early", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{}", ErrUpstream, 200, nil, "{}"},
		{"chunk that lies", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n", ErrUpstream, 200, nil, "{}"},
		{"undeclared body above the cap", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + strings.Repeat("x", 5000), ErrTooLarge, -1, nil, ""},
		{"event above the cap", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: " + strings.Repeat("x", 5000), ErrTooLarge, -1, nil, ""},
		{"events below the cap each", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + strings.Repeat("data: "+strings.Repeat("x", 3000)+"\n\n", 9),
			nil, 200, http.Header{"Content-Type": {"text/event-stream"}, "Cache-Control": {"no-cache, no-transform"}, "X-Accel-Buffering": {"no"}}, strings.Repeat("data: "+strings.Repeat("x", 3000)+"\n\n", 9)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			up := newUpstream(t, func(c *conn) {
				if _, raw := c.request(); raw != "" {
					c.say(tc.answer)
				}
			})
			f, _ := via.forwarder(t, Options{}, Limits{})
			w := httptest.NewRecorder()
			err := func() error {
				res, err := f.Do(t.Context(), &Request{Method: "POST", URL: up.url("/mcp?k=s3cret"), Body: []byte("{}"), Credential: bearer("canary")})
				if err != nil {
					return err
				}
				defer res.Close()
				res.CopyHeader(w.Header())
				return res.Relay(w, 4000)
			}()
			if !errors.Is(err, tc.class) {
				t.Fatalf("got error %v, want %v", err, tc.class)
			}
			if err != nil {
				if strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("error leaks a credential: %v", err)
				}
				var e *Error
				if !errors.As(err, &e) {
					t.Fatalf("error is a %T", err)
				}
				if tc.status >= 0 && e.Committed != (tc.status != 0) {
					t.Errorf("Committed = %v", e.Committed)
				}
				if tc.status == 0 && (w.Body.Len() > 0 || w.Header().Get("Content-Length") != "") {
					t.Error("something was written although nothing was committed")
				}
				if tc.status == 200 && w.Body.String() != tc.body {
					t.Errorf("body %q", w.Body)
				}
				return
			}
			if w.Code != tc.status || w.Body.String() != tc.body {
				t.Errorf("got %d %q, want %d %q", w.Code, w.Body, tc.status, tc.body)
			}
			if diff := cmp.Diff(tc.header, w.Header()); diff != "" {
				t.Errorf("headers (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadBody(t *testing.T) {
	for _, tc := range []struct {
		name   string
		body   io.Reader
		length int64
		header http.Header
		want   int // length, or a status above 299
	}{
		{"declared", strings.NewReader("12345"), 5, nil, 5},
		{"chunked", strings.NewReader("12345"), -1, nil, 5},
		{"at the limit", strings.NewReader(strings.Repeat("x", 100)), 100, nil, 100},
		{"at the limit, chunked", strings.NewReader(strings.Repeat("x", 100)), -1, nil, 100},
		{"above, declared: not read", failing{t}, 101, nil, 413},
		{"above, chunked", strings.NewReader(strings.Repeat("x", 101)), -1, nil, 413},
		{"endless", endless{}, -1, nil, 413},
		{"empty", strings.NewReader(""), 0, nil, 0},
		{"encoded: not read", failing{t}, 5, http.Header{"Content-Encoding": {"gzip"}}, 415},
		{"identity", strings.NewReader("x"), 1, http.Header{"Content-Encoding": {"Identity"}}, 1},
		{"ends early", io.MultiReader(strings.NewReader("x"), broken{}), 5, nil, 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := &http.Request{Body: io.NopCloser(tc.body), ContentLength: tc.length, Header: tc.header}
			b, err := ReadBody(r, 100)
			var bad *BodyError
			if errors.As(err, &bad) {
				if bad.Status != tc.want {
					t.Errorf("got %d, want %d", bad.Status, tc.want)
				}
				return
			}
			if err != nil || len(b) != tc.want {
				t.Errorf("got %d bytes, %v", len(b), err)
			}
		})
	}
	big := strings.Repeat("0123456789abcdef", 200<<10/16)
	b, err := ReadBody(&http.Request{Body: io.NopCloser(strings.NewReader(big)), ContentLength: int64(len(big))}, 4<<20)
	if err != nil || string(b) != big {
		t.Errorf("a body that is read in pieces: %d bytes, %v", len(b), err)
	}
}

type failing struct{ t *testing.T }

func (f failing) Read([]byte) (int, error) { f.t.Error("body was read"); return 0, io.EOF }

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestEventSize(t *testing.T) {
	const stream = "data: a\n\ndata: b\r\n\r\ndata: ccc\r\r: x\n\n\n\ndata: unfinished"
	for step := 1; step <= len(stream); step++ {
		var s eventSize
		var largest int64
		for i := 0; i < len(stream); i += step {
			largest = max(largest, s.Add([]byte(stream[i:min(i+step, len(stream))])))
		}
		if largest != int64(len("data: unfinished")) {
			t.Errorf("in steps of %d: largest event %d", step, largest)
		}
	}
}

// FuzzEventSize compares with counting byte by byte, for any division into pieces.
func FuzzEventSize(f *testing.F) {
	f.Add("data: a\r\n\r\nx\r\r\n\n", uint8(3))
	f.Fuzz(func(t *testing.T, stream string, step uint8) {
		var got, want, n int64
		var s eventSize
		for i := 0; i < len(stream); i += int(step) + 1 {
			got = max(got, s.Add([]byte(stream[i:min(i+int(step)+1, len(stream))])))
		}
		empty := true
		for i := range len(stream) {
			c := stream[i]
			if c == '\n' && i > 0 && stream[i-1] == '\r' {
				continue
			}
			n++
			want = max(want, n)
			switch {
			case c != '\n' && c != '\r':
				empty = false
			case empty:
				n = 0
			default:
				empty = true
			}
		}
		if got != want || s.n != n {
			t.Errorf("%q in steps of %d: largest %d, now %d; want %d, %d", stream, int(step)+1, got, s.n, want, n)
		}
	})
}

func TestUnknownVersion(t *testing.T) {
	if _, err := NewTransports(&dialer{}, Options{Versions: []string{"h2c"}}); err == nil {
		t.Error("h2c was accepted")
	}
}

func FuzzSetQuery(f *testing.F) {
	f.Add("q=1&api_key=old&api%5Fkey=older&limit=9", "api_key", "s&=#+ \x00")
	f.Add("&&;=%zz", "", "")
	f.Fuzz(func(t *testing.T, query, name, value string) {
		u := &url.URL{Scheme: "https", Host: "up.test", RawQuery: query}
		before := u.Query()
		SetQuery(u, name, value)
		after := u.Query()
		if got := after[name]; len(got) != 1 || got[0] != value {
			t.Errorf("%q: %q is %q, want %q", u.RawQuery, name, got, value)
		}
		delete(before, name)
		delete(after, name)
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("others changed (-before +after):\n%s", diff)
		}
	})
}

// TestManyAnswerFields checks the bound on the number of an upstream's headers, with both clients.
func TestManyAnswerFields(t *testing.T) { onBoth(t, testManyAnswerFields) }

func testManyAnswerFields(t *testing.T, via client) {
	for n, good := range map[int]bool{200: true, 300: false} {
		up := newUpstream(t, func(c *conn) {
			if _, raw := c.request(); raw != "" {
				c.say("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n" + strings.Repeat("Allow: GET\r\n", n) + "\r\n{}")
				c.untilGone()
			}
		})
		f, _ := via.forwarder(t, Options{}, Limits{})
		res, err := f.Do(t.Context(), &Request{Method: http.MethodPost, URL: up.url("/"), Body: []byte("{}")})
		if err == nil {
			header := make(http.Header)
			res.CopyHeader(header)
			if given := len(header["Allow"]); given != n {
				t.Errorf("%d of %d fields", given, n)
			}
			res.Close()
		}
		if (err == nil) != good || err != nil && !errors.Is(err, ErrUpstream) {
			t.Errorf("%d fields: %v", n, err)
		}
	}
}
