package sse

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// plain is an Event without its bytes' lifetimes.
type plain struct {
	Raw, Name, Data, ID string
	HasData, HasID      bool
	Retry               int64
	Comment, Incomplete bool
}

func readAll(src io.Reader, max int) ([]plain, error) {
	r := NewReader(src, max)
	var got []plain
	for {
		e, err := r.Next()
		if err != nil {
			return got, err
		}
		got = append(got, plain{string(e.Raw), e.Name, string(e.Data), e.ID, e.HasData, e.HasID, e.Retry, e.Comment, e.Incomplete})
	}
}

// reference returns the specification's algorithm, slow and on the whole text. Lines are found one byte at a time.
func reference(s string) []plain {
	type line struct{ text, raw string }
	var all []line
	lead := ""
	if strings.HasPrefix(s, bom) {
		lead, s = bom, s[len(bom):]
	}
	for len(s) > 0 {
		i := strings.IndexAny(s, "\r\n")
		if i < 0 {
			all = append(all, line{s, s})
			break
		}
		end := i + 1
		if s[i] == '\r' && end < len(s) && s[end] == '\n' {
			end++
		}
		all = append(all, line{s[:i], s[:end]})
		s = s[end:]
	}
	var out []plain
	cur, any := plain{Retry: -1, Raw: lead}, false
	flush := func() { out = append(out, cur); cur, any = plain{Retry: -1}, false }
	for _, l := range all {
		ended := l.text != l.raw
		cur.Raw += l.raw
		switch {
		case l.text == "":
			flush()
			continue
		case !any && l.text[0] == ':' && ended:
			cur.Comment = true
			flush()
			continue
		}
		any = true
		field, value, found := strings.Cut(l.text, ":")
		if found {
			value = strings.TrimPrefix(value, " ")
		}
		switch field {
		case "data":
			if cur.HasData {
				cur.Data += "\n"
			}
			cur.Data, cur.HasData = cur.Data+value, true
		case "event":
			cur.Name = value
		case "id":
			if !strings.Contains(value, "\x00") {
				cur.ID, cur.HasID = value, true
			}
		case "retry":
			if value != "" && len(value) <= 18 && strings.Trim(value, "0123456789") == "" {
				cur.Retry, _ = strconv.ParseInt(value, 10, 64)
			}
		}
	}
	if cur.Raw != "" {
		cur.Incomplete = true
		out = append(out, cur)
	}
	return out
}

func TestReader(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []plain
	}{
		{"nothing", "", nil},
		{"all fields", "event: add\nid: 7\nretry: 3000\ndata: a\ndata:b\n\n", []plain{
			{Raw: "event: add\nid: 7\nretry: 3000\ndata: a\ndata:b\n\n", Name: "add", ID: "7", HasID: true, Retry: 3000, Data: "a\nb", HasData: true}}},
		{"CRLF and CR", "data: a\r\n\r\ndata: b\r\rdata: c\n\n", []plain{
			{Raw: "data: a\r\n\r\n", Data: "a", HasData: true, Retry: -1}, {Raw: "data: b\r\r", Data: "b", HasData: true, Retry: -1}, {Raw: "data: c\n\n", Data: "c", HasData: true, Retry: -1}}},
		{"M19 BOM only at the start", "\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n", []plain{
			{Raw: "\xef\xbb\xbfdata: a\n\n", Data: "a", HasData: true, Retry: -1}, {Raw: "\xef\xbb\xbfdata: b\n\n", Retry: -1}}},
		{"M19 NUL in an id", "id: a\x00b\ndata\n\n", []plain{{Raw: "id: a\x00b\ndata\n\n", HasData: true, Retry: -1}}},
		{"id reset, retry not of digits, case matters, only one blank goes", "id\nretry: 1s\nDATA: x\ndata:  y\n\n", []plain{
			{Raw: "id\nretry: 1s\nDATA: x\ndata:  y\n\n", HasID: true, Retry: -1, Data: " y", HasData: true}}},
		{"comments", ": hi\n\ndata: a\n: in\ndata: b\n\n:", []plain{
			{Raw: ": hi\n", Comment: true, Retry: -1}, {Raw: "\n", Retry: -1}, {Raw: "data: a\n: in\ndata: b\n\n", Data: "a\nb", HasData: true, Retry: -1}, {Raw: ":", Incomplete: true, Retry: -1}}},
		{"unfinished", "data: a\n\ndata: b", []plain{{Raw: "data: a\n\n", Data: "a", HasData: true, Retry: -1}, {Raw: "data: b", Data: "b", HasData: true, Retry: -1, Incomplete: true}}},
		{"M19 invalid UTF-8 stays as it is", "data: \xff\xfe\n\n", []plain{{Raw: "data: \xff\xfe\n\n", Data: "\xff\xfe", HasData: true, Retry: -1}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := readAll(strings.NewReader(tc.in), 0)
			if err != io.EOF {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, reference(tc.in)); diff != "" {
				t.Errorf("reference (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReaderCaps(t *testing.T) {
	const limit = 4 << 10
	line := strings.Repeat("x", limit-len("data: \n\n"))
	for _, tc := range []struct {
		name   string
		in     io.Reader
		events int
		err    error
	}{
		{"at the cap", strings.NewReader("data: " + line + "\n\n"), 1, io.EOF},
		{"one above", strings.NewReader("data: x" + line + "\n\n"), 0, ErrTooLarge},
		{"M19 line without end", endless("data: x"), 0, ErrTooLarge},
		{"M19 event without end", endless("data: x\n"), 0, ErrTooLarge},
		{"M19 CR only, without end", endless("data: x\r"), 0, ErrTooLarge},
		{"M19 comments inside an event", io.MultiReader(strings.NewReader("data: x\n"), endless(":\n")), 0, ErrTooLarge},
		{"M19 10^6 comment lines", io.LimitReader(endless(": x\n"), 4e6), 1e6, io.EOF},
		{"M19 10^6 empty lines", io.LimitReader(endless("\n"), 1e6), 1e6, io.EOF},
		{"M19 10^6 bare CRs", io.LimitReader(endless("\r"), 1e6), 1e6, io.EOF},
		{"failure of the source", io.MultiReader(strings.NewReader("data: x\n\ndata"), iotest.ErrReader(errBoom)), 1, errBoom},
		{"source without progress", stuck{}, 0, io.ErrNoProgress},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := NewReader(tc.in, limit)
			n := 0
			for {
				_, err := r.Next()
				if err != nil {
					if !errors.Is(err, tc.err) {
						t.Errorf("got %v, want %v", err, tc.err)
					}
					break
				}
				n++
			}
			if n != tc.events || cap(r.buf) > limit+1 {
				t.Errorf("%d events, %d bytes held", n, cap(r.buf))
			}
		})
	}
}

// TestReaderIsLinear checks that a megabyte of bare CRs, or of CRs before one LF, costs as much as any megabyte.
func TestReaderIsLinear(t *testing.T) {
	for _, unit := range []string{"x\r", "x\n", "x\r\n"} {
		body := strings.Repeat(unit, 1<<20/len(unit)-4)
		if n, err := readAll(strings.NewReader(body), 1<<20); err != io.EOF || len(n) != 1 {
			t.Errorf("%q: %d events, %v", unit, len(n), err)
		}
	}
}

func TestReaderLetsGoOfMemory(t *testing.T) {
	src, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, "data: "+strings.Repeat("x", 500<<10)+"\ndata: y\n\n")
		_, _ = io.WriteString(w, "data: z\n\n")
		_ = w.Close()
	}()
	r := NewReader(src, 0)
	for range 2 {
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if cap(r.buf) > keptBuffer || cap(r.joined) > keptBuffer {
		t.Errorf("holds %d and %d bytes while it waits", cap(r.buf), cap(r.joined))
	}
	if _, err := r.Next(); err != io.EOF {
		t.Error(err)
	}
	runtime.KeepAlive(r)
}

// TestReaderDoesNotWait checks that an event is returned as soon as its empty line is there, also when that is a bare
// CR.
func TestReaderDoesNotWait(t *testing.T) {
	for _, tc := range []struct{ first, second, raw string }{
		{"data: a\n\n", "data: b\n\n", "data: b\n\n"},
		{"data: a\r\r", "data: b\r\r", "data: b\r\r"},
		{"data: a\r\n\r", "\ndata: b\r\n\r\n", "\ndata: b\r\n\r\n"},
		{":\r", "\n\n", "\n\n"},
	} {
		src, w := io.Pipe()
		r := NewReader(src, 0)
		go func() { _, _ = io.WriteString(w, tc.first) }()
		e, err := r.Next()
		if err != nil || string(e.Raw) != tc.first {
			t.Fatalf("%q: got %v, %v", tc.first, e, err)
		}
		go func() { _, _ = io.WriteString(w, tc.second) }()
		if e, err = r.Next(); err != nil || string(e.Raw) != tc.raw {
			t.Fatalf("%q: got %q, %v", tc.second, e.Raw, err)
		}
	}
}

var errBoom = errors.New("boom")

type endless string

func (s endless) Read(p []byte) (int, error) {
	n := 0
	for n+len(s) <= len(p) {
		n += copy(p[n:], s)
	}
	if n == 0 {
		// Too little room: whole units only, so that a test counts well. Fall back to bytes of the first unit.
		n = copy(p, s)
	}
	return n, nil
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func FuzzReader(f *testing.F) {
	for _, s := range []string{"", "data: a\n\n", "data: a\r\n\r\nid: 1\r\r", bom + "event: x\ndata\n\n", "\xef\xbb", ": c\n\n:\r\n", "id: \x00\nretry: 12\ndata:  x\ndata:y", "\r\n\n\r\r\n"} {
		f.Add(s, uint8(1))
		f.Add(s, uint8(200))
	}
	f.Fuzz(func(t *testing.T, in string, step uint8) {
		want := reference(in)
		whole, err := readAll(strings.NewReader(in), 1<<20)
		if err != io.EOF {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, whole); diff != "" {
			t.Errorf("in one piece (-want +got):\n%s", diff)
		}
		// In pieces only the place of a CRLF's LF may differ.
		pieces, err := readAll(&stepReader{in, int(step)%16 + 1}, 1<<20)
		if err != io.EOF {
			t.Fatal(err)
		}
		var raw strings.Builder
		for i := range pieces {
			raw.WriteString(pieces[i].Raw)
			pieces[i].Raw = ""
		}
		for i := range want {
			want[i].Raw = ""
		}
		// An LF that came late and had nothing after it is a block of its own.
		if n := len(pieces); n == len(want)+1 && pieces[n-1] == (plain{Retry: -1, Incomplete: true}) {
			pieces = pieces[:n-1]
		}
		if diff := cmp.Diff(want, pieces); diff != "" {
			t.Errorf("in pieces of %d (-want +got):\n%s", int(step)%16+1, diff)
		}
		if raw.String() != in {
			t.Errorf("raw bytes %q, want %q", raw.String(), in)
		}
	})
}

type stepReader struct {
	s    string
	step int
}

func (r *stepReader) Read(p []byte) (int, error) {
	if r.s == "" {
		return 0, io.EOF
	}
	n := copy(p, r.s[:min(r.step, len(r.s))])
	r.s = r.s[n:]
	return n, nil
}

func TestWriter(t *testing.T) {
	var out recorder
	w := NewWriter(&out, func() error { out.flushes++; return nil })
	for _, tc := range []struct{ name, data, want string }{
		{"connected", `{"status":"ready"}`, "event: connected\ndata: {\"status\":\"ready\"}\n\n"},
		{"", "", "data: \n\n"},
		{"x", "a\r\nb\rc\n\nd", "event: x\ndata: a\ndata: b\ndata: c\ndata: \ndata: d\n\n"},
		{"x", "a\n", "event: x\ndata: a\ndata: \n\n"},
		{"x", strings.Repeat("y", 5000), "event: x\ndata: " + strings.Repeat("y", 5000) + "\n\n"},
	} {
		out = recorder{}
		if err := w.Event(tc.name, []byte(tc.data)); err != nil {
			t.Fatal(err)
		}
		if out.String() != tc.want || out.writes != 1 || out.flushes != 1 {
			t.Errorf("got %q in %d writes and %d flushes", out.String(), out.writes, out.flushes)
		}
		if cap(w.buf) > keptBuffer {
			t.Errorf("keeps %d bytes", cap(w.buf))
		}
	}
	for _, name := range []string{"a\nb", "a\rdata: x", "a\x00"} {
		if err := w.Event(name, nil); err == nil {
			t.Errorf("name %q was written", name)
		}
	}
	out = recorder{}
	if err := w.Heartbeat(); err != nil || out.String() != ":\n\n" {
		t.Errorf("heartbeat %q, %v", out.String(), err)
	}
}

type recorder struct {
	bytes.Buffer
	writes, flushes int
}

func (r *recorder) Write(p []byte) (int, error) { r.writes++; return r.Buffer.Write(p) }

// FuzzWriter checks that every written event is read back as one event with the same data.
func FuzzWriter(f *testing.F) {
	f.Add("connected", "a\nb")
	f.Add("", "\r\r\n")
	f.Fuzz(func(t *testing.T, name, data string) {
		frame, err := AppendEvent(nil, name, []byte(data))
		if err != nil {
			return
		}
		got, err := readAll(bytes.NewReader(frame), 64<<20)
		if err != io.EOF || len(got) != 1 {
			t.Fatalf("%d events, %v", len(got), err)
		}
		want := strings.ReplaceAll(strings.ReplaceAll(data, "\r\n", "\n"), "\r", "\n")
		if got[0].Name != name || got[0].Data != want || got[0].Incomplete {
			t.Errorf("%q %q read back as %+v", name, data, got[0])
		}
	})
}

func BenchmarkReader(b *testing.B) {
	stream := []byte(strings.Repeat("event: data_update\nid: 12\ndata: "+strings.Repeat("x", 200)+"\n\n", 1000))
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(bytes.NewReader(stream), 0)
		for {
			if _, err := r.Next(); err != nil {
				break
			}
		}
	}
}

// TestRest checks that a stream can be read further without events, from the position of its reader.
func TestRest(t *testing.T) {
	broken := errors.New("broken")
	for _, through := range []func(io.Reader) io.Reader{
		func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.DataErrReader,
	} {
		for _, tc := range []struct {
			name, in, rest string
			events         int
			end            error // of the stream
		}{
			{"before any event", "data: a\n\n", "data: a\n\n", 0, nil},
			{"after one", "data: a\n\ndata: b\n\ndata", "data: b\n\ndata", 1, nil},
			{"after a CR", "data: a\r\rdata: b", "data: b", 1, nil},
			{"after the last", "data: a\n\n", "", 1, nil},
			{"after one that was too large", "data: a\n\ndata: " + strings.Repeat("b", 50) + "\n\nx", "data: " + strings.Repeat("b", 50) + "\n\nx", 2, nil},
			{"of a stream that breaks", "data: a\n\nx", "x", 1, broken},
		} {
			src := io.Reader(strings.NewReader(tc.in))
			if tc.end != nil {
				src = io.MultiReader(src, iotest.ErrReader(tc.end))
			}
			r := NewReader(through(src), 20)
			for range tc.events {
				if _, err := r.Next(); err != nil && !errors.Is(err, ErrTooLarge) {
					t.Fatal(err)
				}
			}
			if got, err := io.ReadAll(r.Rest()); string(got) != tc.rest || !errors.Is(err, tc.end) {
				t.Errorf("%s: %q, %v; want %q, %v", tc.name, got, err, tc.rest, tc.end)
			}
		}
	}
}

// TestSmallBuffer checks that a stream with little data waits with little memory, and is read in larger pieces once
// it has more.
func TestSmallBuffer(t *testing.T) {
	little := "data: a\n\n"
	src := &pieces{texts: []string{little, strings.Repeat(little, 2*firstBuffer/len(little)), little}}
	r := NewReader(src, 0)
	if _, err := r.Next(); err != nil || cap(r.buf) != firstBuffer {
		t.Fatalf("holds %d bytes, %v", cap(r.buf), err)
	}
	for {
		if _, err := r.Next(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if cap(r.buf) != keptBuffer {
		t.Errorf("holds %d bytes after more at a time", cap(r.buf))
	}
}

// pieces is a stream that comes in these pieces.
type pieces struct{ texts []string }

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.texts) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.texts[0])
	if p.texts[0] = p.texts[0][n:]; p.texts[0] == "" {
		p.texts = p.texts[1:]
	}
	return n, nil
}
