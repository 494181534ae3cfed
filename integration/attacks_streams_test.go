package integration

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
)

// beginEvents answers 200 with an event stream's headers.
func beginEvents(w http.ResponseWriter) *http.ResponseController {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	_ = out.Flush()
	return out
}

// news is a message that servers may send at any time.
func news(text string) string {
	return `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + text + `"}}`
}

// saying is an upstream whose every answer on /events is one text.
func saying(t testing.TB, text func(w io.Writer)) *upstream {
	t.Helper()
	return newUpstream(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		beginEvents(w)
		text(w)
	})
}

func (u *upstream) eventsEntry() map[string]any {
	return map[string]any{"events_url": u.server.URL + "/events"}
}

// TestAttackEvents checks the effect of hostile event streams on /sse (M19).
func TestAttackEvents(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	token := g.token(alice)
	const good = "event: data_update\ndata: {\"n\":1}\n\n"
	passed := event{"data_update", `{"n":1}`}
	failed := event{"error", `{"error":"UpstreamError","message":"The upstream server did not give a usable answer"}`}
	closed := event{"status_change", `{"reason":"upstream_closed","status":"disconnected"}`}
	for _, tc := range []struct {
		name string
		text func(w io.Writer)
		want []event // after connected
	}{
		{"M19 data line of 10 MiB", func(w io.Writer) { _, _ = io.WriteString(w, good+"data: "+strings.Repeat("x", 10<<20)+"\n\n"+good) }, []event{passed, failed}},
		{"M19 a line that never ends", func(w io.Writer) {
			_, _ = io.WriteString(w, good+"data: ")
			for chunk := strings.Repeat("x", 64<<10); ; {
				if _, err := io.WriteString(w, chunk); err != nil {
					return
				}
			}
		}, []event{passed, failed}},
		{"M19 an event of endless lines", func(w io.Writer) {
			for {
				if _, err := io.WriteString(w, strings.Repeat("data: x\n", 1000)); err != nil {
					return
				}
			}
		}, []event{failed}},
		{"M19 just under a MiB", func(w io.Writer) { _, _ = io.WriteString(w, `data: "`+strings.Repeat("x", 1<<20-64)+"\"\n\n"+good) },
			[]event{{"", `"` + strings.Repeat("x", 1<<20-64) + `"`}, passed, closed}},
		{"M19 carriage returns only", func(w io.Writer) { _, _ = io.WriteString(w, strings.ReplaceAll(good, "\n", "\r")) }, []event{passed, closed}},
		{"M19 byte order mark", func(w io.Writer) { _, _ = io.WriteString(w, "\xef\xbb\xbf"+good) }, []event{passed, closed}},
		{"M19 NUL in text", func(w io.Writer) { _, _ = io.WriteString(w, "data: a\x00b\n\n"+good) }, []event{{"", `"a\u0000b"`}, passed, closed}},
		{"M19 invalid UTF-8 in text", func(w io.Writer) { _, _ = io.WriteString(w, "data: \xff\n\n"+good) }, []event{{"", `"\ufffd"`}, passed, closed}},
		{"M19 a million comments", func(w io.Writer) {
			for range 1000 {
				_, _ = io.WriteString(w, strings.Repeat(":\n", 1000))
			}
			_, _ = io.WriteString(w, good)
		}, []event{passed, closed}},
		{"M19 a million empty events", func(w io.Writer) {
			for range 1000 {
				_, _ = io.WriteString(w, strings.Repeat("event: x\n\n", 1000))
			}
			_, _ = io.WriteString(w, good)
		}, []event{passed, closed}},
		{"an event that does not end", func(w io.Writer) { _, _ = io.WriteString(w, good+"event: data_update\ndata: {\"half\":") }, []event{
			passed, {"error", `{"error":"UpstreamError","message":"The upstream server's stream has ended inside of an event, which was left out"}`}, closed,
		}},
		{"the gateway's own names", func(w io.Writer) {
			_, _ = io.WriteString(w, "event: connected\ndata: {}\n\nevent: error\ndata: {\"error\":\"rate_limit\"}\n\n")
		}, []event{
			{"upstream_connected", "{}"}, {"upstream_error", `{"error":"rate_limit"}`}, closed,
		}},
		{"no event", func(io.Writer) {}, []event{closed}},
		{"text that looks like a field", func(w io.Writer) { _, _ = io.WriteString(w, "data: event: error\n\n") }, []event{{"", `"event: error"`}, closed}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			upstream := saying(t, tc.text)
			s := g.createServer(upstream.url, upstream.eventsEntry())
			stream := g.listenLong("/sse/"+s.Slug, token)
			if first := stream.next(); first.name != "connected" {
				t.Fatalf("the stream begins with %+v", first)
			}
			got := stream.ended()
			if len(got) != len(tc.want) {
				t.Fatalf("%d events instead of %d: %s", len(got), len(tc.want), tail(fmt.Sprint(got), 500))
			}
			for i, e := range got {
				if e != tc.want[i] {
					t.Errorf("event %d is %s instead of %s", i, tail(fmt.Sprint(e), 300), tail(fmt.Sprint(tc.want[i]), 300))
				}
			}
		})
	}
}

