package http1

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// secure starts a TLS server, and makes a client that trusts it.
func secure(t *testing.T, serve http.HandlerFunc, change func(*httptest.Server)) (*httptest.Server, *Client, *freely) {
	t.Helper()
	up := httptest.NewUnstartedServer(serve)
	up.Config.ErrorLog = log.New(io.Discard, "", 0)
	if change != nil {
		change(up)
	}
	up.StartTLS()
	pool := x509.NewCertPool()
	pool.AddCert(up.Certificate())
	d := &freely{}
	c := New(d, Options{TLS: &tls.Config{RootCAs: pool}})
	t.Cleanup(func() { c.CloseIdleConnections(); up.Close() })
	return up, c, d
}

func TestTLS(t *testing.T) {
	up, c, d := secure(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write([]byte(r.Proto + " " + r.TLS.NegotiatedProtocol + " " + string(b)))
	}, nil)
	for range 3 {
		r, _ := http.NewRequestWithContext(t.Context(), "POST", up.URL, nil)
		r.Body, r.ContentLength = io.NopCloser(&ofLength{left: 100 << 10}), 100<<10
		res, err := c.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || len(b) != len("HTTP/1.1 http/1.1 ")+100<<10 || string(b[:18]) != "HTTP/1.1 http/1.1 " {
			t.Errorf("%d bytes, %v", len(b), err)
		}
	}
	if d.tls.Load() != 1 || d.plain.Load() != 0 {
		t.Errorf("dialled %d for TLS, %d plain", d.tls.Load(), d.plain.Load())
	}
}

type ofLength struct{ left int }

func (r *ofLength) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), r.left)
	for i := range n {
		p[i] = 'x'
	}
	r.left -= n
	return n, nil
}

// TestTLSStale checks that a TLS connection that the upstream closed while it was idle costs nothing.
func TestTLSStale(t *testing.T) {
	conns := make(chan net.Conn, 10)
	up, c, d := secure(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("{}")) }, func(s *httptest.Server) {
		s.Config.ConnState = func(c net.Conn, state http.ConnState) {
			if state == http.StateIdle {
				conns <- c
			}
		}
	})
	for n := range int32(3) {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", up.URL, nil)
		if _, body, err := do(c, r); err != nil || body != "{}" || d.tls.Load() != n+1 {
			t.Fatalf("%q %v over connection %d", body, err, d.tls.Load())
		}
		_ = wait(t, conns, "the idle connection").Close()
		readable(t, c.pool.newest)
	}
}

