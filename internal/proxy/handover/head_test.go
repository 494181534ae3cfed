package handover

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

// TestRefuseFolds reads heads in pieces of every size: net/http refuses those with a continued line, and reads the others as
// they came.
func TestRefuseFolds(t *testing.T) {
	const line = "POST / HTTP/1.1\r\nHost: x\r\n"
	for name, tc := range map[string]struct {
		text string
		good bool
	}{
		"plain":                       {line + "A: b\r\n\r\n", true},
		"by a space":                  {line + "Authorization: Bearer\r\n abc\r\n\r\n", false},
		"by a tab":                    {line + "Transfer-Encoding:\r\n\tchunked\r\n\r\n", false},
		"after a bare line feed":      {line + "A: b\n c\r\n\r\n", false},
		"with a colon":                {line + "A: b\r\n C: d\r\n\r\n", false},
		"empty":                       {line + "A: b\r\n \r\nC: d\r\n\r\n", false},
		"the first header":            {"GET / HTTP/1.1\r\n Host: x\r\n\r\n", false},
		"after empty lines":           {"\r\n\r\n" + line + "A: b\r\n c\r\n\r\n", false},
		"a method like HTTP/2":        {"PRIX / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", false},
		"spaces within a line":        {line + "A:  b \t c \r\nD:\t e\r\n\r\n", true},
		"a body like one":             {line + "Content-Length: 8\r\n\r\n a\r\n\tb\r\n", true},
		"a body after line feeds":     {line + "Content-Length: 4\n\n a\n ", true},
		"a carriage return in a line": {line + "A: b\rc\r\n d\r\n\r\n", false},
	} {
		for size := 1; size <= len(tc.text); size++ {
			client, server := net.Pipe()
			go func() {
				defer client.Close()
				for rest := tc.text; rest != ""; {
					n := min(size, len(rest))
					if _, err := io.WriteString(client, rest[:n]); err != nil {
						return
					}
					rest = rest[n:]
				}
			}()
			c := &Conn{Conn: server, listener: new(Listener)}
			r, err := http.ReadRequest(bufio.NewReaderSize(c, serverBuffer))
			if (err == nil) != tc.good {
				t.Errorf("%s, in pieces of %d: %v", name, size, err)
			}
			if err == nil && r.ContentLength > 0 {
				body, err := io.ReadAll(r.Body)
				if want := tc.text[len(tc.text)-int(r.ContentLength):]; err != nil || string(body) != want {
					t.Errorf("%s, in pieces of %d: the body is %q, %v", name, size, body, err)
				}
			}
			_ = server.Close()
		}
	}
}

// FuzzRefuseFolds checks that net/http reads the same head as without this package, or nothing.
func FuzzRefuseFolds(f *testing.F) {
	f.Add("GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n", 3)
	f.Fuzz(func(t *testing.T, text string, size int) {
		plain, errPlain := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		looked := []byte(text)
		var h head
		for at := 0; at < len(looked); {
			n := min(max(size, 1), len(looked)-at)
			h.refuseFolds(looked[at : at+n])
			at += n
		}
		r, err := http.ReadRequest(bufio.NewReader(iotest.OneByteReader(strings.NewReader(string(looked)))))
		switch {
		case err != nil && errPlain == nil && string(looked) == text:
			t.Errorf("refused without a change: %v", err)
		case err == nil && errPlain != nil && !errors.Is(errPlain, io.ErrUnexpectedEOF):
			t.Errorf("taken with a change: %v", errPlain)
		case err == nil && (r.Method != plain.Method || r.RequestURI != plain.RequestURI || len(r.Header) != len(plain.Header)):
			t.Errorf("%v, and %v without us", r, plain)
		}
	})
}