// listenLong does the work of listen for events of up to 2 MiB.
func (g *gateway) listenLong(path, token string) *eventStream {
	g.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	response := g.open(ctx, http.MethodGet, path, token, nil)
	if response.StatusCode != http.StatusOK {
		cancel()
		g.t.Fatalf("%s: status %d", path, response.StatusCode)
	}
	s := &eventStream{t: g.t, close: cancel, events: make(chan event, 256)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.events)
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, 2<<20)
		lines.Split(eventLines)
		var e event
		for lines.Scan() {
			field, value, _ := strings.Cut(lines.Text(), ":")
			switch value = strings.TrimPrefix(value, " "); {
			case field == "event":
				e.name = value
			case field == "data":
				e.data += value
			case lines.Text() == "" && e.data != "":
				s.events <- e
				e = event{}
			}
		}
	}()
	g.t.Cleanup(func() { cancel(); <-done })
	return s
}

// eventLines splits at LF, CR and CRLF (WHATWG HTML section 9.2.5). The LF of a CRLF is an empty line of its own here,
// which changes nothing: an event without data is none.
func eventLines(data []byte, atEOF bool) (int, []byte, error) {
	if i := bytes.IndexAny(data, "\r\n"); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// TestAttackMCPEvents checks M19 on /mcp, where events pass byte for byte up to their limit, and an answer that is cut
// must not look whole.
func TestAttackMCPEvents(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{option: "sizes {\n event 64KiB\n }"}) // 1 MiB on /mcp
	token := g.token(alice)
	const answered = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"
	for _, tc := range []struct {
		name, text string
		whole      bool
	}{
		{"M19 odd but small", "\xef\xbb\xbf: comment\r\rid: 1\ndata:\n\nretry: 10\r\ndata: " + news("\xff") + "\r\n\r\n" + answered, true},
		{"W04 many events", strings.Repeat("data: "+news(strings.Repeat("x", 1000))+"\n\n", 10_000) + answered, true},
		{"M19 an event of 2 MiB", "data: " + strings.Repeat("x", 2<<20) + "\n\n", false},
		{"M19 an event of 2 MiB in short lines", strings.Repeat("data: x\n", 2<<17), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			upstream := saying(t, func(w io.Writer) { _, _ = io.WriteString(w, tc.text) })
			s := g.createServer(upstream.url, nil)
			a, err := g.try(http.MethodPost, s.path, token, pingMessage)
			if tc.whole && (err != nil || string(a.body) != tc.text) {
				t.Errorf("%d bytes of %d, %v", len(a.body), len(tc.text), err)
			}
			if !tc.whole && (err == nil && !strings.Contains(string(a.body), "UpstreamError") || len(a.body) > 1<<20) {
				t.Errorf("%d bytes, and then %v", len(a.body), err)
			}
		})
	}
}

