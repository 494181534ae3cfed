package legacysse

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// ours is the replacement of endpoints in these tests.
const ours = "/ours?sessionId=sealed"

func replaced(announced string) (string, error) {
	if announced != "/theirs" {
		return "", ErrEndpoint
	}
	return ours, nil
}

// settled takes away the empty line that a CRLF which came in two pieces leaves behind the replacement.
func settled(out []byte) string {
	const replacement = "event: endpoint\ndata: " + ours + "\n\n"
	return strings.Replace(string(out), replacement+"\n", replacement, 1)
}

// readings are ways in which a stream can arrive.
var readings = map[string]func(io.Reader) io.Reader{
	"whole": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader,
	"halves": iotest.HalfReader, "end with data": iotest.DataErrReader,
}

func TestReader(t *testing.T) {
	const endpoint, replacement = "event: endpoint\ndata: /theirs\n\n", "event: endpoint\ndata: " + ours + "\n\n"
	message := "event: message\ndata: {\"jsonrpc\":\"2.0\"}\n\n"
	long := strings.Repeat("x", maxHeld)
	for _, tc := range []struct {
		name, in, want string
		err            error
	}{
		{"nothing", "", "", nil},
		{"endpoint", endpoint, replacement, nil},
		{"and what follows", endpoint + message + ": ping\n\n" + message, replacement + message + ": ping\n\n" + message, nil},
		{"CRLF", "event: endpoint\r\ndata: /theirs\r\n\r\n" + message, replacement + message, nil},
		{"CR", "event: endpoint\rdata: /theirs\r\r" + message, replacement + message, nil},
		{"no blanks, data first, other fields", "retry: 10\ndata:/theirs\nid: 7\nevent:endpoint\n\n", replacement, nil},
		{"BOM", "\xef\xbb\xbf" + endpoint, replacement, nil},
		{"comments and empty lines first", ": hello\n\n\n:\n" + endpoint, ": hello\n\n\n:\n" + replacement, nil},
		{"a block without data first", "retry: 10\n\nid\n\n" + endpoint, "retry: 10\n\nid\n\n" + replacement, nil},
		{"comment inside", "event: endpoint\n: x\ndata: /theirs\n\n", replacement, nil},

		{"another stream", message + ": x\r\n\r\nid: 1\ndata:\n\nretry: 5\n" + message, message + ": x\r\n\r\nid: 1\ndata:\n\nretry: 5\n" + message, nil},
		{"priming event", "id: 1\ndata:\n\n" + message, "id: 1\ndata:\n\n" + message, nil},
		{"a long first event", "data: " + long + "\n\n" + message, "data: " + long + "\n\n" + message, nil},
		{"a long comment", ": " + long + "\n\n" + endpoint, ": " + long + "\n\n", ErrEndpoint},
		{"unfinished", "data: x", "data: x", nil},
		{"not an event stream at all", "\x00\xff<html>", "\x00\xff<html>", nil},
		{"talk of endpoints", "data: event: endpoint\n\nevent: endpoints\ndata: x\n\nevent: my endpoint\n\n", "data: event: endpoint\n\nevent: endpoints\ndata: x\n\nevent: my endpoint\n\n", nil},

		{"refused by rewrite", "event: endpoint\ndata: //evil\n\n", "", ErrEndpoint},
		{"two data lines", "event: endpoint\ndata: /theirs\ndata: /theirs\n\n", "", ErrEndpoint},
		{"no data", "event: endpoint\n\n", "", ErrEndpoint},
		{"unfinished endpoint", "event: endpoint\ndata: /theirs\n", "", ErrEndpoint},
		{"endpoint for clients that trim", "event:\t endpoint \ndata: //evil\n\n", "", ErrEndpoint},
		{"endpoint for clients that fold", "event: Endpoint\ndata: //evil\n\n", "", ErrEndpoint},
		{"endpoint in a comment, for Python", ": x\vevent: endpoint\vdata: //evil\v\v\n", "", ErrEndpoint},
		{"endpoint in data, for Python", "data: x\u2028event: endpoint\u2028data: //evil\n\n", "", ErrEndpoint},
		{"a long endpoint", "event: endpoint\ndata: /" + long + "\n\n", "", ErrEndpoint},
		{"an endpoint once more", endpoint + endpoint, replacement, ErrEndpoint},
		{"an endpoint after a message", message + endpoint, message, ErrEndpoint},
		{"an endpoint after a message, without data", message + "event: endpoint", message + "event: endpoint", ErrEndpoint},
		{"a name at the end of a long event", "data: /" + long + "\nevent: endpoint\n\n", "data: /" + long + "\n", ErrEndpoint},
		{"last name counts", "event: endpoint\nevent: message\ndata: //evil\n\n", "", ErrEndpoint},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for how, through := range readings {
				var got bytes.Buffer
				_, err := io.Copy(&got, NewReader(through(strings.NewReader(tc.in)), replaced))
				if !errors.Is(err, tc.err) || (tc.err == nil) != (err == nil) {
					t.Errorf("%s: %v, want %v", how, err, tc.err)
				}
				// How much of a stream that is cut came through before depends on the reads; the line never does.
				if tc.err == nil && settled(got.Bytes()) != tc.want || tc.err != nil && !strings.HasPrefix(tc.want+"event: endpoint", got.String()) {
					t.Errorf("%s: %q, want %q", how, got.String(), tc.want)
				}
			}
		})
	}
}

