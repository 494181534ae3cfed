package integration

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/quic-go/quic-go/http3"
)

// TestAttackHTTP3 checks that HTTP/3 is on where TLS is (H11, H13). A call works; one whose headers are small on the
// wire and large in memory is refused and costs nothing; trailers do not reach the upstream; others are served
// meanwhile.
func TestAttackHTTP3(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{global: "skip_install_trust\n\tauto_https disable_redirects"})
	upstream := answering(t)
	s := g.createServer(upstream.url, nil)
	port := freePort(t)
	g.mustReload(g.written() + fmt.Sprintf("\nhttps://localhost:%s {\n\tbind 127.0.0.1\n\ttls internal\n\tdurward\n}\n", port))
	trusting := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the certificate is made for this test
	g.eventually("the site has a certificate", func() bool {
		connection, err := tls.Dial("tcp", "localhost:"+port, trusting)
		return err == nil && connection.Close() == nil
	})
	transport := &http3.Transport{TLSClientConfig: trusting}
	t.Cleanup(func() { _ = transport.Close() })
	call := func(change func(*http.Request)) (int, error) {
		t.Helper()
		request, err := http.NewRequestWithContext(within(t, callTimeout), http.MethodPost, "https://localhost:"+port+s.path, strings.NewReader(pingMessage))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+g.token(alice))
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Accept", bothKinds)
		change(request)
		response, err := transport.RoundTrip(request)
		if err != nil {
			return 0, err
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		return response.StatusCode, err
	}
	good := func() {
		t.Helper()
		if status, err := call(func(*http.Request) {}); status != http.StatusOK || err != nil {
			t.Fatalf("%d, %v", status, err)
		}
	}
	good()
	before := g.live()
	for range 10 {
		// A byte each, of QPACK's static table; 40 in memory.
		status, err := call(func(r *http.Request) { r.Header["Accept"] = slices.Repeat([]string{"*/*"}, 500_000) })
		if err == nil && status != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("H11 20 MB of headers: status %d", status)
		}
		good()
	}
	if more := g.live() - before; more > 16<<20 {
		t.Errorf("H11 they cost %d MiB", more>>20)
	}
	upstream.forget()
	status, err := call(func(r *http.Request) {
		r.ContentLength = -1
		r.Trailer = http.Header{"X-User-Id": {"root"}, "Authorization": {"Bearer stolen"}}
	})
	if status != http.StatusOK || err != nil {
		t.Errorf("H13 %d, %v", status, err)
	}
	if wire := upstream.bytes(); strings.Contains(wire, "root") || strings.Contains(wire, "stolen") || strings.Contains(wire, "Trailer") {
		t.Errorf("H13 the upstream got %s", wire)
	}
}
