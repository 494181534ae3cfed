package integration

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestAttackDrip checks bodies that come byte by byte, with a token and without one, to addresses that read them and to
// some that do not. Each is over after the time that a body has, and a client that sends at a fair pace is answered.
func TestAttackDrip(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	s := g.createServer(answering(t).url, nil)
	token, host := g.token(alice), strings.TrimPrefix(g.url, "http://")
	const announced = 4 << 10
	request := func(path, contentType, token string) string {
		return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nAccept: %s\r\nAuthorization: Bearer %s\r\n\r\n",
			path, host, contentType, announced, bothKinds, token)
	}
	const form = "application/x-www-form-urlencoded"
	var all sync.WaitGroup
	for name, tc := range map[string]struct {
		head   string
		status string // "": whatever
	}{
		"the undo form": {request("/api/oauth/undo", form, ""), ""},
		"no token":      {request(s.path, "application/json", ""), "401"},
		"mcp":           {request(s.path, "application/json", token), "408"},
		"api":           {request("/api/v2/policies/validate", "application/json", token), "408"},
		"models":        {request("/api/llm-gateway/v1/chat/completions", "application/json", token), "408"},
		"nothing there": {request("/nothing", "application/json", token), "404"},
		"health":        {request("/healthz", "application/json", ""), ""},
	} {
		all.Go(func() {
			connection, err := net.Dial("tcp", host)
			if err != nil {
				t.Error(err)
				return
			}
			defer connection.Close()
			if _, err := io.WriteString(connection, tc.head); err != nil {
				t.Error(err)
				return
			}
			over := make(chan struct{})
			defer close(over)
			go func() {
				drop := time.NewTicker(time.Second)
				defer drop.Stop()
				for {
					select {
					case <-over:
						return
					case <-drop.C:
						if _, err := io.WriteString(connection, "x"); err != nil {
							return
						}
					}
				}
			}()
			_ = connection.SetReadDeadline(time.Now().Add(10 * time.Minute)) // thirty seconds are promised
			answer, err := io.ReadAll(connection)
			if ended, ok := err.(net.Error); ok && ended.Timeout() {
				t.Errorf("%s: the connection is still open", name)
			}
			if tc.status != "" && !strings.HasPrefix(string(answer), "HTTP/1.1 "+tc.status) {
				t.Errorf("%s: answered %.200q", name, answer)
			}
		})
	}
	all.Go(func() {
		body := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"x":"` + strings.Repeat("x", 1<<20) + `"}}}`)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.url+s.path, &paced{body, time.NewTicker(time.Second / 32)})
		if err != nil {
			t.Error(err)
			return
		}
		for name, value := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": bothKinds} {
			request.Header.Set(name, value)
		}
		answered, err := new(http.Client).Do(request)
		if err != nil {
			t.Error(err)
			return
		}
		defer answered.Body.Close()
		if answered.StatusCode != http.StatusOK {
			t.Errorf("a client with a slow line is answered %s", answered.Status)
		}
	})
	all.Wait()
}

// paced is a body that comes 1 KiB at a time. It takes longer than the time that a body has without the credit for
// received bytes.
type paced struct {
	io.Reader
	tick *time.Ticker
}

func (p *paced) Read(b []byte) (int, error) {
	<-p.tick.C
	return p.Reader.Read(b[:min(len(b), 1<<10)])
}
