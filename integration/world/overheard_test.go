package world

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// overheard is a server whose requests are recorded on their way.
type overheard struct {
	*httptest.Server
	said rig.Transcript
}

// listenIn stands in front of a server.
func listenIn(t testing.TB, address string) *overheard {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	o := new(overheard)
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host}) }}
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		_, _ = o.said.Write(append(body, '\n'))
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		o.CloseClientConnections()
		o.Close()
	})
	return o
}

// count tells in how many requests something was said.
func (o *overheard) count(text string) (requests int) {
	for line := range strings.Lines(o.said.String()) {
		if strings.Contains(line, text) {
			requests++
		}
	}
	return requests
}
