package webpage

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/api/visible"
)

// TestPage checks A10, A11, A17, M17: no text on a page becomes a script, form or frame.
func TestPage(t *testing.T) {
	const hostile = `"><script>alert(1)</script>{{.}}<form action="https://evil.example">`
	page := MustParse(`<p title="{{.}}">{{.}}</p>`)
	w := httptest.NewRecorder()
	if err := page.Write(w, http.StatusTeapot, hostile, hostile); err != nil {
		t.Fatal(err)
	}
	body := w.Body.String()
	for _, bad := range []string{"<script", "<form", "</title><", " style=", "http://", " src="} {
		if strings.Contains(body, bad) {
			t.Errorf("the page holds %s:\n%s", bad, body)
		}
	}
	for _, part := range []string{"default-src 'none'", "form-action 'self'", "base-uri 'none'", "frame-ancestors 'none'", "style-src 'sha256-"} {
		if got := w.Header().Get("Content-Security-Policy"); !strings.Contains(got, part) || strings.Contains(got, "unsafe") {
			t.Errorf("%s is not in %s", part, got)
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
	if w.Code != http.StatusTeapot || !strings.Contains(body, "<style>"+style+"</style>") {
		t.Errorf("status %d: %s", w.Code, body)
	}
}

// TestTimes checks that a page with times has one script, from an address of the same site. No inline script may run,
// and other pages have none.
func TestTimes(t *testing.T) {
	const address = "/here/times.js"
	w := httptest.NewRecorder()
	if err := MustParse(`<time datetime="2026-11-26T00:00:00Z">{{.}}</time>`).Times(address).Write(w, http.StatusOK, "t", "<script>alert(1)</script>"); err != nil {
		t.Fatal(err)
	}
	if body := w.Body.String(); strings.Count(body, "<script") != 1 || !strings.Contains(body, `<script src="`+address+`" defer></script>`) {
		t.Errorf("the page's scripts are not the one for times:\n%s", body)
	}
	scripts := regexp.MustCompile(`; script-src [^;]*`)
	if csp := w.Header().Get("Content-Security-Policy"); scripts.FindString(csp) != "; script-src 'self'" || !strings.Contains(csp, "default-src 'none'") {
		t.Errorf("the policy is %s", csp)
	}
	w = httptest.NewRecorder()
	if err := MustParse(`{{.}}`).Write(w, http.StatusOK, "t", "no times"); err != nil {
		t.Fatal(err)
	}
	if csp := w.Header().Get("Content-Security-Policy"); scripts.MatchString(csp) || strings.Contains(w.Body.String(), "<script") {
		t.Errorf("a page without times has a script, or may run one: %s\n%s", csp, w.Body)
	}
}

// TestWriteTimes checks that browsers accept the script, ask for it again and are told that it is the same.
func TestWriteTimes(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/here/times.js", http.NoBody)
	WriteTimes(w, r)
	h := w.Header()
	if w.Code != http.StatusOK || w.Body.String() != string(timesScript) || h.Get("Content-Type") != "text/javascript; charset=utf-8" ||
		h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-cache" {
		t.Errorf("%d %v\n%s", w.Code, h, w.Body)
	}
	r.Header.Set("If-None-Match", h.Get("Etag"))
	w = httptest.NewRecorder()
	if WriteTimes(w, r); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("asked again: %d\n%s", w.Code, w.Body)
	}
}

func TestPageThatCannotBeMade(t *testing.T) {
	w := httptest.NewRecorder()
	if err := MustParse(`{{.Nothing}}`).Write(w, http.StatusOK, "t", 1); err == nil || w.Body.Len() > 0 || len(w.Header()) > 0 {
		t.Errorf("%v, %v: %s", err, w.Header(), w.Body)
	}
}

func shown(pieces []Piece) string {
	var out strings.Builder
	for _, p := range pieces {
		if p.Quoted {
			out.WriteString("<" + p.Text + ">")
		} else {
			out.WriteString(p.Text)
		}
	}
	return out.String()
}

