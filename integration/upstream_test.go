package integration

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// upstream is an MCP server whose behaviour a test sets, and keeps every byte that it receives.
type upstream struct {
	server *httptest.Server
	url    string // of the MCP endpoint

	mu       sync.Mutex
	received bytes.Buffer // of all connections, as it came
	requests []recorded
}

// recorded is a request as it arrived.
type recorded struct {
	method, uri string
	header      http.Header
	body        string
}

// newUpstream starts a server. serve answers; the body was read for it.
func newUpstream(t testing.TB, serve func(w http.ResponseWriter, r *http.Request, body []byte)) *upstream {
	t.Helper()
	u := new(upstream)
	u.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the sender went away
		}
		u.mu.Lock()
		u.requests = append(u.requests, recorded{method: r.Method, uri: r.RequestURI, header: r.Header.Clone(), body: string(body)})
		u.mu.Unlock()
		serve(w, r, body)
	}))
	u.server.Listener = &recordingListener{Listener: u.server.Listener, upstream: u}
	u.server.Start()
	t.Cleanup(u.server.Close)
	u.url = u.server.URL + "/mcp"
	return u
}

// all lists the requests until now.
func (u *upstream) all() []recorded {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]recorded(nil), u.requests...)
}

// last returns the newest request.
func (u *upstream) last(t testing.TB) recorded {
	t.Helper()
	requests := u.all()
	if len(requests) == 0 {
		t.Fatal("the upstream has received nothing")
	}
	return requests[len(requests)-1]
}

// bytes returns all bytes that came over the wire until now.
func (u *upstream) bytes() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.received.String()
}

type recordingListener struct {
	net.Listener
	upstream *upstream
}

func (l *recordingListener) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &recordingConn{Conn: connection, upstream: l.upstream}, nil
}

type recordingConn struct {
	net.Conn
	upstream *upstream
}

func (c *recordingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.upstream.mu.Lock()
	c.upstream.received.Write(p[:n])
	c.upstream.mu.Unlock()
	return n, err
}
