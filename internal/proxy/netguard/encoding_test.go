package netguard

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

func packed(t *testing.T, encoding, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&b)
	if encoding == "zstd" {
		var err error
		if w, err = zstd.NewWriter(&b); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestFetchEncoded checks B06: an answer that is compressed unasked is read nevertheless, and costs no more than a
// plain one.
func TestFetchEncoded(t *testing.T) {
	const text = `{"access_token":"a"}`
	zipped, zstandard := packed(t, "gzip", text), packed(t, "zstd", text)
	nothing := packed(t, "gzip", "")
	for _, tc := range []struct {
		name   string
		fields []string
		body   []byte
		want   string
		err    error
	}{
		{"gzip", []string{"gzip"}, zipped, text, nil},
		{"GZIP", []string{"GZIP"}, zipped, text, nil},
		{"x-gzip", []string{"x-gzip"}, zipped, text, nil},
		{"zstd", []string{"zstd"}, zstandard, text, nil},
		{"in two members", []string{"gzip"}, append(bytes.Clone(zipped), zipped...), text + text, nil},
		{"identity", []string{"IDENTITY"}, []byte(text), text, nil},
		{"none", []string{"none"}, []byte(text), text, nil},
		{"none of two fields", []string{"none", "gzip"}, zipped, text, nil},
		{"nothing at all", []string{"gzip"}, nil, "", nil},
		{"br", []string{"br"}, []byte(text), "", ErrEncoded},
		{"twice", []string{"gzip", "gzip"}, zipped, "", ErrEncoded},
		{"not what it says", []string{"gzip"}, []byte(text), "", ErrEncoded},
		{"not what it says, zstd", []string{"zstd"}, []byte(text), "", ErrEncoded},
		{"cut off", []string{"gzip"}, zipped[:len(zipped)-5], text, ErrEncoded},
		{"exactly the cap", []string{"gzip"}, packed(t, "gzip", strings.Repeat("x", 1000)), strings.Repeat("x", 1000), nil},
		{"S09 a byte more", []string{"gzip"}, packed(t, "gzip", strings.Repeat("x", 1001)), strings.Repeat("x", 1000), ErrTooLarge},
		{"S09 gzip bomb", []string{"gzip"}, packed(t, "gzip", strings.Repeat("x", 600_000)), strings.Repeat("x", 1000), ErrTooLarge},
		{"S09 zstd bomb", []string{"zstd"}, packed(t, "zstd", strings.Repeat("x", 600_000)), strings.Repeat("x", 1000), ErrTooLarge},
		{"S09 members of nothing", []string{"gzip"}, bytes.Repeat(nothing, 100), "", ErrTooLarge},
		{"S09 a window beyond all", []string{"zstd"}, []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xf8, 1, 0, 0}, "", ErrEncoded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Encoding"] = tc.fields
				_ = http.NewResponseController(w).Flush() // without a length
				_, _ = w.Write(tc.body)
			}))
			defer s.Close()
			got, err := fetch(t, New(loopback()).FetchClient(30*time.Second, 1000), s.URL)
			if !errors.Is(err, tc.err) || string(got) != tc.want {
				t.Errorf("%.50q, %v, want %.50q, %v", got, err, tc.want, tc.err)
			}
		})
	}
	t.Run("the connection breaks", func(t *testing.T) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write(zipped[:20])
		}))
		defer s.Close()
		if _, err := fetch(t, New(loopback()).FetchClient(30*time.Second, 1000), s.URL); err == nil || errors.Is(err, ErrEncoded) {
			t.Errorf("%v", err)
		}
	})
}
