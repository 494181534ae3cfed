package forward

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/proxy/netguard"
)

// Production uses this dialer.
var _ Dialer = (*netguard.Guard)(nil)

// TestVersions checks which HTTP version is spoken over TLS, and that a cancelled stream is released in both.
func TestVersions(t *testing.T) {
	freed := make(chan struct{}, 1)
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Seen", r.Proto)
		w.Header().Set("Mcp-Proto", r.Proto)
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			freed <- struct{}{}
			return
		}
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "Mcp-Late")
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(b)
		w.Header().Set("Mcp-Late", "x")
	}))
	up.EnableHTTP2 = true
	up.StartTLS()
	defer up.Close()
	pool := x509.NewCertPool()
	pool.AddCert(up.Certificate())
	for _, tc := range []struct {
		via      client
		versions []string
		proto    string
		dials    int32 // http1 does not separate calls and streams
	}{
		{overNetHTTP, nil, "HTTP/2.0", 2},
		{overNetHTTP, []string{"1.1"}, "HTTP/1.1", 2},
		{overNetHTTP, []string{"2"}, "HTTP/2.0", 2},
		{overHTTP1, nil, "HTTP/1.1", 1},
	} {
		t.Run(tc.via.name+" "+strings.Join(tc.versions, "+"), func(t *testing.T) {
			f, d := tc.via.forwarder(t, Options{TLS: &tls.Config{RootCAs: pool}, Versions: tc.versions}, Limits{})
			res, err := f.Do(t.Context(), &Request{Method: "POST", URL: mustURL(up.URL + "/mcp"), Body: []byte(`{"id":1}`), Header: http.Header{"Connection": {"Mcp-Name"}, "Mcp-Name": {"x"}}})
			if err != nil {
				t.Fatal(err)
			}
			w := httptest.NewRecorder()
			res.CopyHeader(w.Header())
			if err := res.Relay(w, 100); err != nil || w.Body.String() != `{"id":1}` {
				t.Errorf("%q %v", w.Body, err)
			}
			res.Close()
			if h := w.Header(); h.Get("Mcp-Proto") != tc.proto || h.Get("Seen") != "" || h.Get("Mcp-Late") != "" || h.Get("Trailer") != "" {
				t.Errorf("headers %v", h)
			}
			ctx, cancel := context.WithCancel(t.Context())
			if res, err = f.Do(ctx, &Request{Method: "GET", URL: mustURL(up.URL)}); err != nil {
				t.Fatal(err)
			}
			cancel()
			if _, err := res.Body.Read(make([]byte, 1)); !errors.Is(err, ErrClientGone) {
				t.Errorf("got %v", err)
			}
			wait(t, freed, "the upstream's stream to end")
			res.Close()
			if d.plain.Load() != 0 || d.tls.Load() != tc.dials {
				t.Errorf("%d plain and %d TLS dials", d.plain.Load(), d.tls.Load())
			}
		})
	}
}

// TestPanickingFlush checks that a panic in the early flush of a silent stream's headers ends only that stream. The
// flush runs on a timer's goroutine, where a panic would otherwise end the process.
func TestPanickingFlush(t *testing.T) { onBoth(t, testPanickingFlush) }

func testPanickingFlush(t *testing.T, via client) {
	flushed := make(chan struct{})
	up := newUpstream(t, func(c *conn) {
		if _, raw := c.request(); raw == "" {
			return
		}
		c.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
		<-flushed
		c.say("data: 1\n\n")
	})
	f, _ := via.forwarder(t, Options{}, Limits{})
	res, err := f.Do(t.Context(), &Request{Method: "GET", URL: up.url("/")})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Close()
	if err := res.Relay(&panicking{httptest.NewRecorder(), flushed}, 100); !errors.Is(err, ErrClientGone) {
		t.Errorf("got %v", err)
	}
}

type panicking struct {
	http.ResponseWriter
	flushed chan struct{}
}

func (p *panicking) Flush() {
	close(p.flushed)
	panic("flushing")
}
