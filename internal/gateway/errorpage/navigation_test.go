package errorpage_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/errorpage"
)

const chromiumAccept = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7"

// TestNavigates checks that browsers get pages, and every client that could be a program keeps its JSON (W32).
func TestNavigates(t *testing.T) {
	for name, test := range map[string]struct {
		method string
		header string // fields, one a line
		want   bool
	}{
		"Chromium":                       {"GET", "Accept: " + chromiumAccept + "\nSec-Fetch-Mode: navigate\nSec-Fetch-Dest: document", true},
		"Chromium without encryption":    {"GET", "Accept: " + chromiumAccept, true},
		"Safari":                         {"GET", "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true},
		"upper case":                     {"GET", "Accept: text/html;level=1, */*", true},
		"a form":                         {"POST", "Accept: " + chromiumAccept + "\nSec-Fetch-Mode: navigate", true},
		"no Accept":                      {"GET", "", false},
		"curl":                           {"GET", "Accept: */*", false},
		"a streamable client's stream":   {"GET", "Accept: text/event-stream", false},
		"one that takes anything at all": {"GET", "Accept: text/html, text/event-stream", false},
		"one that reads JSON":            {"GET", "Accept: application/json, text/html;q=0.1", false},
		"HTML weighed with nothing":      {"GET", "Accept: text/html;q=0.0, */*", false},
		"a script of a page":             {"GET", "Accept: text/html\nSec-Fetch-Mode: cors", false},
		"a token":                        {"GET", "Accept: text/html\nAuthorization: Bearer x", false},
		"a key":                          {"GET", "Accept: text/html\nX-Api-Key: x", false},
		"a session":                      {"GET", "Accept: text/html\nMcp-Session-Id: x", false},
		"a revision":                     {"GET", "Accept: text/html\nMCP-Protocol-Version: 2025-06-18", false},
		"another method":                 {"DELETE", "Accept: text/html", false},
		"two Accepts":                    {"GET", "Accept: text/html\nAccept: text/event-stream", false},
		"a name that begins like it":     {"GET", "Accept: text/html+xml", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(test.method, "/mcp/demo", http.NoBody)
			for line := range strings.Lines(test.header) {
				field, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
				r.Header.Add(field, value)
			}
			if got := errorpage.Navigates(r); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestErrorPage checks that an error is a page for a browser, with the header that it had, and JSON for everybody else.
func TestErrorPage(t *testing.T) {
	answer := func(accept string, serve http.HandlerFunc) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		r.Header.Set("Accept", accept)
		recorder := httptest.NewRecorder()
		w, finish := errorpage.ForBrowser(recorder, r, nil)
		if again, _ := errorpage.ForBrowser(w, r, nil); again != w {
			t.Error("it is wrapped twice")
		}
		serve(w, r)
		finish()
		return recorder
	}
	for name, test := range map[string]struct {
		serve http.HandlerFunc
		want  []string
	}{
		"401": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			gateway.WriteError(w, gateway.Unauthorized, "A bearer token is needed")
		}, []string{"This address is for programs", "A bearer token is needed.", "a mistake in the address", `href="/"`, "401 Unauthorized"}},
		"403": {func(w http.ResponseWriter, _ *http.Request) {
			gateway.WriteError(w, gateway.Forbidden, "Not <b>you</b>")
		}, []string{"Not &lt;b&gt;you&lt;/b&gt;."}},
		"404": {func(w http.ResponseWriter, _ *http.Request) { gateway.WriteNotFound(w) }, []string{"There is no such page"}},
		"405": {func(w http.ResponseWriter, _ *http.Request) { gateway.WriteMethodNotAllowed(w, "GET") }, []string{"not opened like this"}},
		"429": {func(w http.ResponseWriter, _ *http.Request) { gateway.WriteError(w, gateway.RateLimitExceeded, "x") }, []string{"Wait a minute"}},
		"500": {func(w http.ResponseWriter, _ *http.Request) { gateway.WriteInternalError(w) }, []string{"cannot do this at the moment"}},
		"503": {func(w http.ResponseWriter, _ *http.Request) { gateway.WriteError(w, gateway.Unavailable, "y") }, []string{"Try again in a moment"}},
		"hostile": {func(w http.ResponseWriter, _ *http.Request) {
			gateway.WriteError(w, gateway.BadRequest, "a\u202eb<script>")
		}, []string{"a⟨U+202E⟩b&lt;script&gt;"}},
	} {
		t.Run(name, func(t *testing.T) {
			page, plain := answer(chromiumAccept, test.serve), answer("*/*", test.serve)
			if page.Code != plain.Code || plain.Header().Get("Content-Type") != "application/json" || page.Header().Get("Content-Type") != "text/html; charset=utf-8" {
				t.Fatalf("%d %v, %d %v", page.Code, page.Header(), plain.Code, plain.Header())
			}
			for _, text := range test.want {
				if !strings.Contains(strings.ReplaceAll(page.Body.String(), "&#43;", "+"), text) {
					t.Errorf("the page does not show %q: %s", text, page.Body)
				}
			}
			for name := range plain.Header() {
				if name != "Content-Type" && name != "Content-Length" && page.Header().Get(name) != plain.Header().Get(name) {
					t.Errorf("%s: %q", name, page.Header().Get(name))
				}
			}
			if page.Header().Get("Content-Security-Policy") == "" || strings.Contains(page.Body.String(), "<script") {
				t.Errorf("%v %s", page.Header(), page.Body)
			}
		})
	}
	for name, serve := range map[string]http.HandlerFunc{
		"an answer": func(w http.ResponseWriter, _ *http.Request) { gateway.WriteJSON(w, http.StatusOK, "fine") },
		"another error": func(w http.ResponseWriter, _ *http.Request) {
			gateway.WriteJSON(w, 422, map[string]any{"detail": []int{1}})
		},
		"readiness, with its detail": func(w http.ResponseWriter, _ *http.Request) { gateway.StoreNotReady("it is away").Write(w) },
		"a long one": func(w http.ResponseWriter, _ *http.Request) {
			gateway.WriteError(w, gateway.BadRequest, strings.Repeat("long ", 10_000))
		},
		"text": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) },
	} {
		t.Run(name, func(t *testing.T) {
			shown, plain := answer(chromiumAccept, serve), answer("*/*", serve)
			if shown.Code != plain.Code || shown.Body.String() != plain.Body.String() || shown.Header().Get("Content-Type") != plain.Header().Get("Content-Type") {
				t.Errorf("%d %s", shown.Code, shown.Body)
			}
		})
	}
}
