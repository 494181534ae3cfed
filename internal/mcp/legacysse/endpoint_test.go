package legacysse

import (
	"errors"
	"net/url"
	"strings"
	"testing"
)

func parsed(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestResolve(t *testing.T) {
	const server = "https://Up.example/base/sse?fixed=1"
	for _, tc := range []struct{ name, announced, want string }{
		{"path", "/messages?sessionId=1", "https://Up.example/messages?sessionId=1"},
		{"relative", "messages?sessionId=1", "https://Up.example/base/messages?sessionId=1"},
		{"query only", "?sessionid=1", "https://Up.example/base/sse?sessionid=1"},
		{"absolute", "https://up.example/messages", "https://Up.example/messages"},
		{"absolute with the scheme's port", "https://UP.EXAMPLE:443/messages", "https://Up.example/messages"},
		{"blanks around", " /messages ", "https://Up.example/messages"},
		{"dots", "../../../a/./b/../c", "https://Up.example/a/c"},
		{"fragment", "/messages#part", "https://Up.example/messages"},
		{"escapes stay", "/m%2f%0d%0a?x=%20", "https://Up.example/m%2f%0d%0a?x=%20"},
		{"backslashes are a path", `/\evil.example/`, `https://Up.example/%5Cevil.example/`},
		{"the longest", "/" + strings.Repeat("a", MaxEndpoint-len("https://Up.example/")), "https://Up.example/" + strings.Repeat("a", MaxEndpoint-len("https://Up.example/"))},

		{"nothing", "", ""},
		{"blanks", "  ", ""},
		{"another host", "https://evil.example/messages", ""},
		{"another host without scheme", "//evil.example/messages", ""},
		{"a longer host", "https://up.example.evil.example/", ""},
		{"another port", "https://up.example:8443/messages", ""},
		{"another scheme", "http://up.example/messages", ""},
		{"userinfo", "https://user:password@up.example/messages", ""},
		{"userinfo that looks like the host", "https://up.example@evil.example/", ""},
		{"script", "javascript:alert(1)", ""},
		{"opaque", "https:messages", ""},
		{"file", "file:///etc/passwd", ""},
		{"no host", "https:///messages", ""},
		{"two lines", "/messages\nhttps://evil.example", ""},
		{"CR", "/messages\r", "https://Up.example/messages"}, // a blank at the end
		{"CR inside", "/mess\rages", ""},
		{"NUL", "/messages\x00", ""},
		{"not ASCII", "/m\u00fcll", ""},
		{"blank inside", "/a b", ""},
		{"not a URI", "/%zz", ""},
		{"10 KB", "/" + strings.Repeat("a", 10_000), ""},
		{"too long once resolved", "/" + strings.Repeat("a", MaxEndpoint-1), ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Resolve(parsed(t, server), tc.announced)
			if tc.want == "" {
				if !errors.Is(err, ErrEndpoint) || got != nil {
					t.Errorf("%v, %v", got, err)
				}
				return
			}
			if err != nil || got.String() != tc.want {
				t.Errorf("%v, %v; want %s", got, err, tc.want)
			}
		})
	}
}

func TestSameOrigin(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"http://a:80/x", "http://A/y", true},
		{"http://[::1]:8080/x", "http://[::1]:8080/y", true},
		{"https://a", "https://a:443", true},
		{"http://a", "https://a", false},
		{"http://a:443", "https://a:443", false},
		{"http://a", "http://a:8080", false},
		{"http://a", "http://b", false},
		{"http://a", "http://a.", false},
		{"", "", false},
		{"ftp://a", "ftp://a", false},
	} {
		if got := SameOrigin(parsed(t, tc.a), parsed(t, tc.b)); got != tc.want {
			t.Errorf("%s and %s: %v", tc.a, tc.b, got)
		}
	}
}

// FuzzResolve checks that an accepted endpoint is always at the server, whatever is announced.
func FuzzResolve(f *testing.F) {
	for _, seed := range []string{"/messages?s=1", "//evil.example", `/\evil`, "https://up.example:443@evil", "a:b", "?", "#", "http:///x", "../..", "%2e%2e/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, announced string) {
		server := parsed(t, "https://up.example/base/sse")
		u, err := Resolve(server, announced)
		if err != nil {
			if !errors.Is(err, ErrEndpoint) {
				t.Fatal(err)
			}
			return
		}
		text := u.String()
		again, err := url.Parse(text)
		if err != nil || again.Scheme != "https" || again.Host != "up.example" || again.User != nil || again.Fragment != "" || len(text) > MaxEndpoint || !visible(text) {
			t.Fatalf("%q became %q: %v", announced, text, err)
		}
		if !SameOrigin(server, again) {
			t.Fatalf("%q became %q, which is elsewhere", announced, text)
		}
	})
}
