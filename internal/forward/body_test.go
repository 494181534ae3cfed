package forward

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestRefusedBodyIsAnswered: a client that sends more than is accepted reads the refusal, not a reset connection, also
// when the server's body was wrapped on its way.
func TestRefusedBodyIsAnswered(t *testing.T) {
	const limit = 1 << 10
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = struct{ io.ReadCloser }{r.Body}
		_, err := ReadBody(r, limit)
		var refused *BodyError
		if !errors.As(err, &refused) || !refused.Close {
			t.Errorf("%v", err)
			return
		}
		w.Header().Set("Connection", "close")
		http.Error(w, "too large", refused.Status)
		refused.Linger(w)
	}))
	defer server.Close()
	client := server.Client()
	for range 50 {
		response, err := client.Post(server.URL, "application/json", strings.NewReader(strings.Repeat(" ", 4<<20)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusRequestEntityTooLarge {
			t.Fatalf("status %d, %v", response.StatusCode, err)
		}
		response.Body.Close()
	}
}
