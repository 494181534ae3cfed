package connection

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

func TestReturnURL(t *testing.T) {
	list, err := parseReturnURLs([]string{"https://app.example.test/connected", "http://127.0.0.1:3000", "https://Other.example.test:443/"}, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, ok := range []string{
		"https://app.example.test/connected", "https://app.example.test/connected/", "https://app.example.test/connected/x?y=z",
		"https://APP.example.test:443/connected", "http://127.0.0.1:3000", "http://127.0.0.1:3000/any?a=..", "https://other.example.test/",
		"https://app.example.test/connected?to=" + strings.Repeat("a", 1900), "https://app.example.test/connected/a%20b;c",
		"https://app.example.test/connected?" + strings.Repeat("a", maxReturnURL-len("https://app.example.test/connected?")),
	} {
		if err := list.check(ok); err != nil {
			t.Errorf("%.80s: %v", ok, err)
		}
	}
	for _, bad := range []string{
		"", "/connected", "//app.example.test/connected", "app.example.test/connected", "javascript:alert(1)", "data:text/html,x",
		"http://app.example.test/connected", "https://app.example.test", "https://app.example.test/", "https://app.example.test/connectedly",
		"https://app.example.test/Connected", "https://app.example.test:444/connected", "https://app.example.test.evil.test/connected",
		"https://evil.test/https://app.example.test/connected", "https://app.example.test@evil.test/connected",
		"https://user@app.example.test/connected", "https://:@app.example.test/connected",
		"https://app.example.test\\@evil.test/connected", "https://evil.test\\.app.example.test/connected",
		"https://app.example.test/connected/../admin", "https://app.example.test/connected/%2e%2e/admin",
		"https://app.example.test/connected/.%2E/admin", "https://app.example.test/connected/..%2fadmin",
		"https://app.example.test/connected/..;/admin", "https://app.example.test/connected%2f..%2fadmin",
		"https://app.example.test/connected/%252e%252e/admin", "https://app.example.test/connected/..%5cadmin",
		"https://app.example.test/connected#x", "https://app.example.test/connected#", "https://app.example.test/connected\r\nLocation: x",
		"https://app.example.test/connected%0d%0aX:y", "https://app.example.test/connected\t", " https://app.example.test/connected",
		"https://app.example.test/connected\x00", "https://app.example.test/connected/é", "https://*.example.test/connected",
		"https://sub.app.example.test/connected", "http://127.0.0.1:3000@evil.test/", "http://127.0.0.1:30000/", "http://127.0.0.1/",
		"https:/app.example.test/connected", "https:app.example.test/connected", "https://app.example.test:/connected",
		"https://app.example.test%2eevil.test/connected", "https://app.example.test/connected?" + strings.Repeat("a", 2048),
		"https://app.example.test/connected?" + strings.Repeat("a", maxReturnURL+1-len("https://app.example.test/connected?")),
		"https://app.example.test/connected/a b", "https://app.example.test/connected?x=\\@evil.test", "https://app.example.test/connected/%7f",
		"https://app.example.test/connected/a%2Fb", "https://app.example.test/connected/a%2fb", "https://app.example.test/connected/100%25",
		"https://app.example.test/connected/%01", "https://app.example.test/connected/%5cevil.test", "https://app.example.test/connected/.",
		"https://app.example.test/connected/.;x/y", "https://:443/connected", "https:///connected", "https:app.example.test",
	} {
		var e *ReturnURLError
		if err := list.check(bad); !errors.As(err, &e) || !errors.Is(err, ErrReturnURL) {
			t.Errorf("A08 %.80q is allowed", bad)
		}
	}
	for _, entry := range []string{
		"", "*", "https://*.example.test/", "https://a.test/*", "https://a.test/?x=y", "https://a.test/?", "ftp://a.test/", "a.test", "https://u@a.test/",
		"https://a_b.test/", "https://a%25b.test/", "https:a.test", "https://:443/", "https://a.test:/", "https://a.test/#x", "https://a.test/\x7f",
	} {
		if err := CheckReturnURLs([]string{"https://a.test", entry}); err == nil {
			t.Errorf("entry %q is taken", entry)
		}
	}
	if err := CheckReturnURLs([]string{"https://a.test", "http://b.test:8080/x/"}); err != nil {
		t.Error(err)
	}
	if err := new(returnURLs).check("https://app.example.test/"); err == nil {
		t.Error("an empty list allows something")
	}
}

func TestWithOutcome(t *testing.T) {
	for _, tc := range []struct {
		in   string
		ok   bool
		want string
	}{
		{"", true, ""},
		{"https://a.test/x", true, "https://a.test/x?status=connected&server=demo"},
		{"https://a.test/x?y=z", false, "https://a.test/x?y=z&status=error&server=demo"},
	} {
		if got := WithOutcome(tc.in, tc.ok, "demo"); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

// FuzzReturnURL checks that each allowed address is at the allowed origin and path in every reading.
func FuzzReturnURL(f *testing.F) {
	list, err := parseReturnURLs([]string{"https://app.example.test/connected"}, false)
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{
		"https://app.example.test/connected/a?b=c", "https://app.example.test/connected/..%2f", "https://app.example.test\\@evil.test/",
		"https://app.example.test/connected/%2e%2e/x", "https://u:p@app.example.test/connected",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		if list.check(raw) != nil {
			return
		}
		u, err := url.Parse(WithOutcome(raw, true, "demo"))
		if err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		clean := u.JoinPath() // resolves dot segments
		if u.Scheme != "https" || u.User != nil || originOf(u) != "https://app.example.test" ||
			(clean.Path != "/connected" && !strings.HasPrefix(clean.Path, "/connected/")) ||
			!strings.HasPrefix(strings.ToLower(raw), "https://app.example.test") || u.Query().Get("server") != "demo" && !strings.Contains(raw, "server") {
			t.Errorf("%q is allowed", raw)
		}
	})
}

func TestLoopbackReturnURLs(t *testing.T) {
	list, err := parseReturnURLs([]string{"https://gate.example.test"}, true)
	if err != nil {
		t.Fatal(err)
	}
	for raw, allowed := range map[string]bool{
		"http://127.0.0.1:5173/done": true, "http://localhost/": true, "https://[::1]:8443/": true, "https://gate.example.test/x": true,
		"http://127.0.0.1.evil.example/": false, "http://localhost.evil.example/": false, "https://evil.example/": false, "http://0x7f.1/": false,
	} {
		if got := list.check(raw) == nil; got != allowed {
			t.Errorf("%s: allowed = %v, want %v", raw, got, allowed)
		}
	}
}
