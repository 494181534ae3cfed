package gateway_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/durward-gateway/durward/internal/gateway"
)

// TestServiceErrors checks the answer to each service error. Clients and their operators know these names and statuses.
func TestServiceErrors(t *testing.T) {
	for name, status := range map[gateway.ErrorName]int{
		"BadRequest": 400, "Unauthorized": 401, "Forbidden": 403, "ServerNotConnected": 403, "ServerNotFound": 404, "ConnectionNotFound": 404,
		"DirectoryNotFound": 404, "AgentNotFound": 404, "PolicyNotFound": 404, "ApprovalNotFound": 404, "NotFound": 404, "MethodNotAllowed": 405,
		"RequestTimeout": 408, "Conflict": 409, "PayloadTooLarge": 413, "UnsupportedMediaType": 415, "RateLimitExceeded": 429,
		"InternalServerError": 500, "OAuthConfigurationError": 500, "UpstreamError": 502, "Unavailable": 503, "LoopDetected": 508,
		"a name that nobody knows": 500,
	} {
		w := httptest.NewRecorder()
		gateway.WriteError(w, name, "It <failed>")
		wantAnswer(t, string(name), w, status, `{"error":"`+string(name)+`","message":"It <failed>"}`)
		retry := ""
		if status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable {
			retry = "5"
		}
		if got := w.Header().Get("Retry-After"); got != retry {
			t.Errorf("%s: Retry-After %q", name, got)
		}
	}
}

func TestServiceErrorWithDetails(t *testing.T) {
	w := httptest.NewRecorder()
	w.Header().Set("Retry-After", "17")
	(&gateway.ServiceError{Name: gateway.Unavailable, Message: "m", Details: map[string]any{"field": "f"}}).Write(w)
	wantAnswer(t, "details", w, 503, `{"error":"Unavailable","message":"m","details":{"field":"f"}}`)
	if got := w.Header().Get("Retry-After"); got != "17" {
		t.Errorf("Retry-After %q: the time that is known counts", got)
	}
}

func TestPlainAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		write  func(http.ResponseWriter)
		status int
		allow  string
		body   string
	}{
		"method": {func(w http.ResponseWriter) { gateway.WriteMethodNotAllowed(w, "GET, POST") }, 405, "GET, POST",
			`{"error":"MethodNotAllowed","message":"This address does not take that method; see Allow"}`},
		"address": {gateway.WriteNotFound, 404, "", `{"error":"NotFound","message":"There is nothing at this address"}`},
		"fault":   {gateway.WriteInternalError, 500, "", `{"error":"InternalServerError","message":"Something went wrong in the gateway"}`},
		"not JSON": {func(w http.ResponseWriter) { gateway.WriteJSON(w, 200, json.Number("x")) }, 500, "",
			`{"error":"InternalServerError","message":"Something went wrong in the gateway"}`},
	} {
		w := httptest.NewRecorder()
		tc.write(w)
		wantAnswer(t, name, w, tc.status, tc.body)
		if got := w.Header().Get("Allow"); got != tc.allow {
			t.Errorf("%s: Allow %q", name, got)
		}
	}
}

// wantAnswer compares an answer of the gateway's own. Nobody may cache one, nor take it for HTML.
func wantAnswer(t *testing.T, name string, w *httptest.ResponseRecorder, status int, body string) {
	t.Helper()
	if w.Code != status || w.Body.String() != body {
		t.Errorf("%s: %d %s\nwant %d %s", name, w.Code, w.Body, status, body)
	}
	for header, want := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if got := w.Header().Get(header); got != want {
			t.Errorf("%s: %s %q", name, header, got)
		}
	}
	if got := w.Header().Get("Content-Length"); got != strconv.Itoa(w.Body.Len()) {
		t.Errorf("%s: Content-Length %q of %d bytes", name, got, w.Body.Len())
	}
}
