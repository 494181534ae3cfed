package http1

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// answers are scripted answers to a GET, each the whole of what the upstream says before it falls silent; want is the
// body, or err the error.
var answers = []struct {
	name, answer string
	err          error
	body         string
	kept         bool
}{
	{"length", ok, nil, "{}", true},
	{"no reason", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n{}", nil, "{}", true},
	{"empty reason", "HTTP/1.1 200 \r\ncontent-length: 2\r\n\r\n{}", nil, "{}", true},
	{"length that is repeated", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", nil, "{}", true},
	{"no body", "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", nil, "", true},
	{"204", "HTTP/1.1 204 No Content\r\n\r\n", nil, "", true},
	{"204 of length 0", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", nil, "", true},
	{"204 with a length", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", nil, "", false},
	{"204 with chunks", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", nil, "", false},
	{"304 with a length", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", nil, "", true},
	{"close", "HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\n\r\n{}", nil, "{}", false},
	{"close among others", "HTTP/1.1 200 OK\r\nConnection: x, close\r\nContent-Length: 2\r\n\r\n{}", nil, "{}", false},
	{"HTTP/1.0", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}", nil, "{}", false},
	{"blanks around values", "HTTP/1.1 200 OK\r\nContent-Length: \t 2 \t\r\n\r\n{}", nil, "{}", true},
	{"interim answers", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + ok, nil, "{}", true},
	{"more than asked for", ok + "x", nil, "{}", false},
	{"second answer that nobody asked for", ok + ok, nil, "{}", false},
	{"chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\n{\r\n01\r\n}\r\n0\r\n\r\n", nil, "{}", true},
	{"chunks with extensions and blanks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=\"b\";c\r\n{}\r\n0 \t\r\n\r\n", nil, "{}", true},
	{"H13 trailers", "HTTP/1.1 200 OK\r\nTrailer: X-User-Id\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-User-Id: root\r\nA: \r\n\r\n", nil, "{}", true},
	{"more after the chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nHTTP", nil, "{}", false},
	{"one byte for each chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1\r\nx\r\n", 7000) + "0\r\n\r\n", nil, strings.Repeat("x", 7000), true},
	{"chunk sizes with blanks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\t \t\r\n{}\r\n0  \r\n\r\n", nil, "{}", true},
	{"chunk sizes in capitals", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0F\r\n0123456789abcde\r\n0\r\n\r\n", nil, "01234567890123456789abcde", true},
	{"trailers beside other fields", "HTTP/1.1 200 OK\r\nX: y\r\nTrailer: Z\r\nTransfer-Encoding: chunked\r\nEtag: e\r\n\r\n0\r\nZ: z\r\n\r\n", nil, "", true},
	{"interim answers beyond one buffer", strings.Repeat("HTTP/1.1 103 P\r\nX: "+strings.Repeat("y", 3000)+"\r\n\r\n", 21) + ok, nil, "{}", true},
	{"status 299", "HTTP/1.1 299 OK\r\nContent-Length: 2\r\n\r\n{}", nil, "{}", true},
	{"value of blanks", "HTTP/1.1 200 OK\r\nX: \t \r\nContent-Length: 2\r\n\r\n{}", nil, "{}", true},
	{"204 and close", "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", nil, "", false},
	{"204 with an encoding", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", nil, "", false},
	{"304 and close", "HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n", nil, "", false},
	{"304 with an encoding", "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", nil, "", false},
	{"headers beyond one buffer", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 20<<10) + "\r\nContent-Length: 2\r\n\r\n{}", nil, "{}", true},

	{"not HTTP", "SSH-2.0-OpenSSH_9\r\n", errStatusLine, "", false},
	{"not HTTP, no line end", "\x15\x03\x01\x00\x02\x02\x46", errStatusLine, "", false},
	{"HTTP/2", "HTTP/2.0 200 OK\r\n\r\n", errStatusLine, "", false},
	{"HTTP/1.2", "HTTP/1.2 200 OK\r\n\r\n", errStatusLine, "", false},
	{"lower case", "http/1.1 200 OK\r\n\r\n", errStatusLine, "", false},
	{"two blanks", "HTTP/1.1  200 OK\r\n\r\n", errStatusLine, "", false},
	{"no status", "HTTP/1.1\r\n\r\n", errStatusLine, "", false},
	{"no version", "HTTP/1.\r\n\r\n", errStatusLine, "", false},
	{"no blank before the status", "HTTP/1.1x200 OK\r\n\r\n", errStatusLine, "", false},
	{"status that is no number", "HTTP/1.1 20: OK\r\n\r\n", errStatusLine, "", false},
	{"status of two digits", "HTTP/1.1 20 OK\r\n\r\n", errStatusLine, "", false},
	{"status with a sign", "HTTP/1.1 +20 OK\r\n\r\n", errStatusLine, "", false},
	{"status 099", "HTTP/1.1 099 OK\r\n\r\n", errStatusLine, "", false},
	{"status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", errStatusLine, "", false},
	{"H08 control character in the reason", "HTTP/1.1 200 O\x00K\r\n\r\n", errStatusLine, "", false},
	{"H08 CR in the reason", "HTTP/1.1 200 O\rK\r\n\r\n", errStatusLine, "", false},
	{"H08 CR in a value", "HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n", errField, "", false},
	{"H08 NUL in a value", "HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n", errField, "", false},
	{"H07 bare LF first", "\nHTTP/1.1 200 OK\r\n\r\n", errBareLF, "", false},
	{"H07 bare LF after the status", "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n", errBareLF, "", false},
	{"H07 bare LF after a field", "HTTP/1.1 200 OK\r\nX: a\nContent-Length: 0\r\n\r\n", errBareLF, "", false},
	{"H07 bare LF at the end", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\n", errBareLF, "", false},
	{"H07 blank before the colon", "HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n", errField, "", false},
	{"no colon", "HTTP/1.1 200 OK\r\nX\r\n\r\n", errField, "", false},
	{"no name", "HTTP/1.1 200 OK\r\n: x\r\n\r\n", errField, "", false},
	{"name that is no token", "HTTP/1.1 200 OK\r\nX(y): x\r\n\r\n", errField, "", false},
	{"folded", "HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n", errFolded, "", false},
	{"folded first", "HTTP/1.1 200 OK\r\n\tX: a\r\n\r\n", errFolded, "", false},
	{"too many fields", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", maxFields+1) + "\r\n", errTooMany, "", false},
	{"too large", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 70) + "\r\n", errTooLarge, "", false},
	{"too large, one line", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("y", 100<<10), errTooLarge, "", false},
	{"too many interim answers", strings.Repeat("HTTP/1.1 102 P\r\n\r\n", maxInterim+1) + ok, errInterim, "", false},
	{"interim answers too large", strings.Repeat("HTTP/1.1 103 P\r\nX: "+strings.Repeat("y", 1000)+"\r\n\r\n", 70) + ok, errTooLarge, "", false},
	{"interim answer with a bad length", "HTTP/1.1 103 P\r\nContent-Length: x\r\n\r\n" + ok, errLength, "", false},
	{"H12 switch", "HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", errSwitch, "", false},
	{"H07 both lengths", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n", errBothLengths, "", false},
	{"H07 both lengths, one of them 0", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n", errBothLengths, "", false},
	{"H07 two encodings", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", errEncoding, "", false},
	{"H07 chunked, identity", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", errEncoding, "", false},
	{"H07 gzip, chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", errEncoding, "", false},
	{"chunks in HTTP/1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", errEncodingOld, "", false},
	{"H07 two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", errLength, "", false},
	{"H07 list of lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\n{}", errLength, "", false},
	{"H07 negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", errLength, "", false},
	{"H07 signed length", "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}", errLength, "", false},
	{"empty length", "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", errLength, "", false},
	{"endless length", "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n", errLength, "", false},
	{"trailer that frames", "HTTP/1.1 200 OK\r\nTrailer: x, content-length\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", errTrailerField, "", false},
	{"chunk without size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", errChunkSize, "", false},
	{"chunk of no number", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\nzz\r\n", errChunkSize, "{}", false},
	{"chunk of signed size", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n", errChunkSize, "", false},
	{"chunk of 0x2", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\n{}\r\n", errChunkSize, "", false},
	{"chunk size with a gap", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2 2\r\n{}\r\n", errChunkSize, "", false},
	{"chunk that overflows", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}\r\n", errChunkSize, "", false},
	{"chunk line with bare LF", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\n{}\r\n", errChunkSize, "", false},
	{"chunk extension with bare LF", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x\n{}\r\n", errChunkLine, "", false},
	{"chunk line with CR", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r{}\r\n", errChunkLine, "", false},
	{"H07 chunk extension bomb", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;" + strings.Repeat("x", 9000), errChunkLine, "", false},
	{"H07 chunk extensions without data", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("x", 200)+"\r\ny\r\n", 200), errChunkOverhead, "any", false},
	{"chunk that is longer than it says", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}x\r\n", errChunkEnd, "{}", false},
	{"chunk with bare LF", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\n0\r\n\r\n", errChunkEnd, "{}", false},
	{"trailer that is none", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nHTTP/1.1 200 OK\r\n\r\n", errTrailer, "", false},
	{"folded trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n z\r\n\r\n", errTrailer, "", false},
	{"endless trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("X: y\r\n", 2000), errTrailerTooLong, "", false},
}

func TestAnswers(t *testing.T) {
	for _, tc := range answers {
		t.Run(tc.name, func(t *testing.T) {
			for _, step := range []int{1, 2, 7, 1 << 20} {
				d := &inMemory{conns: []*memory{newMemory(step, true, []byte(tc.answer), second), newMemory(step, true, second)}}
				c := New(d, Options{})
				request := func() *http.Request {
					r, err := http.NewRequestWithContext(t.Context(), "GET", "http://up.test/", nil)
					if err != nil {
						t.Fatal(err)
					}
					return r
				}
				got := run(c, request())
				if !errors.Is(got.Err, tc.err) {
					t.Fatalf("in steps of %d: error %v, want %v", step, got.Err, tc.err)
				}
				if got.Err != nil && got.Err.Error() != tc.err.Error() {
					t.Errorf("in steps of %d: the error says %q", step, got.Err)
				}
				if got.Body != tc.body && tc.body != "any" {
					t.Errorf("in steps of %d: body %q, want %q", step, got.Body, tc.body)
				}
				if got.Err != nil && !d.conns[0].closed {
					t.Errorf("in steps of %d: connection is open after an error", step)
				}
				if c.pool.newest != nil {
					c.pool.newest.alive = d.conns[0].silent
				}
				if next := run(c, request()); next.Err != nil || next.Body != "second" {
					t.Errorf("in steps of %d: next request got %q, %v", step, next.Body, next.Err)
				}
				if kept := d.dials == 1; kept != tc.kept {
					t.Errorf("in steps of %d: kept is %v", step, kept)
				}
				c.CloseIdleConnections()
			}
		})
	}
}

// TestCut checks that an answer that ends before its end is an error, wherever it is cut.
func TestCut(t *testing.T) {
	for _, whole := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\n12345\r\n0\r\nX: y\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
	} {
		for n := range len(whole) + 1 {
			d := &inMemory{conns: []*memory{newMemory(1<<20, false, []byte(whole[:n]))}}
			r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://up.test/", nil)
			got := run(New(d, Options{KeepAlive: -1}), r)
			if n < len(whole) && !errors.Is(got.Err, io.ErrUnexpectedEOF) || n == len(whole) && got.Err != nil {
				t.Errorf("%q: %v", whole[:n], got.Err)
			}
			if got.Err != nil && !strings.HasPrefix(got.Err.Error(), "reading the answer: ") {
				t.Errorf("%q: the error says %q", whole[:n], got.Err)
			}
		}
	}
}

// TestUntilClose checks that an answer without a length ends with the connection, which is an end only when it is
// orderly.
func TestUntilClose(t *testing.T) {
	for _, tc := range []struct {
		name  string
		reset bool
		want  string
	}{{"closed", false, "data: 1\n\n"}, {"reset", true, ""}} {
		t.Run(tc.name, func(t *testing.T) {
			read := make(chan bool, 1)
			up := newUpstream(t, func(c *peer) {
				c.request()
				c.say("HTTP/1.1 200 OK\r\n\r\ndata: 1\n\n")
				<-read
				if tc.reset {
					c.reset()
				}
			})
			res, err := newClient(t, Options{}).RoundTrip(up.request(t.Context(), "GET", ""))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			p := make([]byte, 9)
			if _, err := io.ReadFull(res.Body, p); err != nil || string(p) != "data: 1\n\n" {
				t.Fatalf("%q %v", p, err)
			}
			read <- true
			if n, err := res.Body.Read(p); n != 0 || (err == io.EOF) == tc.reset {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
	}
}

func TestHead(t *testing.T) {
	up := newUpstream(t, func(c *peer) {
		for c.request() != nil {
			c.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
		}
	})
	c := newClient(t, Options{})
	for range 2 {
		res, err := c.RoundTrip(up.request(t.Context(), "HEAD", ""))
		if err != nil || res.ContentLength != 5 || res.Body != http.NoBody {
			t.Fatal(res, err)
		}
	}
	if up.conns.Load() != 1 {
		t.Error("connection was not kept")
	}
}
