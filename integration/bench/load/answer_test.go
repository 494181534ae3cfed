package main

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestReadAnswer checks that an answer is read to its last byte and no further, and that a broken answer is an error,
// not a wait.
func TestReadAnswer(t *testing.T) {
	t.Parallel()
	const next = "next"
	for name, tc := range map[string]struct {
		text string
		want answer
		err  error
	}{
		"length":            {"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nConnection: keep-alive\r\n\r\nhello", answer{200, false}, nil},
		"nothing in it":     {"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", answer{503, true}, nil},
		"chunks":            {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n", answer{200, false}, nil},
		"trailers":          {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n0\r\nA: b\r\nC: d\r\n\r\n", answer{200, false}, nil},
		"neither":           {"HTTP/1.1 200 OK\r\n\r\nhello", answer{status: 200}, errAnswer},
		"a length of words": {"HTTP/1.1 200 OK\r\nContent-Length: five\r\n\r\nhello", answer{status: 200}, errAnswer},
		"a chunk of words":  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfive\r\n", answer{status: 200}, errAnswer},
		"a longer chunk":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello!!0\r\n\r\n", answer{status: 200}, errAnswer},
		"two lengths":       {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 4\r\n\r\nhello", answer{status: 200}, errAnswer},
		"a signed length":   {"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", answer{status: 200}, errAnswer},
		"a longer status":   {"HTTP/1.1 2000 OK\r\nContent-Length: 5\r\n\r\nhello", answer{status: 200}, errAnswer},
		"no field":          {"HTTP/1.1 200 OK\r\nContent-Length\r\n\r\nhello", answer{status: 200}, errAnswer},
		"no answer":         {"hello\r\n", answer{}, errAnswer},
		"cut off":           {"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello", answer{status: 200}, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := bufio.NewReader(strings.NewReader(tc.text + next))
			a, err := readAnswer(r)
			if a != tc.want || !errors.Is(err, tc.err) {
				t.Fatalf("%+v, %v instead of %+v, %v", a, err, tc.want, tc.err)
			}
			if rest, _ := io.ReadAll(r); err == nil && string(rest) != next {
				t.Errorf("%q is left instead of %q", rest, next)
			}
		})
	}
}

// TestBadAnswers checks that the rest of an unreadable answer is not taken for the next one.
func TestBadAnswers(t *testing.T) {
	t.Parallel()
	answers := []string{"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		done <- serve(listener, answers)
	}()
	w := &worker{addr: listener.Addr().String(), reqs: [][]byte{[]byte("GET / HTTP/1.1\r\nHost: a\r\n\r\n")}, at: new(atomic.Uint64)}
	for range answers {
		w.hit(time.Now())
	}
	w.drop()
	if err := errors.Join(<-done, listener.Close()); err != nil {
		t.Error(err)
	}
	if len(w.lat) != 0 || w.bad != 3 || w.code != http.StatusInternalServerError {
		t.Errorf("%d good answers and %d bad ones, at last %d", len(w.lat), w.bad, w.code)
	}
}

// serve gives these answers, one for each request, to one connection after the other.
func serve(listener net.Listener, answers []string) error {
	for len(answers) > 0 {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		for reader := bufio.NewReader(conn); len(answers) > 0; answers = answers[1:] {
			if _, err := http.ReadRequest(reader); err != nil {
				break // the client is gone
			}
			if _, err := io.WriteString(conn, answers[0]); err != nil {
				return err
			}
		}
		if err := conn.Close(); err != nil {
			return err
		}
	}
	return nil
}
