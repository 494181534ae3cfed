package welcome

import (
	"html"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The page has everything; the banner is one screen of it.
func TestPageAndBanner(t *testing.T) {
	facts := New("http://127.0.0.1:18080", "/home/a <b>/data")
	w := httptest.NewRecorder()
	facts.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") || w.Header().Get("Content-Security-Policy") == "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	if strings.Contains(w.Body.String(), "<b>") {
		t.Error("the data directory's name is not escaped")
	}
	page, banner := html.UnescapeString(w.Body.String()), facts.Banner(false)
	both := []string{
		facts.Data, facts.Command + " tour --url " + facts.URL, "claude mcp add --transport http demo " + facts.URL + "/mcp/demo",
		facts.URL + "/api/llm-gateway/v1", facts.URL + "/api/servers",
	}
	for _, user := range facts.Users {
		both = append(both, user.Email, user.About)
	}
	for _, fact := range both {
		if !strings.Contains(banner, fact) {
			t.Errorf("the banner lacks %q", fact)
		}
	}
	for _, fact := range append(both,
		facts.Command+" token --as alice@example.test --url "+facts.URL, facts.Command+" connect demo --as alice@example.test --url "+facts.URL, ".vscode/mcp.json",
		".cursor/mcp.json", "codex mcp add demo", "mcp-remote", facts.URL+"/sse/demo", facts.URL+"/dev/idp", "/api/llm-gateway/user/api-keys",
		`href="/mcp/demo"`, `href="/connect/demo"`, `href="/approvals"`, `href="/readyz"`, `href="/healthz"`, `href="/login?return=`, "/metrics",
	) {
		if !strings.Contains(page, fact) {
			t.Errorf("the page lacks %q", fact)
		}
	}
	if lines := strings.Count(banner, "\n"); lines > 26 || !strings.Contains(banner, "Open "+facts.URL+" in a browser") || strings.Contains(banner, "\x1b") {
		t.Errorf("%d lines:\n%s", lines, banner)
	}
	if banner := facts.Banner(true); !strings.Contains(banner, "\x1b[36m"+facts.URL+"\x1b[0m") {
		t.Errorf("no colour: %q", banner)
	}
	if banner := New(DefaultURL, "data").Banner(false); strings.Contains(banner, "--url") {
		t.Error("the other commands find the usual address by themselves")
	}
}
