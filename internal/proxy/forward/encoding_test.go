package forward

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/durward-gateway/durward/internal/proxy/http1"
)

// saying is an upstream that gives one fixed answer.
type saying struct {
	encoding []string
	body     io.Reader
}

func (s saying) Send(context.Context, *http1.Request) (*http1.Answer, error) {
	fields := []http1.Field{{Name: "Content-Type", Value: "application/json"}}
	for _, e := range s.encoding {
		fields = append(fields, http1.Field{Name: "Content-Encoding", Value: e})
	}
	return &http1.Answer{Status: 200, Length: -1, Fields: fields, Body: io.NopCloser(s.body)}, nil
}

func (s saying) ask(t *testing.T) (*Response, error) {
	t.Helper()
	r, err := New(s, Limits{}).Do(t.Context(), &Request{Method: http.MethodGet, URL: &url.URL{Scheme: "https", Host: "upstream.example"}})
	if err == nil {
		t.Cleanup(r.Close)
	}
	return r, err
}

type flusher interface {
	io.WriteCloser
	Flush() error
}

func compressor(t testing.TB, encoding string, to io.Writer) flusher {
	t.Helper()
	if encoding == "zstd" {
		w, err := zstd.NewWriter(to)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	return gzip.NewWriter(to)
}

func compressed(t testing.TB, encoding string, text []byte) []byte {
	var b bytes.Buffer
	w := compressor(t, encoding, &b)
	_, _ = w.Write(text)
	_ = w.Close()
	return b.Bytes()
}

// TestW06Decoded checks answers of an upstream that compresses although identity was asked for.
func TestW06Decoded(t *testing.T) {
	text := []byte(strings.Repeat(`{"jsonrpc":"2.0"} `, 1000))
	for _, encoding := range []string{"gzip", "GZIP", "x-gzip", " zstd"} {
		packed := compressed(t, strings.TrimSpace(encoding), text)
		r, err := saying{[]string{"identity", encoding}, bytes.NewReader(packed)}.ask(t)
		if err != nil {
			t.Fatalf("%s: %v", encoding, err)
		}
		if got, err := r.ReadAll(1 << 20); err != nil || !bytes.Equal(got, text) || r.ContentLength != -1 {
			t.Errorf("%s: %d bytes, %v", encoding, len(got), err)
		}
		header := make(http.Header)
		if r.CopyHeader(header); header.Get("Content-Encoding") != "" {
			t.Errorf("%s: %v", encoding, header)
		}
		// One is cut off, the other is damaged.
		for _, bad := range [][]byte{packed[:len(packed)-5], append([]byte("x"), packed...)} {
			if r, err = (saying{[]string{encoding}, bytes.NewReader(bad)}).ask(t); err != nil {
				t.Fatal(err)
			}
			if _, err = r.ReadAll(1 << 20); !errors.Is(err, ErrUpstream) {
				t.Errorf("%s: %v", encoding, err)
			}
		}
	}
	for _, encoding := range [][]string{{"none"}, {"identity", ""}, nil} {
		r, err := saying{encoding, bytes.NewReader(text)}.ask(t)
		if err != nil {
			t.Fatalf("%q: %v", encoding, err)
		}
		if got, err := r.ReadAll(1 << 20); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%q: %d bytes, %v", encoding, len(got), err)
		}
	}
	for _, encoding := range [][]string{{"br"}, {"deflate"}, {"gzip, gzip"}, {"gzip", "gzip"}, {"aws-chunked\x00"}} {
		_, err := saying{encoding, strings.NewReader("x")}.ask(t)
		if !errors.Is(err, ErrUpstream) || len(encoding) == 1 && !strings.Contains(err.Error(), encoding[0][:2]) {
			t.Errorf("%q: %v", encoding, err)
		}
	}
}

// TestW06Events checks that an event comes out when the upstream flushes it.
func TestW06Events(t *testing.T) {
	for _, encoding := range []string{"gzip", "zstd"} {
		src, feed := io.Pipe()
		r, err := saying{[]string{encoding}, src}.ask(t)
		if err != nil {
			t.Fatal(err)
		}
		w := compressor(t, encoding, feed)
		p := make([]byte, 100)
		for _, event := range []string{"data: 1\n\n", ": x\n\n", "data: 2\n\n"} {
			flushed := make(chan struct{})
			go func() {
				defer close(flushed)
				_, _ = io.WriteString(w, event)
				_ = w.Flush()
			}()
			got := ""
			for len(got) < len(event) {
				n, err := r.Body.Read(p)
				if got += string(p[:n]); err != nil {
					t.Fatal(err)
				}
			}
			<-flushed
			if got != event {
				t.Errorf("%s: %q", encoding, got)
			}
		}
		go func() { _ = w.Close(); _ = feed.Close() }()
		if rest, err := io.ReadAll(r.Body); err != nil || len(rest) > 0 {
			t.Errorf("%s: %q, %v", encoding, rest, err)
		}
	}
}

// TestW06Bombs checks the bounds on the cost of an encoded answer.
func TestW06Bombs(t *testing.T) {
	for _, encoding := range []string{"gzip", "zstd"} {
		packed := compressed(t, encoding, make([]byte, 64<<20))
		r, err := saying{[]string{encoding}, bytes.NewReader(packed)}.ask(t)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.ReadAll(1 << 20); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s, read whole: %v", encoding, err)
		}
		if r, err = (saying{[]string{encoding}, bytes.NewReader(packed)}).ask(t); err != nil {
			t.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, r.Body); !errors.Is(err, errBomb) || n > freeOutput+1<<20 {
			t.Errorf("%s, a stream: %d bytes, %v", encoding, n, err)
		}
	}
	// Empty members, without end.
	empty := compressed(t, "gzip", nil)
	r, err := saying{[]string{"gzip"}, repeated{empty, new(int)}}.ask(t)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, r.Body); !errors.Is(err, errDry) || n > 0 {
		t.Errorf("%d bytes, %v", n, err)
	}
	// A window larger than clients accept.
	r, err = saying{[]string{"zstd"}, bytes.NewReader([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xf8, 1, 0, 0})}.ask(t)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadAll(100); !errors.Is(err, ErrUpstream) {
		t.Error(err)
	}
}

// repeated is a text without end.
type repeated struct {
	text []byte
	at   *int
}

func (e repeated) Read(p []byte) (int, error) {
	n := copy(p, e.text[*e.at:])
	*e.at = (*e.at + n) % len(e.text)
	return n, nil
}