// TestReaderPassesAtOnce checks that bytes do not wait for later ones once it is known what they are.
func TestReaderPassesAtOnce(t *testing.T) {
	in, feed := io.Pipe()
	defer in.Close()
	r := NewReader(in, replaced)
	for _, step := range []struct{ in, want string }{
		{": hello\n", ": hello\n"}, {"\n", "\n"},
		{"event: endpoint\ndata: /theirs\n\n", "event: endpoint\ndata: " + ours + "\n\n"},
		{"data: half", "data: half"}, {" an event\n", " an event\n"},
	} {
		go func() { _, _ = io.WriteString(feed, step.in) }()
		got := make([]byte, len(step.want))
		if _, err := io.ReadFull(r, got); err != nil || string(got) != step.want {
			t.Fatalf("%q, %v; want %q", got, err, step.want)
		}
	}
}

// TestReaderKeepsErrors checks that the reader ends with the error that broke the stream, also when it came with the
// last data.
func TestReaderKeepsErrors(t *testing.T) {
	broken := errors.New("broken")
	for _, in := range []string{"", "event: endpoint\nda", "event: endpoint\ndata: /theirs\n\n", "data: x\n\ndata: y"} {
		for how, through := range readings {
			r := NewReader(through(io.MultiReader(strings.NewReader(in), iotest.ErrReader(broken))), replaced)
			if _, err := io.Copy(io.Discard, r); !errors.Is(err, broken) {
				t.Errorf("%q, %s: %v", in, how, err)
			}
			if n, err := r.Read(make([]byte, 1)); n != 0 || !errors.Is(err, broken) {
				t.Errorf("%q, %s, once more: %d, %v", in, how, n, err)
			}
		}
	}
}

// FuzzReader checks that an endpoint never passes, and a stream without one passes unchanged, however it arrives.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"event: endpoint\ndata: /theirs\n\ndata: x\n\n", ": c\r\n\r\nevent:endpoint\rdata:/theirs\r\rx", "data: x\n\nevent: endpoint\n\n",
		"\xef\xbb\xbfevent: endpoint\ndata: //evil\n\n", "id: 1\n\n\n\nretry: 1\ndata\n\n", strings.Repeat("a", maxHeld) + "\nevent: endpoint\n",
	} {
		f.Add([]byte(seed), uint8(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		var whole, pieces bytes.Buffer
		_, err := io.Copy(&whole, NewReader(bytes.NewReader(in), replaced))
		_, again := io.CopyBuffer(&pieces, struct{ io.Reader }{NewReader(&chunks{in, int(size) + 1}, replaced)}, make([]byte, 7))
		if (err == nil) != (again == nil) || err == nil && settled(whole.Bytes()) != settled(pieces.Bytes()) {
			t.Fatalf("in one: %q, %v; in pieces: %q, %v", whole.Bytes(), err, pieces.Bytes(), again)
		}
		if err != nil && !errors.Is(err, ErrEndpoint) {
			t.Fatal(err)
		}
		out := bytes.Replace(whole.Bytes(), []byte("event: endpoint\ndata: "+ours+"\n\n"), nil, 1)
		for _, line := range bytes.FieldsFunc(out, func(c rune) bool { return c == '\n' || c == '\r' }) {
			name, value, _ := bytes.Cut(line, []byte(":"))
			if string(name) == "event" && string(bytes.TrimSpace(value)) == "endpoint" && err == nil {
				t.Fatalf("%q passed as %q", in, whole.Bytes())
			}
		}
		if err == nil && len(out) == whole.Len() && !bytes.Equal(out, in) {
			t.Fatalf("%q became %q", in, out)
		}
	})
}

// chunks is a stream that arrives in pieces of a size.
type chunks struct {
	rest []byte
	size int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.rest[:min(c.size, len(c.rest))])
	c.rest = c.rest[n:]
	return n, nil
}

func BenchmarkPass(b *testing.B) {
	event := "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"text\":\"" + strings.Repeat("x", 2_000) + "\"}}\n\n"
	p := make([]byte, 2<<10)
	r := NewReader(iotest.TimeoutReader(strings.NewReader("")), replaced)
	r.first, r.rest = nil, forever(event)
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Read(p); err != nil {
			b.Fatal(err)
		}
	}
}

// forever is a stream that repeats itself.
type forever string

func (f forever) Read(p []byte) (int, error) { return copy(p, f), nil }
