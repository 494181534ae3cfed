package mcp

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/internal/proxy/forward"
)

// TestReceipts checks that a message without a request, and the end of a session, are taken whatever the upstream
// writes beside its status, and none of that reaches the client.
func TestReceipts(t *testing.T) {
	const notification = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	asked := session.NewQuestions(plainMACs{}).Mark([]byte(`"s1"`), "", session.Binding{})
	answer := `{"jsonrpc":"2.0","id":` + string(asked) + `,"result":{}}`
	for _, tc := range []struct {
		name, method, body string
		status             int
		length             int64 // -1: chunked, or until the connection ends
		label, text        string
		want               int
	}{
		{"W1 an empty chunked 202", http.MethodPost, notification, 202, -1, "", "", 202},
		{"W1 to an answer of the client's", http.MethodPost, answer, 202, -1, "", "", 202},
		{"W2 a word", http.MethodPost, notification, 202, 8, "text/plain", "Accepted", 202},
		{"W2 a word without a type", http.MethodPost, notification, 202, -1, "", "Accepted", 202},
		{"W2 a quoted word", http.MethodPost, notification, 202, 10, "application/json", `"Accepted"`, 202},
		{"W2 200", http.MethodPost, notification, 200, 0, "", "", 202},
		{"W2 200, chunked", http.MethodPost, notification, 200, -1, "application/json", "", 202},
		{"W2 200 and null", http.MethodPost, notification, 200, 4, "application/json", "null", 202},
		{"W2 200 and {}", http.MethodPost, notification, 200, -1, "application/json", "{}", 202},
		{"W2 204", http.MethodPost, notification, 204, 0, "", "", 202},
		{"W2 a page", http.MethodPost, notification, 200, -1, "text/html", "<p>thanks", 202},
		{"W2 what nobody has asked for", http.MethodPost, notification, 200, -1, "application/json", `{"jsonrpc":"2.0","id":7,"result":{"tools":[]}}`, 202},
		{"W2 a result without an id", http.MethodPost, notification, 200, -1, "application/json", `{"jsonrpc":"2.0","result":{}}`, 202},
		{"W2 an error without an id", http.MethodPost, notification, 200, -1, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`, 202},
		{"W2 an event stream", http.MethodPost, notification, 200, -1, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n", 202},
		{"W3 the end of a session", http.MethodDelete, "", 200, -1, "", "", 200},
		{"W3 without a body", http.MethodDelete, "", 204, 0, "", "", 204},
		{"W3 accepted", http.MethodDelete, "", 202, -1, "", "", 204},
		{"W3 refused", http.MethodDelete, "", 400, -1, "", "", 400},
		{"W3 not offered", http.MethodDelete, "", 405, 0, "", "", 405},
		{"W3 ended already", http.MethodDelete, "", 404, 0, "", "", 404},
		{"W3 not offered, in words", http.MethodDelete, "", 405, 22, "application/json", `{"detail":"not there"}`, 405},
		{"a refusal is none", http.MethodPost, notification, 400, 3, "text/plain", "bad", 400},
		{"a failure is none", http.MethodPost, notification, 500, -1, "", "", 502},
		{"a request needs its answer", http.MethodPost, listTools, 202, -1, "", "", 502},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLegacy(forward.Limits{}, func(*http.Request) *http.Response {
				response := &http.Response{StatusCode: tc.status, ContentLength: tc.length, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(tc.text))}
				if tc.label != "" {
					response.Header.Set("Content-Type", tc.label)
				}
				return response
			})
			w, aborted := l.send(t, tc.method, "/mcp/demo", tc.body, "Accept", "application/json, text/event-stream")
			if aborted || w.Code != tc.want {
				t.Fatalf("%d %s, aborted %v, want %d", w.Code, w.Body, aborted, tc.want)
			}
			if w.Code < 300 && (w.Body.Len() > 0 || w.Header().Get("Content-Type") != "") {
				t.Errorf("passed on: %q of type %q", w.Body, w.Header().Get("Content-Type"))
			}
		})
	}
}

// TestReceiptThatNeverComes checks that a server that takes a notification and never answers it, as some wait for an
// answer of their own to send, holds its client for the time that headers have, and no longer (W1).
func TestReceiptThatNeverComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const headers = 30 * time.Second
		l := newLegacy(forward.Limits{}, nil)
		l.Forwarder = forward.New(forward.Over(roundTrip(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})), forward.Limits{HeaderTimeout: headers})
		began := time.Now()
		w, aborted := l.send(t, http.MethodPost, "/mcp/demo", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Accept", "application/json, text/event-stream")
		if took := time.Since(began); aborted || w.Code != http.StatusBadGateway || took != headers {
			t.Errorf("%d %s after %s, aborted %v", w.Code, w.Body, took, aborted)
		}
	})
}
