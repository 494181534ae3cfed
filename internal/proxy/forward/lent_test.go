package forward

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// lending is a stream that lends its own buffer.
type lending struct{ held []byte }

func (l *lending) Read([]byte) (int, error) { return 0, errors.New("copied") }

func (l *lending) Lend(most int) ([]byte, error) {
	lent := l.held[:min(most, len(l.held))]
	if l.held = l.held[len(lent):]; len(lent) == 0 {
		return nil, io.EOF
	}
	return lent, nil
}

// largest is a writer that records its largest write.
type largest struct {
	*httptest.ResponseRecorder
	write int
}

func (l *largest) Write(p []byte) (int, error) {
	l.write = max(l.write, len(p))
	return l.ResponseRecorder.Write(p)
}

// TestLentEvents covers W01: the bytes of a stream are written from its own buffer, without a second copy that waits.
// They are written in pieces, so that each has a slow client's time for a write.
func TestLentEvents(t *testing.T) {
	stream := "data: " + strings.Repeat("x", 40<<10) + "\n\ndata: y\n\n"
	for _, tc := range []struct {
		limit int64
		err   error
	}{{64 << 10, nil}, {32 << 10, ErrTooLarge}} {
		w := &largest{ResponseRecorder: httptest.NewRecorder()}
		r := &Response{Status: http.StatusOK, Kind: Events, Body: &lending{[]byte(stream)}}
		if err := r.Relay(w, tc.limit); !errors.Is(err, tc.err) {
			t.Errorf("limit %d: %v", tc.limit, err)
		}
		if tc.err == nil && w.Body.String() != stream || w.write > 16<<10 {
			t.Errorf("limit %d: %d bytes, %d at a time", tc.limit, w.Body.Len(), w.write)
		}
	}
}
