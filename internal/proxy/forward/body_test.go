package forward

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRefusedBodyIsAnswered checks that a client that sends too much reads the refusal, not a reset connection, even
// when the server's body was wrapped on its way.
func TestRefusedBodyIsAnswered(t *testing.T) {
	const limit = 1 << 10
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = struct{ io.ReadCloser }{r.Body}
		_, err := ReadBody(r, limit)
		var refused *BodyError
		if !errors.As(err, &refused) {
			t.Errorf("%v", err)
			return
		}
		refused.Answer(w, func() { http.Error(w, "too large", refused.Status) })
	}))
	defer server.Close()
	client := server.Client()
	for range 50 {
		response, err := client.Post(server.URL, "application/json", strings.NewReader(strings.Repeat(" ", 4<<20)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusRequestEntityTooLarge || !response.Close {
			t.Fatalf("status %d, close %v, %v", response.StatusCode, response.Close, err)
		}
		response.Body.Close()
	}
}

// TestLinger checks that a refused client's data is read for five seconds and no longer, so that a slow client can read
// its answer too.
func TestLinger(t *testing.T) {
	for _, test := range []struct {
		name       string
		sends      int // number of bytes, one each 110 ms
		sent       int
		connection time.Duration
	}{
		{"a client that comes to its end", 40, 40, 4400 * time.Millisecond},
		{"a client without an end", 1000, 45, 5 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, served := net.Pipe()
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					AnswerUnread(w, r, func() { http.Error(w, "not now", http.StatusServiceUnavailable) })
				})}
				listener := &oneConnection{connections: make(chan net.Conn, 1), closed: make(chan struct{})}
				listener.connections <- served
				go func() { _ = server.Serve(listener) }()
				defer server.Close()

				begun := time.Now()
				if _, err := fmt.Fprintf(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", test.sends); err != nil {
					t.Fatal(err)
				}
				reader := bufio.NewReader(client)
				response, err := http.ReadResponse(reader, nil)
				if err != nil || response.StatusCode != http.StatusServiceUnavailable || !response.Close {
					t.Fatalf("%v, %v", response, err)
				}
				ended := make(chan time.Duration, 1)
				go func() {
					if _, err := io.Copy(io.Discard, reader); err != nil {
						t.Error(err)
					}
					ended <- time.Since(begun)
				}()
				sent := 0
				for range test.sends {
					time.Sleep(110 * time.Millisecond)
					if _, err := client.Write([]byte("x")); err != nil {
						break
					}
					sent++
				}
				if sent != test.sent {
					t.Errorf("%d bytes were taken, want %d", sent, test.sent)
				}
				if took := <-ended; took != test.connection {
					t.Errorf("the connection ended after %v, want %v", took, test.connection)
				}
			})
		})
	}
}

// oneConnection is a listener that accepts a connection from a test.
type oneConnection struct {
	connections chan net.Conn
	closed      chan struct{}
}

func (l *oneConnection) Accept() (net.Conn, error) {
	select {
	case c := <-l.connections:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneConnection) Close() error   { close(l.closed); return nil }
func (l *oneConnection) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }
