package http1

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// memory is a connection whose other end is a list of answers: each can be read once one more request was written, in
// pieces of step bytes. After the last comes the end, or silence when it is held open.
type memory struct {
	mu      sync.Mutex
	changed *sync.Cond
	answers [][]byte
	step    int
	hold    bool
	body    int // bytes that a request has behind its headers
	pending []byte
	written bytes.Buffer
	closed  bool
}

func newMemory(step int, hold bool, answers ...[]byte) *memory {
	m := &memory{answers: answers, step: step, hold: hold}
	m.changed = sync.NewCond(&m.mu)
	return m
}

func (m *memory) Write(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return 0, net.ErrClosed
	}
	m.written.Write(p)
	if head := bytes.Index(m.written.Bytes(), []byte("\r\n\r\n")); len(m.answers) > 0 && m.written.Len() >= head+4+m.body {
		m.pending = append(m.pending, m.answers[0]...)
		m.answers = m.answers[1:]
	}
	m.changed.Broadcast()
	return len(p), nil
}

func (m *memory) Read(p []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for !m.closed && len(m.pending) == 0 && (m.hold || len(m.answers) > 0) {
		m.changed.Wait()
	}
	if m.closed {
		return 0, net.ErrClosed
	}
	if len(m.pending) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), m.step)], m.pending)
	m.pending = m.pending[n:]
	return n, nil
}

func (m *memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.changed.Broadcast()
	return nil
}

func (m *memory) silent() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.pending) == 0
}

func (*memory) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (*memory) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (*memory) SetDeadline(time.Time) error      { return nil }
func (*memory) SetReadDeadline(time.Time) error  { return nil }
func (*memory) SetWriteDeadline(time.Time) error { return nil }

// inMemory hands out prepared connections.
type inMemory struct {
	mu    sync.Mutex
	conns []*memory
	dials int
}

func (d *inMemory) DialContext(context.Context, string, string) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dials++; d.dials > len(d.conns) {
		return nil, errors.New("nothing left to dial")
	}
	return d.conns[d.dials-1], nil
}

func (d *inMemory) DialPlain(ctx context.Context, n, a string) (net.Conn, error) {
	return d.DialContext(ctx, n, a)
}

// outcome holds the result of one exchange as a caller sees it.
type outcome struct {
	Status int
	Header http.Header
	Length int64
	Coded  []string
	Body   string
	Err    error
}

func run(rt http.RoundTripper, r *http.Request) (o outcome) {
	ctx, cancel := context.WithTimeout(r.Context(), soon)
	defer cancel()
	res, err := rt.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return outcome{Err: err}
	}
	b, err := io.ReadAll(progress{res.Body})
	_ = res.Body.Close()
	o = outcome{res.StatusCode, res.Header.Clone(), res.ContentLength, res.TransferEncoding, string(b), err}
	if res.Body == http.NoBody {
		o.Coded = nil
	}
	// net/http takes out "close" and makes a Cache-Control of a Pragma.
	o.Header.Del("Connection")
	if o.Header.Get("Pragma") == "no-cache" {
		o.Header.Del("Cache-Control")
	}
	return o
}

func reference(d *inMemory) *http.Transport {
	return &http.Transport{DialContext: d.DialContext, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10}
}

// stricter are the reasons for which an answer is refused that net/http may accept: the list in the package's
// documentation.
var stricter = []*ProtocolError{
	errStatusLine, errField, errFolded, errBareLF, errTooMany, errInterim, errSwitch, errEncodingOld, errBothLengths, errChunkSize, errChunkLine, errTrailer,
}

var second = []byte("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond")

