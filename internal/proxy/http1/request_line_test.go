package http1

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestPrepare checks the bytes of a request, and that they leave in one write when they fit into 16 KiB.
func TestPrepare(t *testing.T) {
	at := func(text string) *url.URL {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	for _, tc := range []struct {
		r    Request
		last bool
		want string
	}{
		{Request{URL: at("http://a.test")}, false, "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"},
		{Request{URL: at("http://a.test/b?"), Method: "HEAD"}, false, "HEAD /b? HTTP/1.1\r\nHost: a.test\r\n\r\n"},
		{Request{URL: at("http://a.test/b?c=d"), Method: "DELETE"}, true, "DELETE /b?c=d HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"},
		{Request{URL: at("http://a.test"), Method: "POST"}, false, "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n"},
		{Request{URL: at("http://a.test"), Method: "PUT"}, false, "PUT / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n"},
		{Request{URL: at("http://a.test"), Method: "PATCH"}, false, "PATCH / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n"},
		{Request{URL: at("http://a.test"), Method: "DELETE", Body: []byte("{}")}, false, "DELETE / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\n{}"},
		{
			Request{URL: at("http://a.test"), Fields: []Field{{"X", "2"}, {"Content-Length", "5"}, {"Host", "evil"}, {"User-Agent", "u"}, {"Trailer", "t"}, {"Accept", " a "}, {"X", "1"}, {"Transfer-Encoding", "chunked"}}}, false,
			"GET / HTTP/1.1\r\nHost: a.test\r\nUser-Agent: u\r\nAccept: a\r\nX: 2\r\nX: 1\r\n\r\n",
		},
	} {
		o, err := prepare(&tc.r, tc.last)
		if err != nil {
			t.Errorf("%q: %v", tc.want, err)
			continue
		}
		if string(*o.first) != tc.want || len(o.rest) > 0 {
			t.Errorf("got %q and %d bytes later, want %q", *o.first, len(o.rest), tc.want)
		}
		if room := map[bool]int{false: smallRequest, true: largeRequest}[len(tc.r.Body) > 0]; cap(*o.first) != room {
			t.Errorf("%q: a buffer of %d bytes, want %d", tc.want, cap(*o.first), room)
		}
		o.release()
	}
	o, err := prepare(&Request{URL: at("http://a.test"), Method: "POST", Body: make([]byte, largeRequest)}, false)
	if err != nil || len(*o.first) != largeRequest || !strings.HasPrefix(string(*o.first), "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 16384\r\n\r\n\x00") ||
		len(o.rest) != strings.Index(string(*o.first), "\x00") {
		t.Errorf("first %d bytes, then %d, %v", len(*o.first), len(o.rest), err)
	}
	o.release()
}

func TestHostHeader(t *testing.T) {
	for host, want := range map[string]string{
		"a.test": "a.test", "a.test:80": "a.test:80", "bücher.test": "xn--bcher-kva.test", "bücher.test:80": "xn--bcher-kva.test:80",
		"[::1]": "[::1]", "[::1]:80": "[::1]:80", "[fe80::1%eth0]": "[fe80::1]", "[fe80::1%25eth0]:81": "[fe80::1]:81", "[a%b%c]": "[a%b]", "[": "[", "a%b]": "a%b]", "[a%b": "[a%b",
		"": "", "a b": "", "a\r\nX: y": "", "\u00fc\x00": "", "xn--\u00fc": "",
	} {
		got, err := hostHeader(host)
		if bad := (*RequestError)(nil); got != want || errors.As(err, &bad) != (want == "") {
			t.Errorf("%q: %q, %v, want %q", host, got, err, want)
		}
	}
}

// TestHeaderRule checks that the owner of a header does not depend on its spelling, nor on its length.
func TestHeaderRule(t *testing.T) {
	for name, want := range map[string]headerOwner{
		"Host": ours, "Content-Length": ours, "Transfer-Encoding": ours, "Trailer": ours,
		"TE": theirs, "Expect": theirs, "Upgrade": theirs, "Connection": theirs, "Keep-Alive": theirs, "Proxy-Connection": theirs,
		"X": callers, "XY": callers, "Xost": callers, "Accept": callers, "X-Trace": callers, "Keep-Alove": callers, "X-Content-Type": callers, "X-Proxy-Connecto": callers,
		"Transfer-Encodong": callers, "": callers,
	} {
		for _, spelled := range []string{name, strings.ToLower(name), strings.ToUpper(name), http.CanonicalHeaderKey(name)} {
			if got := headerRule(spelled); got != want {
				t.Errorf("%s: %v, want %v", spelled, got, want)
			}
		}
	}
}
