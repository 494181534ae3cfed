package http1

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"testing"
	"time"
)

// refusing dials nothing, and remembers the requested addresses.
type refusing struct{ asked []string }

func (d *refusing) DialContext(_ context.Context, network, addr string) (net.Conn, error) {
	d.asked = append(d.asked, "TLS "+network+" "+addr)
	return nil, errSource
}

func (d *refusing) DialPlain(_ context.Context, network, addr string) (net.Conn, error) {
	d.asked = append(d.asked, network+" "+addr)
	return nil, errSource
}

func TestAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"http://a.test/": "tcp a.test:80", "https://a.test/": "TLS tcp a.test:443", "http://a.test:443/": "tcp a.test:443", "https://a.test:80/": "TLS tcp a.test:80",
		"http://[::1]/": "tcp [::1]:80", "https://[::1]:8443/": "TLS tcp [::1]:8443", "https://bücher.test/": "TLS tcp xn--bcher-kva.test:443",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		d := &refusing{}
		c := New(d, Options{})
		if _, err := c.Send(t.Context(), &Request{URL: u}); !errors.Is(err, errSource) || !slices.Equal(d.asked, []string{want}) {
			t.Errorf("%s: dialled %q, %v", text, d.asked, err)
		}
		if len(c.pool.hosts) != 0 {
			t.Errorf("%s: the host is not forgotten", text)
		}
	}
}

// TestHandshakeCloses checks that a connection without TLS on the other side is not left open.
func TestHandshakeCloses(t *testing.T) {
	m := newMemory(1<<20, false, []byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	_, err := New(&inMemory{conns: []*memory{m}}, Options{}).Send(t.Context(), &Request{URL: &url.URL{Scheme: "https", Host: "a.test"}})
	if bad := (*HandshakeError)(nil); !errors.As(err, &bad) || !m.closed {
		t.Errorf("closed is %v, %v", m.closed, err)
	}
}

// TestAliveNoMore checks that a connection that this side has closed is not alive.
func TestAliveNoMore(t *testing.T) {
	up := newUpstream(t, func(c *peer) { c.untilGone() })
	raw, err := net.Dial("tcp", up.l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := newConn(raw, raw)
	if !c.alive() {
		t.Error("an open connection is not alive")
	}
	c.abort()
	if c.alive() {
		t.Error("a closed connection is alive")
	}
}

// said is a connection that says one thing to every read, and keeps deadlines or does not.
type said struct {
	net.Conn
	n         int
	err       error
	deadlines []error
}

func (s *said) Read(p []byte) (int, error) { return min(s.n, len(p)), s.err }

func (s *said) SetReadDeadline(time.Time) (err error) {
	if len(s.deadlines) > 0 {
		err, s.deadlines = s.deadlines[0], s.deadlines[1:]
	}
	return err
}

// TestQuiet checks O12: TLS is quiet only when it says that there is no data.
func TestQuiet(t *testing.T) {
	for name, tc := range map[string]struct {
		said
		want bool
	}{
		"nothing":               {said{err: os.ErrDeadlineExceeded}, true},
		"a byte":                {said{n: 1}, false},
		"a byte, then nothing":  {said{n: 1, err: os.ErrDeadlineExceeded}, false},
		"its end":               {said{err: io.EOF}, false},
		"an error":              {said{err: errSource}, false},
		"no deadline":           {said{err: os.ErrDeadlineExceeded, deadlines: []error{errSource}}, false},
		"a deadline that stays": {said{err: os.ErrDeadlineExceeded, deadlines: []error{nil, errSource}}, false},
	} {
		c := conn{raw: &tc.said, rw: &tc.said, tls: &tls.ConnectionState{}}
		if c.quiet() != tc.want {
			t.Errorf("%s: quiet is %v", name, !tc.want)
		}
		if c.tls = nil; !c.quiet() {
			t.Errorf("%s: plain connections are asked by their sockets alone", name)
		}
	}
}

// TestNoProgress checks that a connection that returns neither data nor an error is an error, not a loop.
func TestNoProgress(t *testing.T) {
	c := newConn(&said{}, &said{})
	c.takeBuffer()
	defer c.dropBuffer()
	if err := c.fill(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("got %v", err)
	}
}

// TestDeadIsClosed checks that an idle connection that turns out to be useless is closed.
func TestDeadIsClosed(t *testing.T) {
	up := newUpstream(t, func(c *peer) {
		for c.request() != nil {
			c.say(ok)
		}
	})
	d := &several{}
	c := New(d, Options{})
	defer c.CloseIdleConnections()
	warm(t, c, up, 1)
	c.pool.newest.alive = func() bool { return false }
	warm(t, c, up, 1)
	if len(d.made) != 2 || !d.made[0].closed.Load() {
		t.Errorf("%d connections, the first is closed: %v", len(d.made), d.made[0].closed.Load())
	}
}

// TestHeadBound checks that the headers of an answer may have as many bytes as allowed, and no more.
func TestHeadBound(t *testing.T) {
	for text, want := range map[string]error{
		"HTTP/1.1 204 N\r\nX: 12345\r\n\r\n": nil, "HTTP/1.1 204 N\r\nX: 123456\r\n\r\n": errTooLarge, "HTTP/1.1 204 N\r\nX: 123456789": errTooLarge,
		"HTTP/1.1 100 C\r\n\r\n": io.ErrUnexpectedEOF, "HTTP/1.1 100 C\r\n\r\nHTTP/1.1 204 N\r\n\r\n": errTooLarge,
	} {
		m := newMemory(1<<20, false, []byte(text))
		_, err := New(&inMemory{conns: []*memory{m}}, Options{MaxResponseHeader: 28}).Send(t.Context(), &Request{URL: &url.URL{Scheme: "http", Host: "a.test"}})
		if !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}
