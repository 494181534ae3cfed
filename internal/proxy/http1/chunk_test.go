package http1

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
)

// TestChunkBounds checks that the framing of chunks may have its allowed size, and not a byte more (CVE-2023-39326).
func TestChunkBounds(t *testing.T) {
	// chunk is a chunk of one byte whose line has that many bytes, which are line-16 bytes of excess.
	chunk := func(line int) string { return "1;" + strings.Repeat("x", line-2) + "\r\ny\r\n" }
	spent := strings.Repeat(chunk(256), maxExcess/240)
	trailers := func(n int) string { return "0\r\nX:" + strings.Repeat("y", n-6) + "\r\n\r\n" }
	for _, tc := range []struct {
		name, body string
		err        error
	}{
		{"line of 256 bytes", chunk(256), nil},
		{"line of 257 bytes", chunk(257), errChunkLine},
		{"size of 15 digits", strings.Repeat("0", 14) + "1\r\ny\r\n", nil},
		{"size of 16 digits", strings.Repeat("0", 15) + "1\r\ny\r\n", errChunkSize},
		{"all that is allowed", spent + chunk(16+maxExcess%240), nil},
		{"one byte more", spent + chunk(17+maxExcess%240), errChunkOverhead},
		{"data makes up for it", spent + "1000\r\n" + strings.Repeat("y", 0x1000) + "\r\n" + chunk(256), nil},
		{"trailers of 4 KiB", trailers(maxTrailers), io.EOF},
		{"trailers of 4 KiB and a byte", trailers(maxTrailers + 1), errTrailerTooLong},
	} {
		var c chunks
		_, read, err := c.decode(make([]byte, len(tc.body)), []byte(tc.body))
		if err == nil && c.state == ended {
			err = io.EOF
		}
		if !errors.Is(err, tc.err) || (err == nil || errors.Is(err, io.EOF)) && read != len(tc.body) {
			t.Errorf("%s: %v after %d of %d bytes", tc.name, err, read, len(tc.body))
		}
	}
}

func TestHexDigit(t *testing.T) {
	for b := range 256 {
		want, err := strconv.ParseUint(string([]byte{byte(b)}), 16, 8)
		if got, ok := hexDigit(byte(b)); ok != (err == nil) || uint64(got) != want {
			t.Errorf("%q: %d, %v", byte(b), got, ok)
		}
	}
}
