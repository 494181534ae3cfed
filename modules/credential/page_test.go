package credential

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestPage checks that nothing on the page that a browser comes back to is anybody's script or form (A10, A11, A17).
func TestPage(t *testing.T) {
	const hostile = `"><script>alert(1)</script>{{.}}<form action="https://evil.example">`
	w := httptest.NewRecorder()
	page{Status: http.StatusOK, Title: hostile, Text: hostile, Holder: &holder{User: hostile, Organization: hostile, Token: hostile}}.write(w, nil)
	body := w.Body.String()
	for _, bad := range []string{"<script", `action="https://evil`, "</title><"} {
		if strings.Contains(body, bad) {
			t.Errorf("the page holds %s:\n%s", bad, body)
		}
	}
	if n := strings.Count(body, "<form"); n != 1 || !strings.Contains(body, `<form method="post" action="/api/oauth/undo">`) {
		t.Errorf("%d forms:\n%s", n, body)
	}
	if w.Code != http.StatusOK || w.Header().Get("Content-Security-Policy") == "" || w.Header().Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("status %d, header %v", w.Code, w.Header())
	}
}