// TestAttackAnswers checks that a text that is no answer becomes an upstream error, and nothing of the upstream's
// pages, headers and challenges is passed on (W08, W09).
func TestAttackAnswers(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	token := g.token(alice)
	page := func(status int, header ...string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Add(header[i], header[i+1])
			}
			w.WriteHeader(status)
		}
	}
	with := func(status int, kind, body string, header ...string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			page(status, append(header, "Content-Type", kind)...)(w)
			_, _ = io.WriteString(w, body)
		}
	}
	huge := func(status int, kind string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			for chunk := []byte(strings.Repeat("x", 64<<10)); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}
	}
	zipped := func(w http.ResponseWriter) {
		w.Header().Set("Content-Encoding", "br")
		w.Header().Set("Content-Type", "text/event-stream")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, strings.Repeat("data: x\n\n", 1<<20))
		_ = z.Close()
	}
	const result = `{"jsonrpc":"2.0","id":1,"result":{}}`
	for _, tc := range []struct {
		name   string
		answer func(w http.ResponseWriter)
		mcp    int // status on /mcp; 502 with our own error unless passed
		passed bool
	}{
		{"W08 200 text/html", with(200, "text/html", "<html>secret page</html>"), 502, false},
		{"W08 200 text/plain", with(200, "text/plain", "secret page"), 502, false},
		{"W08 200 without a type", with(200, "", "secret page"), 502, false},
		{"W08 200 and nothing", page(200), 502, false},
		{"W08 204", page(204), 502, false},
		{"W08 202", page(202), 502, false},
		{"W08 205", page(205), 502, false},
		{"W08 206", with(206, "application/json", result, "Content-Range", "bytes 0-1/2"), 502, false},
		{"W08 301", page(301, "Location", "https://evil.example/"), 502, false},
		{"W08 307", page(307, "Location", "http://127.0.0.1:1/"), 502, false},
		{"W08 304", page(304), 502, false},
		{"W08 401 of a server that needs no token", page(401, "WWW-Authenticate", `Bearer resource_metadata="https://evil.example/"`), 502, false},
		{"A18 403 insufficient_scope", page(403, "WWW-Authenticate", `Bearer error="insufficient_scope", scope="admin"`), 403, false},
		{"W08 429", with(429, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"slow down"}}`, "Retry-After", "7"), 429, true},
		{"W08 500 with a body without end", huge(500, "application/json"), 502, false},
		{"W08 500 with an HTML page without end", huge(500, "text/html"), 502, false},
		{"W08 500 and nothing", page(500), 502, false},
		{"W08 503 text/html", with(503, "text/html", "<html>secret page</html>"), 502, false},
		{"W08 400 JSON", with(400, "application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}`), 400, true},
		{"W08 404 text", with(404, "text/plain", "session not found"), 404, true},
		{"W09 an encoding that is not known", zipped, 502, false},
		{"H08 two content types", with(200, "application/json", result, "Content-Type", "text/html"), 502, false},
		{"cookies and CORS of the upstream's", with(200, "application/json", result, "Set-Cookie", "a=b", "Access-Control-Allow-Origin", "*", "Server", "secret page", "Location", "https://evil.example/",
			"Www-Authenticate", "Basic", "Alt-Svc", "h3=\":443\"", "Clear-Site-Data", "*"), 200, true},
	} {
		upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) { tc.answer(w) })
		s := g.createServer(upstream.url, upstream.eventsEntry())
		check := func(t *testing.T, a answer) {
			t.Helper()
			for _, name := range []string{"Set-Cookie", "Location", "Www-Authenticate", "Alt-Svc", "Clear-Site-Data", "Content-Encoding"} {
				if value := a.header.Get(name); value != "" {
					t.Errorf("%s: %s was passed on", name, value)
				}
			}
			if origin := a.header.Get("Access-Control-Allow-Origin"); origin != "" && origin != g.url {
				t.Errorf("the upstream's CORS was passed on: %s", origin)
			}
			if strings.Contains(string(a.body)+a.header.Get("Server"), "secret page") || strings.Contains(fmt.Sprint(a.header), "evil") {
				t.Errorf("the upstream's page was passed on: %s", a.body)
			}
			for _, request := range upstream.all() {
				if request.header.Get("Accept-Encoding") != "identity" {
					t.Errorf("W09 asked for %q", request.header.Get("Accept-Encoding"))
				}
			}
		}
		t.Run(tc.name+" on /mcp", func(t *testing.T) {
			a := g.send(http.MethodPost, s.path, token, echoCall, "Accept", bothKinds, "Origin", g.url)
			check(t, a)
			switch {
			case tc.passed:
				a.want(t, tc.mcp)
			case tc.mcp == http.StatusForbidden:
				a.wantConnect(t)
			default:
				a.wantRPC(t, tc.mcp, -32603, "1", "UpstreamError")
			}
			if strings.Contains(tc.name, "needs no token") != strings.Contains(string(a.body), "directory entry") {
				t.Errorf("what can be done is not said: %s", a.body) // no page on which a user connects would help
			}
			if a.header.Get("Access-Control-Allow-Origin") != g.url {
				t.Error("our own CORS headers are missing")
			}
			if tc.mcp == http.StatusTooManyRequests && a.header.Get("Retry-After") != "7" {
				t.Error("Retry-After is missing")
			}
			if got := len(upstream.all()); got != 1 {
				t.Errorf("W11 the upstream got %d requests", got)
			}
		})
		t.Run(tc.name+" on /sse", func(t *testing.T) {
			a := g.send(http.MethodGet, "/sse/"+s.Slug, token, nil)
			check(t, a)
			a.wantError(t, http.StatusBadGateway, "UpstreamError")
		})
	}
	t.Run("a notification may be answered with nothing", func(t *testing.T) {
		upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) { w.WriteHeader(http.StatusAccepted) })
		s := g.createServer(upstream.url, nil)
		a := g.send(http.MethodPost, s.path, token, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Accept", bothKinds)
		if a.want(t, http.StatusAccepted); len(a.body) != 0 {
			t.Errorf("202 with %q", a.body)
		}
	})
}