func TestJSON(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: `{}`, `{ }`: `{}`, `[]`: `[]`, ``: ``,
		`{"a":9007199254740993,"b":[1.0,true,null],"c":{}}`: "{\n  <\"a\">: 9007199254740993,\n  <\"b\">: [\n    1.0,\n    true,\n    null\n  ],\n  <\"c\">: {}\n}",
		`{"a":"x\"}, \\"}`:               "{\n  <\"a\">: <\"x\\\"}, \\\\\">\n}",
		`{"a\u202e":"` + "\u202e" + `"}`: "{\n  <\"a\\u202e\">: <\"⟨U+202E⟩\">\n}",
	} {
		pieces, whole := JSON([]byte(text), 1000)
		if diff := cmp.Diff(want, shown(pieces)); diff != "" || !whole {
			t.Errorf("%s: whole %v\n%s", text, whole, diff)
		}
	}
}

// TestJSONStops: M17: an argument of a mebibyte, or one that is deeply nested, makes no page of a mebibyte.
func TestJSONStops(t *testing.T) {
	for name, text := range map[string]string{
		"long strings": `["` + strings.Repeat(strings.Repeat("é", 1<<16)+`","`, 16) + `"]`,
		"many members": `[` + strings.Repeat("1,", 1<<20) + `1]`,
		"deep":         strings.Repeat("[", 1<<16) + strings.Repeat("]", 1<<16),
		"invisible":    `["` + strings.Repeat(strings.Repeat("\u200b", 1<<16)+`","`, 16) + `"]`,
	} {
		pieces, whole := JSON([]byte(text), 8<<10)
		if size := len(shown(pieces)); whole || size > 64<<10 || size < 8<<10 {
			t.Errorf("%s: %d bytes, whole %v", name, size, whole)
		}
		if !utf8.ValidString(shown(pieces)) || strings.Contains(shown(pieces), "⟨0x") {
			t.Errorf("%s was cut inside a character", name)
		}
	}
}

// TestJSONLongString: M17: what follows a long string is seen, also when the string is spelled out in more than its bytes.
func TestJSONLongString(t *testing.T) {
	for _, c := range []string{"é", "\u200b"} {
		long := strings.Repeat(c, 1<<20)
		pieces, whole := JSON([]byte(`{"a":"`+long+`","z":"rm -rf"}`), 8<<10)
		text := shown(pieces)
		if whole || !strings.HasSuffix(text, ",\n  <\"z\">: <\"rm -rf\">\n}") {
			t.Errorf("whole %v: %s", whole, text[max(0, len(text)-100):])
		}
		cut := pieces[3]
		if n := strings.Count(cut.Text, visible.Text(c)); len(cut.Text) > 2<<10 || 1+n*len(c)+cut.Omitted != len(long)+2 {
			t.Errorf("%d are shown and %d bytes are not", n, cut.Omitted)
		}
	}
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,{"b":"c\\\""}],"d":{}}`, `[[],{},"é",-1e5]`, `"\`, `{"a"`, "\xff", `{ }}`} {
		f.Add([]byte(seed), 50)
	}
	f.Fuzz(func(t *testing.T, text []byte, limit int) {
		if limit < 0 {
			return
		}
		pieces, whole := JSON(text, limit)
		var out strings.Builder
		for _, p := range pieces {
			out.WriteString(p.Text)
		}
		if plain := strings.ReplaceAll(out.String(), "\n", ""); visible.Text(plain) != plain {
			t.Fatalf("%q is laid out as %q", text, out.String())
		}
		var was, is any
		if !whole || json.Unmarshal(text, &was) != nil || strings.Contains(out.String(), "⟨") {
			return
		}
		if err := json.Unmarshal([]byte(out.String()), &is); err != nil || !cmp.Equal(was, is) {
			t.Fatalf("%q is laid out as %q: %v", text, out.String(), err)
		}
	})
}
