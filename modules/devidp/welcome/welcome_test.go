package welcome

import (
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// What the banner tells a newcomer, the page does too.
func TestPageHoldsTheBannersFacts(t *testing.T) {
	facts := New("http://127.0.0.1:18080", "/home/a <b>/data")
	w := httptest.NewRecorder()
	facts.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") || w.Header().Get("Content-Security-Policy") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if strings.Contains(w.Body.String(), "<b>") {
		t.Error("the data directory's name is not escaped")
	}
	page, banner := html.UnescapeString(w.Body.String()), facts.Banner()
	shown := []string{
		facts.Data, facts.Command + " tour --url " + facts.URL, facts.Command + " token --as alice@example.test --url " + facts.URL,
		"claude mcp add --transport http demo " + facts.URL + "/mcp/demo", ".vscode/mcp.json", ".cursor/mcp.json", facts.URL + "/api/servers/demo/connect",
		facts.URL + "/sse/demo", facts.URL + "/api/llm-gateway/v1", facts.URL + "/dev/idp", "/api/llm-gateway/user/api-keys",
	}
	for _, user := range facts.Users {
		shown = append(shown, user.Email, user.About)
	}
	for _, fact := range shown {
		if !strings.Contains(page, fact) {
			t.Errorf("the page lacks %q", fact)
		}
		if !strings.Contains(banner, fact) {
			t.Errorf("the banner lacks %q", fact)
		}
	}
	if banner := New(DefaultURL, "data").Banner(); strings.Contains(banner, "--url") {
		t.Error("the other commands find the usual address by themselves")
	}
}