// TestAttackRawAnswers checks H08 and upstreams that break HTTP, before and in an answer; W11, nothing is sent twice.
func TestAttackRawAnswers(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	token := g.token(alice)
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	for _, tc := range []struct {
		name, answer string
	}{
		{"W11 nothing", ""},
		{"W11 half a status line", "HTTP/1.1 20"},
		{"H08 NUL in a header", head + "Mcp-Param-X: a\x00b\r\nContent-Length: 2\r\n\r\n{}"},
		{"H08 bare CR in a header", head + "Mcp-Param-X: a\rSet-Cookie: x=y\r\nContent-Length: 2\r\n\r\n{}"},
		{"H08 session id with a blank", head + "Mcp-Session-Id: a b\r\nContent-Length: 2\r\n\r\n{}"},
		{"H08 session id of 1 KiB", head + "Mcp-Session-Id: " + strings.Repeat("a", 1024) + "\r\nContent-Length: 2\r\n\r\n{}"},
		{"H08 two session ids", head + "Mcp-Session-Id: a\r\nMcp-Session-Id: b\r\nContent-Length: 2\r\n\r\n{}"},
		{"H14 header of 1 MiB", head + "X-Padding: " + strings.Repeat("a", 1<<20) + "\r\nContent-Length: 2\r\n\r\n{}"},
		{"H07 two lengths", head + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"},
		{"H12 101 nobody asked for", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"},
		{"1xx without end", strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 1000)},
		{"less than announced", head + "Content-Length: 100\r\n\r\n{"},
		{"half a chunk", head + "Transfer-Encoding: chunked\r\n\r\n10\r\n{"},
		{"B07 16 MiB and more announced", head + "Content-Length: 16777217\r\n\r\n{"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			address, asked := rawUpstream(t, tc.answer)
			s := g.createServer("http://"+address+"/mcp", nil)
			a := g.send(http.MethodPost, s.path, token, echoCall)
			a.wantRPC(t, http.StatusBadGateway, -32603, "1", "UpstreamError")
			if a.header.Get("Set-Cookie") != "" || a.header.Get("Mcp-Session-Id") != "" {
				t.Errorf("injected: %v", a.header)
			}
			if got := asked.Load(); got != 1 {
				t.Errorf("W11 the call was sent %d times", got)
			}
		})
	}
}

