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
		if !errors.As(err, &refused) {
			t.Errorf("%v", err)
			return
		}
		refused.Answer(w, func() { http.Error(w, "too large", refused.Status) })
	}))
	defer server.Close()
	client := server.Client()
	for range 50 {
		response, err := client.Post(server.URL, "application/json", strings.NewReader(strings.Repeat(" ", 4<<20)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusRequestEntityTooLarge || !response.Close {
			t.Fatalf("status %d, close %v, %v", response.StatusCode, response.Close, err)
		}
		response.Body.Close()
	}
}
