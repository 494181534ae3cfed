package credential

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestPage: A10, A11, A17: nothing on the page that a browser comes back to is anybody's script, form or frame.
func TestPage(t *testing.T) {
	const hostile = `"><script>alert(1)</script>{{.}}<form action="https://evil.example">`
	w := httptest.NewRecorder()
	page{Status: http.StatusOK, Title: hostile, Text: hostile, Holder: &holder{User: hostile, Organization: hostile, Token: hostile}}.write(w)
	body := w.Body.String()
	for _, bad := range []string{"<script", `action="https://evil`, "</title><"} {
		if strings.Contains(body, bad) {
			t.Errorf("the page holds %s:\n%s", bad, body)
		}
	}
	if n := strings.Count(body, "<form"); n != 1 || !strings.Contains(body, `<form method="post" action="/api/oauth/undo">`) {
		t.Errorf("%d forms:\n%s", n, body)
	}
	policy := w.Header().Get("Content-Security-Policy")
	for _, part := range []string{"default-src 'none'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'", "style-src 'sha256-" + styleDigest() + "'"} {
		if !strings.Contains(policy, part) {
			t.Errorf("%s is not in %s", part, policy)
		}
	}
	for name, want := range map[string]string{
		"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		"Content-Type": "text/html; charset=utf-8",
	} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if strings.Contains(body, "style=") || strings.Contains(body, "http://") || strings.Contains(body, "src=") {
		t.Errorf("the page needs what its policy forbids:\n%s", body)
	}
}
