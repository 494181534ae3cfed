package sse_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/durward-gateway/durward/internal/proxy/sse"
)

func TestBare(t *testing.T) {
	broken := errors.New("broken")
	for _, tc := range []struct {
		name, in, want string
		err            error
	}{
		{"events", "\ufeff: x\n\ndata: {}\n\n", "\ufeff: x\n\ndata: {}\n\n", nil},
		{"blank lines first", "\r\n\ndata: {}\n\n", "\r\n\ndata: {}\n\n", nil},
		{"a text", `{"a":1}`, "data: {\"a\":1}\n\n", nil},
		{"after blanks and a mark", "\ufeff\n\t {\"a\":\n1}\n", "data: {\"a\":\ndata: 1}\n\n", nil},
		{"texts", "{\"a\":\"}\"}\n[1]\n\n", "data: {\"a\":\"}\"}\n\ndata: [1]\n\n", nil},
		{"nothing", "", "", nil},
		{"blanks", " \n", " \n", nil},
		{"half a text", `{"a":`, "", io.ErrUnexpectedEOF},
		{"a text and words", `{"a":1} data: x`, "data: {\"a\":1}\n\n", sse.ErrUnframed},
		{"a text that is too large", `{"a":"` + strings.Repeat("a", 5000) + `"}`, "", sse.ErrTooLarge},
		{"blanks without end", strings.Repeat(" ", 600) + `{"a":1}`, strings.Repeat(" ", 600) + `{"a":1}`, nil},
	} {
		for _, chunk := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.DataErrReader} {
			got, err := io.ReadAll(sse.NewBare(chunk(strings.NewReader(tc.in)), 1000))
			if string(got) != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("%s: %.80q, %v", tc.name, got, err)
			}
		}
	}
	if _, err := io.ReadAll(sse.NewBare(io.MultiReader(strings.NewReader(`{"a`), iotest.ErrReader(broken)), 1000)); !errors.Is(err, broken) {
		t.Error(err)
	}
	// A text is given as soon as it is whole: its stream may stay open.
	src, feed := io.Pipe()
	defer src.Close()
	go func() { _, _ = io.WriteString(feed, `{"a":1}`) }()
	p := make([]byte, 100)
	if n, err := sse.NewBare(src, 1000).Read(p); err != nil || string(p[:n]) != "data: {\"a\":1}\n\n" {
		t.Errorf("%q, %v", p[:n], err)
	}
}

func TestIsEvents(t *testing.T) {
	for text, want := range map[string]bool{
		"data: x": true, "event:x\r\n": true, "id: 1": true, "retry: 1\n": true, ":": true, ": c\ndata: x": true,
		"": false, "data": false, "Data: x": false, "<html>": false, "{\"a\":1}": false, "Error: no": false, "\n": false,
	} {
		if got := sse.IsEvents([]byte(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestEventRewriter checks an edit that needs the whole event.
func TestEventRewriter(t *testing.T) {
	edit := func(e *sse.Event) ([]byte, bool) {
		if e.Name == "drop" {
			return nil, true
		}
		return e.Data, false
	}
	for in, want := range map[string]string{
		"id: 1\nevent: drop\ndata: x\n\ndata: a\n\n":  "id: 1\n\ndata: a\n\n",
		"event: drop\n\n:c\n\n":                       "\n:c\n\n",
		"{\"a\":1}\ndata: a\n\n{\"b\":1}\n\n":         "data: a\n\n\n",
		"{\"a\":1}\r\ndata: a\r\n\r\ndata: b\r\n\r\n": "data: a\n\ndata: b\r\n\r\n",
		"data: a":              "data: a\n\n",
		"data: a\n":            "data: a\n\n",
		"data: a\r\n\r\nid: 7": "data: a\r\n\r\n",
		"event: drop\ndata: x": "",
		"id: 1\ndata:\n\n":     "id: 1\ndata:\n\n",
		"retry: 3\nevent: message\ndata: a\ndata: b\n": "retry: 3\nevent: message\ndata: a\ndata: b\n\n",
	} {
		for _, chunk := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader} {
			got, err := io.ReadAll(sse.NewEventRewriter(chunk(strings.NewReader(in)), 1000, edit))
			plain := func(s string) string { return strings.Trim(strings.ReplaceAll(s, "\r\n", "\n"), "\r\n") } // a CRLF may be torn
			if err != nil || plain(string(got)) != plain(want) || !strings.HasSuffix(string(got), "\n") && want != "" && got[len(got)-1] != '\r' {
				t.Errorf("%q: %q, %v; want %q", in, got, err, want)
			}
		}
	}
}
