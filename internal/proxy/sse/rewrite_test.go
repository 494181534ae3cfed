package sse_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/durward-gateway/durward/internal/proxy/sse"
)

// rewritten returns an edit: of what begins with x, and of - to nothing.
func rewritten(data []byte) ([]byte, bool) {
	switch data[0] {
	case 'x':
		return append(bytes.Replace(data, []byte("x"), []byte("y"), 1), "\nz"...), true
	case '-':
		return nil, true
	}
	return nil, false
}

func TestRewriter(t *testing.T) {
	for _, tc := range []struct{ name, stream, want string }{
		{"kept", ":c\n\nid: 1\r\ndata: a\r\n\r\nretry: 5\ndata:\n\n", ":c\n\nid: 1\r\ndata: a\r\n\r\nretry: 5\ndata:\n\n"},
		{"changed", "id: 1\nevent: message\ndata: x1\nretry: 7\n\n", "id: 1\nevent: message\ndata: y1\ndata: z\nretry: 7\n\n"},
		{"several lines", "data: x\ndata: 2\nid: 3\n\n", "data: y\ndata: 2\ndata: z\nid: 3\n\n"},
		{"CRLF, byte order mark", "\ufeffdata: x\r\n\r\ndata: x\r\n\r\n", "data: y\ndata: z\n\ndata: y\ndata: z\n\n"},
		{"taken out", "id: 1\ndata: -\nevent: message\n\n", "id: 1\nevent: message\n\n"},
		{"unfinished", "data: x", "data: y\ndata: z\n"},
	} {
		for _, slow := range []bool{false, true} {
			var src io.Reader = strings.NewReader(tc.stream)
			if slow {
				src = iotest.OneByteReader(src)
			}
			got, err := io.ReadAll(sse.NewRewriter(src, 100, rewritten))
			if err != nil || string(got) != tc.want {
				t.Errorf("%s: %q, %v", tc.name, got, err)
			}
		}
	}
	events := sse.NewRewriter(strings.NewReader("data: x\n\n:c\n\ndata: a\n\ndata: b"), 100, rewritten)
	for _, want := range []string{"data: y\ndata: z\n\n", ":c\n", "\n", "data: a\n\n", "data: b"} {
		if event, err := events.Next(); err != nil || string(event) != want {
			t.Errorf("whole: %q, %v", event, err)
		}
	}
	_, err := events.Next()
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	_, err = io.ReadAll(sse.NewRewriter(strings.NewReader("data: "+strings.Repeat("a", 100)), 100, func([]byte) ([]byte, bool) { return nil, false }))
	if !errors.Is(err, sse.ErrTooLarge) {
		t.Error(err)
	}
}

// TestRewriterEnd checks that a known end comes with the last event, whose reader can then end its own stream at
// once. Any other end is reported separately.
func TestRewriterEnd(t *testing.T) {
	broken := errors.New("broken")
	for _, tc := range []struct {
		name string
		src  func() io.Reader
		ends []error // of each read
	}{
		{"known", func() io.Reader { return iotest.DataErrReader(strings.NewReader("data: a\n\ndata: b\n\n")) }, []error{nil, io.EOF, io.EOF}},
		{"unfinished", func() io.Reader { return iotest.DataErrReader(strings.NewReader("data: a\n\ndata: b")) }, []error{nil, io.EOF, io.EOF}},
		{"not known", func() io.Reader { return strings.NewReader("data: a\n\ndata: b\n\n") }, []error{nil, nil, io.EOF}},
		{"broken", func() io.Reader {
			return iotest.DataErrReader(io.MultiReader(strings.NewReader("data: a\n\n"), iotest.ErrReader(broken)))
		}, []error{nil, broken, broken}},
	} {
		for _, edited := range []bool{false, true} {
			r := sse.NewRewriter(tc.src(), 0, func(data []byte) ([]byte, bool) { return data, edited })
			p := make([]byte, 100)
			for i, want := range tc.ends {
				if n, err := r.Read(p); !errors.Is(err, want) || err == nil != (want == nil) || n == 0 && err == nil {
					t.Errorf("%s: read %d: %q, %v", tc.name, i, p[:n], err)
				}
			}
		}
	}
}
