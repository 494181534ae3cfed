package loopback

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestIsHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST:8080": true, "127.0.0.1": true, "127.9.8.7:1": true, "[::1]:8080": true, "[::1]": true, "::1": true,
		"": false, "localhost.": false, "localhost.evil.tld": false, "evil.localhost.tld:80": false, "127.0.0.1.nip.io": false,
		"0.0.0.0": false, "[::]": false, "[::ffff:127.0.0.1]:80": false, "[::1%lo]": false, "127.1": false, "10.0.0.1": false, "2130706433": false,
		"127.0.0.1:38080.evil": false, "localhost:80.evil.tld": false, "localhost:evil": false, "127.0.0.1:-1": false, "127.0.0.1:80@evil": false, "[::1]:80.evil": false,
		"[localhost]": false, "[localhost]:80": false, "[127.0.0.1]:80": false, "[::1": false, "localhost:80:80": false, "::1]": false, "[::1].evil": false, "[::1]evil:80": false,
	} {
		if got := IsHost(host); got != want {
			t.Errorf("IsHost(%q) = %v, want %v", host, got, want)
		}
	}
}

func TestIsOrigin(t *testing.T) {
	for origin, want := range map[string]bool{
		"http://127.0.0.1:8080": true, "http://localhost": true, "https://[::1]:1": true,
		"null": false, "": false, "https://evil": false, "http://localhost@evil": false, "http://a@localhost": false,
		"file://localhost": false, "http://localhost/": false, "http://localhost#x": false,
	} {
		if got := IsOrigin(origin); got != want {
			t.Errorf("IsOrigin(%q) = %v, want %v", origin, got, want)
		}
	}
}

func TestGuard(t *testing.T) {
	h := Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for _, test := range []struct {
		name, host, header string
		want               int
	}{
		{"loopback", "127.0.0.1:8080", "", 204},
		{"H15 rebinding name", "rebind.evil.tld:8080", "", 403},
		{"no host", "", "", 403},
		{"X-Forwarded-For", "localhost", "X-Forwarded-For", 403},
		{"x-forwarded-host in small letters", "localhost", "x-forwarded-host", 403},
		{"Forwarded", "localhost", "Forwarded", 403},
		{"another header", "localhost", "X-Forward", 204},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Host = test.host
			if test.header != "" {
				r.Header.Set(test.header, "x")
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != test.want {
				t.Errorf("status %d, want %d", w.Code, test.want)
			}
		})
	}
}