// TestTLSHandshake checks that a refused handshake has an error type that a caller can tell from a broken answer.
func TestTLSHandshake(t *testing.T) {
	serve := func(http.ResponseWriter, *http.Request) { t.Error("a request came through") }
	t.Run("untrusted", func(t *testing.T) {
		up, _, _ := secure(t, serve, nil)
		r, _ := http.NewRequestWithContext(t.Context(), "GET", up.URL, nil)
		_, _, err := do(newClient(t, Options{}), r)
		if bad := (*tls.CertificateVerificationError)(nil); !errors.As(err, &bad) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("another name", func(t *testing.T) {
		up, c, _ := secure(t, func(http.ResponseWriter, *http.Request) {}, nil)
		good, _ := http.NewRequestWithContext(t.Context(), "GET", up.URL, nil)
		if _, _, err := do(c, good); err != nil { // of one host's name nothing is left for another's
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(up.Listener.Addr().String())
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "https://localhost:"+port, nil)
		_, _, err := do(c, r)
		if bad := (*tls.CertificateVerificationError)(nil); !errors.As(err, &bad) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("expired", func(t *testing.T) {
		up, _, _ := secure(t, serve, nil)
		pool := x509.NewCertPool()
		pool.AddCert(up.Certificate())
		later := func() time.Time { return up.Certificate().NotAfter.Add(time.Second) }
		r, _ := http.NewRequestWithContext(t.Context(), "GET", up.URL, nil)
		_, _, err := do(newClient(t, Options{TLS: &tls.Config{RootCAs: pool, Time: later}}), r)
		if bad := (x509.CertificateInvalidError{}); !errors.As(err, &bad) || bad.Reason != x509.Expired {
			t.Errorf("got %v", err)
		}
	})
	t.Run("another protocol", func(t *testing.T) {
		up, c, _ := secure(t, serve, func(s *httptest.Server) { s.TLS = &tls.Config{NextProtos: []string{"h3"}} })
		r, _ := http.NewRequestWithContext(t.Context(), "GET", up.URL, nil)
		_, _, err := do(c, r)
		if bad := (*HandshakeError)(nil); !errors.As(err, &bad) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("plain", func(t *testing.T) {
		up := newUpstream(t, func(c *peer) { c.say("HTTP/1.1 400 Bad Request\r\n\r\n") })
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "https://"+up.l.Addr().String(), nil)
		_, _, err := do(newClient(t, Options{}), r)
		if bad := (tls.RecordHeaderError{}); !errors.As(err, &bad) {
			t.Errorf("got %v", err)
		}
	})
}

// TestTLSMore checks O12 inside of TLS: bytes of an upstream beyond its answer may already be with us, invisible to
// the socket. They do not become the next answer.
func TestTLSMore(t *testing.T) {
	cert := func() tls.Certificate {
		s := httptest.NewUnstartedServer(nil)
		s.StartTLS()
		defer s.Close()
		return s.TLS.Certificates[0]
	}()
	for _, tc := range []struct {
		name string
		say  []string // each a record
		end  bool     // a close_notify follows
		kept bool
	}{
		{"nothing more", []string{ok}, false, true},
		{"its end", []string{ok}, true, false},
		{"O12 beyond the answer in its record", []string{"HTTP/1.1 200 OK\r\nContent-Length: 6000\r\n\r\n" + string(make([]byte, 6000)) + string(second)}, false, false},
		{"O12 in a record of its own", []string{ok, string(second)}, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			served := make(chan bool, 4)
			up := newUpstream(t, func(c *peer) {
				secured := tls.Server(&gathering{Conn: c.Conn}, &tls.Config{Certificates: []tls.Certificate{cert}})
				c.Conn = secured
				c.r.Reset(secured)
				for c.request() != nil {
					g := secured.NetConn().(*gathering)
					g.hold = true
					for _, s := range tc.say {
						c.say(s)
					}
					if tc.end {
						_ = secured.CloseWrite()
						_ = g.SetWriteDeadline(time.Time{}) // which CloseWrite lets pass
					}
					g.flush()
					served <- true
				}
			})
			d := &freely{}
			c := New(d, Options{TLS: &tls.Config{InsecureSkipVerify: true}}) //nolint:gosec // the test's own server
			defer c.CloseIdleConnections()
			for range 2 {
				// A POST, which is not sent again when the first byte of the answer is missing.
				r, _ := http.NewRequestWithContext(t.Context(), "POST", "https://"+up.l.Addr().String(), nil)
				res, err := c.RoundTrip(r)
				if err != nil {
					t.Fatal(err)
				}
				if b, err := io.ReadAll(res.Body); err != nil || string(b) == "second" {
					t.Errorf("%q %v", b, err)
				}
				_ = res.Body.Close()
				wait(t, served, "the answer")
			}
			if kept := d.tls.Load() == 1; kept != tc.kept {
				t.Errorf("kept is %v", kept)
			}
		})
	}
}

// gathering writes several records at once.
type gathering struct {
	net.Conn
	hold bool
	held []byte
}

func (g *gathering) Write(p []byte) (int, error) {
	if !g.hold {
		return g.Conn.Write(p)
	}
	g.held = append(g.held, p...)
	return len(p), nil
}

func (g *gathering) flush() {
	g.hold = false
	_, _ = g.Conn.Write(g.held)
	g.held = nil
}
