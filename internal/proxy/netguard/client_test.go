package netguard

import (
	"compress/gzip"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func fetch(t *testing.T, c *http.Client, url string) ([]byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

func TestFetchClient(t *testing.T) {
	release := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("Accept-Encoding %q", got)
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 1000))
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1001)) })
	mux.HandleFunc("/endless", func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := io.WriteString(w, strings.Repeat("x", 100)); err != nil {
				return
			}
			w.(http.Flusher).Flush()
		}
	})
	mux.HandleFunc("/drip", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "x")
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("/gzip", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, strings.Repeat("x", 1<<20))
		_ = z.Close()
	})
	for _, path := range []string{"/301", "/302", "/303", "/307", "/308"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			status := 300 + int(r.URL.Path[3]-'0')
			http.Redirect(w, r, "/ok", status)
		})
	}
	s := httptest.NewServer(mux)
	defer s.Close()
	defer close(release)
	c := New(loopback()).FetchClient(30*time.Second, 1000)

	if b, err := fetch(t, c, s.URL+"/ok"); err != nil || len(b) != 1000 {
		t.Errorf("exactly the cap: %d bytes, %v", len(b), err)
	}
	for _, tc := range []struct {
		name, path string
		want       error
	}{
		{"S09 declared too large", "/large", ErrTooLarge},
		{"S09 endless", "/endless", ErrTooLarge},
		{"S09 gzip bomb", "/gzip", ErrTooLarge},
		{"S09 redirect 301", "/301", ErrRedirect},
		{"S09 redirect 302", "/302", ErrRedirect},
		{"S09 redirect 303", "/303", ErrRedirect},
		{"A09 redirect 307", "/307", ErrRedirect},
		{"S09 redirect 308", "/308", ErrRedirect},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := fetch(t, c, s.URL+tc.path); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
	t.Run("S09 endless drip", func(t *testing.T) {
		quick := New(loopback()).FetchClient(200*time.Millisecond, 1000)
		_, err := fetch(t, quick, s.URL+"/drip")
		if ne, ok := errors.AsType[interface {
			error
			Timeout() bool
		}](err); !ok || !ne.Timeout() {
			t.Errorf("got %v, want a timeout", err)
		}
	})
	t.Run("http is refused by default", func(t *testing.T) {
		c := New(Policy{}).FetchClient(time.Second, 1000)
		_, err := fetch(t, c, s.URL+"/ok")
		if !errors.Is(err, ErrRefused) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("https alone may be opened", func(t *testing.T) {
		c := New(Policy{Allow: prefixes("127.0.0.0/8")}).FetchClient(time.Second, 1000)
		if _, err := fetch(t, c, s.URL+"/ok"); !errors.Is(err, ErrRefused) {
			t.Errorf("got %v", err)
		}
	})
}

func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	policy := Policy{Allow: prefixes("127.0.0.0/8")}

	trusting := New(policy, WithRootCAs(pool)).FetchClient(30*time.Second, 1000)
	if b, err := fetch(t, trusting, s.URL); err != nil || string(b) != "HTTP/2.0" {
		t.Errorf("got %q, %v", b, err)
	}
	doubting := New(policy).FetchClient(30*time.Second, 1000)
	if _, err := fetch(t, doubting, s.URL); err == nil {
		t.Error("Z-U01 an unknown authority passes")
	}
	elsewhere := New(policy, WithRootCAs(pool), WithResolver(&answers{sets: [][]netip.Addr{addrs("127.0.0.1")}})).FetchClient(30*time.Second, 1000)
	if _, err := fetch(t, elsewhere, strings.Replace(s.URL, "127.0.0.1", "wrong.example.org", 1)); err == nil {
		t.Error("Z-U01 a certificate for another name passes")
	}
}

func TestProxyIsIgnored(t *testing.T) {
	proxied := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("S12 the proxy was asked") }))
	defer proxied.Close()
	t.Setenv("HTTP_PROXY", proxied.URL)
	t.Setenv("http_proxy", proxied.URL)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "direct") }))
	defer s.Close()
	g := New(loopback(), WithResolver(&answers{sets: [][]netip.Addr{addrs("127.0.0.1")}}))
	c := g.FetchClient(30*time.Second, 1000)
	// A name, because ProxyFromEnvironment spares loopback addresses.
	if b, err := fetch(t, c, strings.Replace(s.URL, "127.0.0.1", "direct.example.org", 1)); err != nil || string(b) != "direct" {
		t.Errorf("got %q, %v", b, err)
	}
}