// FuzzRoundTrip gives the same answer to this client and to net/http: same result, or a clean refusal; and a connection
// is not kept that net/http would not keep.
func FuzzRoundTrip(f *testing.F) {
	log.SetOutput(io.Discard) // net/http complains about unsolicited answers
	f.Cleanup(func() { log.SetOutput(os.Stderr) })
	for _, tc := range answers {
		f.Add(uint8(0), []byte(tc.answer), uint16(1<<15))
		f.Add(uint8(1), []byte(tc.answer), uint16(3))
	}
	f.Add(uint8(2), []byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), uint16(7))
	f.Fuzz(func(t *testing.T, method uint8, answer []byte, step uint16) {
		name := []string{"GET", "POST", "HEAD", "DELETE"}[method%4]
		request := func(name string) *http.Request {
			r := &http.Request{Method: name, URL: &url.URL{Scheme: "http", Host: "up.test", Path: "/mcp"}, Header: http.Header{"User-Agent": {"x"}}}
			if name == "POST" {
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader("{}")), 2
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			t.Cleanup(cancel)
			return r.WithContext(ctx)
		}
		pieces := int(step) + 1
		ours := New(&inMemory{conns: []*memory{newMemory(pieces, false, answer)}}, Options{})
		theirs := reference(&inMemory{conns: []*memory{newMemory(pieces, false, answer)}})
		got, want := run(ours, request(name)), run(theirs, request(name))
		ours.CloseIdleConnections()
		theirs.CloseIdleConnections()
		if got.Err != nil {
			var refused *ProtocolError
			if want.Err == nil && !(errors.As(got.Err, &refused) && slices.Contains(stricter, refused)) {
				t.Fatalf("failed where net/http does not: %v", got.Err)
			}
			if !strings.HasPrefix(want.Body, got.Body) && !strings.HasPrefix(got.Body, want.Body) {
				t.Fatalf("before the error came %q, with net/http %q", got.Body, want.Body)
			}
			return
		}
		if want.Err != nil {
			t.Fatalf("accepted what net/http does not: %v", want.Err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("differs from net/http (-net/http +http1):\n%s", diff)
		}

		// The same with an upstream that keeps the connection open; a body that was whole before the end needs no
		// end.
		dialled := func() *inMemory {
			return &inMemory{conns: []*memory{newMemory(pieces, true, answer, second), newMemory(pieces, true, second)}}
		}
		if got.Length < 0 && len(got.Coded) == 0 && name != "HEAD" && got.Status != 304 {
			return
		}
		mine, other := dialled(), dialled()
		ours, theirs = New(mine, Options{}), reference(other)
		defer ours.CloseIdleConnections()
		defer theirs.CloseIdleConnections()
		if again := run(ours, request(name)); again.Err != nil {
			t.Fatal(again.Err)
		}
		if ours.pool.newest != nil {
			ours.pool.newest.alive = mine.conns[0].silent
		}
		next := run(ours, request("GET"))
		if next.Err != nil || next.Body != "second" {
			t.Fatalf("the next request got %q, %v", next.Body, next.Err)
		}
		if mine.dials == 1 {
			run(theirs, request(name))
			if next := run(theirs, request("GET")); next.Err != nil || other.dials != 1 {
				t.Fatalf("kept a connection that net/http does not keep: %v", next.Err)
			}
		}
	})
}

// FuzzRequest compares the bytes of a request with net/http's.
func FuzzRequest(f *testing.F) {
	f.Add("POST", "up.test", "/a%2Fb", "q=1&r=%20", "X-Token", "s3cret", "Accept", "a ", 3, false)
	f.Add("GET", "[fe80::1%25eth0]:81", "", "", "Content-Length", "5", "host", "evil", 0, true)
	f.Add("POST", "up.test", "/", "", "Content-Length", "\x00", "Host", "evil", 119, false)
	f.Add("DELETE", "b\u00fccher.test:8080", "/\r\nX: y", "a b", "TE", "trailers", "X\r\n", "a\r\nb", 0, false)
	f.Add("PUT", "h", "x", "\xc3\xbc", "Expect", "100-continue", "User-Agent", "", 0, false)
	f.Add("PATCH", "h", "//x", "?", "transfer-encoding", "chunked", "Mcp-Name", "=?base64?eA==?=", 9000, false)
	f.Fuzz(func(t *testing.T, method, host, path, query, name1, value1, name2, value2 string, body int, last bool) {
		request := func() *http.Request {
			r := &http.Request{Method: method, URL: &url.URL{Scheme: "http", Host: host, Path: path, RawQuery: query}, Close: last,
				Header: http.Header{"User-Agent": {"fuzz"}}}
			r.Header[name1] = append(r.Header[name1], value1)
			r.Header[name2] = append(r.Header[name2], value2)
			if n := body & 0x3fff; n > 0 {
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(make([]byte, n))), int64(n)
			}
			return r
		}
		mine, other := newMemory(1<<16, false, second), newMemory(1<<16, false, second)
		mine.body, other.body = body&0x3fff, body&0x3fff
		keep := time.Duration(0)
		if last {
			keep = -1
		}
		ours, theirs := New(&inMemory{conns: []*memory{mine}}, Options{KeepAlive: keep}), reference(&inMemory{conns: []*memory{other}})
		defer ours.CloseIdleConnections()
		defer theirs.CloseIdleConnections()
		got, want := run(ours, request()), run(theirs, request())
		if refused := (*RequestError)(nil); errors.As(got.Err, &refused) {
			if mine.written.Len() > 0 {
				t.Fatalf("refused, but wrote %q", mine.written.Bytes())
			}
			return
		}
		if want.Err != nil {
			t.Fatalf("sent %q, which net/http refuses: %v", mine.written.Bytes(), want.Err)
		}
		if got.Err != nil {
			t.Fatal(got.Err)
		}
		if diff := cmp.Diff(other.written.String(), mine.written.String()); diff != "" {
			t.Fatalf("differs from net/http (-net/http +http1):\n%s", diff)
		}
	})
}
