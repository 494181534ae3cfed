package main

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"
)

// TestReadAnswer: an answer is read to its last byte and no further, and what is none is an error, not a wait.
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
