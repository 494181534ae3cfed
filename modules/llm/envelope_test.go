package llm_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestEnvelopes checks that errors are in the envelope of their address, whatever the client says it is; lists of
// models, which both APIs have at one address, in that of the client.
func TestEnvelopes(t *testing.T) {
	g := newGateway(t, "http://127.0.0.1:1", nil)
	for _, tc := range []struct {
		method, path string
		anthropic    bool
	}{
		{http.MethodPost, "/v1/chat/completions", false},
		{http.MethodPost, "/v1/responses", false},
		{http.MethodPost, "/v1/embeddings", false},
		{http.MethodPost, "/v1/messages", true},
		{http.MethodGet, "/v1/models/nothing", true},
	} {
		r, err := http.NewRequestWithContext(t.Context(), tc.method, g.url+base+tc.path, strings.NewReader(`{"model":"nothing"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "gate.example.com"
		r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + g.token}, "Anthropic-Version": {"2023-06-01"}}
		response, err := g.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusNotFound || strings.HasPrefix(string(body), `{"type":"error"`) != tc.anthropic {
			t.Errorf("%s: %d %s %v", tc.path, response.StatusCode, body, err)
		}
	}
}