// rawUpstream answers every POST with the same bytes and closes the connection. asked counts the requests.
func rawUpstream(t *testing.T, answer string) (address string, asked *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	asked = new(atomic.Int64)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer connection.Close()
				request, err := http.ReadRequest(bufio.NewReader(connection))
				if err != nil {
					return
				}
				if _, err := io.Copy(io.Discard, request.Body); err != nil {
					return
				}
				asked.Add(1)
				_, _ = io.WriteString(connection, answer)
			}()
		}
	}()
	return listener.Addr().String(), asked
}

// TestAttackSlowness checks upstreams that never begin, and such that begin and fall silent (W03).
func TestAttackSlowness(t *testing.T) {
	t.Parallel()
	// The first one is also what those get that do begin.
	const handler = "{\n transport {\n  response_header_timeout 5s\n  read_timeout 500ms\n }\n }\n"
	g := startGateway(t, settings{whole: true, site: "durward_auth\n durward_limit\n durward_policy\n durward_credential\n durward_mcp " + handler + " durward_sse " + handler + " durward_platform"})
	token := g.token(alice)
	hang := func(w http.ResponseWriter, r *http.Request, text string) {
		out := http.NewResponseController(w)
		if text != "" {
			beginEvents(w)
			_, _ = io.WriteString(w, text)
			_ = out.Flush()
		}
		<-r.Context().Done()
	}
	silent := newUpstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		switch r.URL.Path {
		case "/never":
			hang(w, r, "")
		case "/headers":
			hang(w, r, ":\n\n")
		default:
			hang(w, r, "data: {\"half\":\n")
		}
	})
	for _, path := range []string{"/never", "/headers", "/event"} {
		s := g.createServer(silent.server.URL+path, map[string]any{"events_url": silent.server.URL + path})
		t.Run("W03 /mcp"+path, func(t *testing.T) {
			t.Parallel()
			a, err := g.try(http.MethodPost, s.path, token, pingMessage)
			if path == "/never" {
				a.wantRPC(t, http.StatusBadGateway, -32603, "1", "UpstreamError")
			} else if err == nil && !strings.Contains(string(a.body), "UpstreamError") {
				t.Errorf("%d %s looks whole", a.status, a.body)
			}
		})
		t.Run("W03 /sse"+path, func(t *testing.T) {
			t.Parallel()
			if path == "/never" {
				g.send(http.MethodGet, "/sse/"+s.Slug, token, nil).wantError(t, http.StatusBadGateway, "UpstreamError")
				return
			}
			stream := g.listen(http.MethodGet, "/sse/"+s.Slug, token, nil)
			stream.next()
			rest := stream.ended()
			if len(rest) != 2 || rest[0].name != "error" || !strings.Contains(rest[0].data, "UpstreamError") || rest[1].name != "status_change" || !strings.Contains(rest[1].data, `"timeout"`) {
				t.Errorf("got %+v", rest)
			}
		})
	}
}

