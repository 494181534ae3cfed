package integration

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// TestHTTP2 checks HTTP/2 over TLS, which clients on the internet speak: calls, event streams and refusals of unread
// bodies over one connection (H10's smoke test).
func TestHTTP2(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{global: "skip_install_trust\n\tauto_https disable_redirects"})
	u := newUpstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		if r.Method == http.MethodPost {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			_, _ = fmt.Fprintf(w, "event: message\ndata: %s\n\n", news(strconv.Itoa(i)))
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	})
	s := g.createServer(u.url, nil)
	port := freePort(t)
	g.mustReload(g.written() + fmt.Sprintf("\nhttps://localhost:%s {\n\tbind 127.0.0.1\n\ttls internal\n\tdurward\n}\n", port))
	transport := &http.Transport{
		ForceAttemptHTTP2: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate is made for this test
	}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	g.eventually("the site has a certificate", func() bool {
		connection, err := tls.Dial("tcp", "localhost:"+port, transport.TLSClientConfig)
		if err != nil {
			return false
		}
		return connection.Close() == nil
	})
	send := func(ctx context.Context, method, body string) *http.Response {
		t.Helper()
		request, err := http.NewRequestWithContext(ctx, method, "https://localhost:"+port+s.path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+g.token(alice))
		request.Header.Set("Accept", bothKinds)
		if body != "" {
			request.Header.Set("Content-Type", "application/json")
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if response.ProtoMajor != 2 {
			t.Fatalf("answered in %s", response.Proto)
		}
		return response
	}
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	stream := send(ctx, http.MethodGet, "")
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	for i := range 3 {
		want := "data: " + news(strconv.Itoa(i))
		for lines.Scan() && lines.Text() != want {
		}
		if lines.Text() != want {
			t.Fatalf("the stream has %q for event %d: %v", lines.Text(), i, lines.Err())
		}
		for size, status := range map[int]int{10: http.StatusOK, 5 << 20: http.StatusRequestEntityTooLarge} {
			call := strings.Replace(echoCall, `"arguments":{}`, `"arguments":{"text":"`+strings.Repeat("x", size)+`"}`, 1)
			response := send(ctx, http.MethodPost, call)
			_, err := io.Copy(io.Discard, response.Body)
			if closed := response.Body.Close(); err != nil || closed != nil || response.StatusCode != status {
				t.Errorf("a call of %d bytes: status %d, %v %v", size, response.StatusCode, err, closed)
			}
		}
	}
}