// TestAttackSlowReader checks that an upstream that sends without end is held back by a client that does not read, and
// flows to one that does (W01, W04).
func TestAttackSlowReader(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	token := g.token(alice)
	const most = 256 << 20
	held := make(chan int, 1)
	upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		out := beginEvents(w)
		frame := []byte("data: " + news(strings.Repeat("x", 32<<10)) + "\n\n")
		sent := 0
		for ; sent < most; sent += len(frame) {
			// Nobody takes anything any more: the way to the client is full.
			_ = out.SetWriteDeadline(time.Now().Add(2 * time.Second))
			if _, err := w.Write(frame); err != nil {
				break
			}
		}
		select {
		case held <- sent:
		default:
		}
	})
	s := g.createServer(upstream.url, upstream.eventsEntry())
	for _, tc := range []struct{ name, raw string }{
		{"W01 /sse", "GET /sse/" + s.Slug + " HTTP/1.1\r\nHost: " + strings.TrimPrefix(g.url, "http://") + "\r\nAuthorization: Bearer " + token + "\r\n\r\n"},
		{"W01 /mcp", g.rawPost(s.path, token, lengthLine(pingMessage), pingMessage)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			connection, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			if _, err := io.WriteString(connection, tc.raw); err != nil {
				t.Fatal(err)
			}
			if sent := receive(t, held, "the upstream to be held back"); sent > most/4 {
				t.Errorf("the upstream could send %d MiB to a client that does not read", sent>>20)
			}
		})
	}
	for _, path := range []string{"/sse/" + s.Slug, s.path} {
		t.Run("W04 "+path, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			method, body := http.MethodGet, any(nil)
			if path == s.path {
				method, body = http.MethodPost, pingMessage
			}
			response := g.open(ctx, method, path, token, body, "Accept", bothKinds)
			defer response.Body.Close()
			if n, err := io.CopyN(io.Discard, response.Body, 32<<20); err != nil {
				t.Errorf("%d bytes, %v", n, err)
			}
			cancel()
			receive(t, held, "the upstream to be let go")
		})
	}
}

// disconnects returns the number of clients that go away: DISCONNECTS, 200 by default.
func disconnects(t *testing.T) int {
	t.Helper()
	text := os.Getenv("DISCONNECTS")
	if text == "" {
		return 200
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 4 {
		t.Fatalf("DISCONNECTS=%q is not a number of clients", text)
	}
	return n
}

// TestAttackDisconnects checks that clients that go away leave nothing behind, neither here nor at the upstream, which
// is free within 100 ms (W05).
func TestAttackDisconnects(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	token := g.token(alice)
	arrived, freed := make(chan struct{}, 1), make(chan time.Time, 1)
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		if r.URL.Path != "/slow" {
			beginEvents(w)
		}
		arrived <- struct{}{}
		<-r.Context().Done()
		freed <- time.Now()
	})
	s := g.createServer(upstream.url, upstream.eventsEntry())
	slow := g.createServer(upstream.server.URL+"/slow", nil)
	goroutines := func() int {
		n, err := strconv.Atoi(g.metric("go_goroutines"))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var took []time.Duration
	leave := func(method, path string, body any) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		request, err := rig.NewRequest(ctx, method, g.url+path, token, body, "Accept", bothKinds)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			if response, err := g.client.Do(request); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
		}()
		receive(t, arrived, "the request to arrive")
		left := time.Now()
		cancel()
		took = append(took, receive(t, freed, "the upstream to be let go").Sub(left))
		<-done
	}
	round := func() {
		leave(http.MethodGet, "/sse/"+s.Slug, nil)
		leave(http.MethodPost, s.path, pingMessage)
		leave(http.MethodPost, slow.path, pingMessage)
		leave(http.MethodGet, s.path, nil)
	}
	round()
	before, files := goroutines(), g.descriptors()
	took = nil
	for range disconnects(t) / 4 {
		round()
	}
	if most := percentile(took, 99); most > allowed(100*time.Millisecond) {
		t.Errorf("99 of 100 upstreams were free after %v", most)
	}
	t.Logf("%d clients left; half of the upstreams were free after %v, 99 of 100 after %v", len(took), percentile(took, 50), percentile(took, 99))
	rig.Eventually(t, "goroutines to end", func() bool { return goroutines() <= before+10 })
	rig.Eventually(t, "connections to be closed", func() bool { return g.descriptors() <= files+4 })
	for _, family := range []string{"mcp", "sse"} {
		if open := g.metric(`durward_open_streams{family="` + family + `"}`); open != "0" {
			t.Errorf("%s open streams of %s", open, family)
		}
	}
}
