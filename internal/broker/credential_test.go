package broker

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

func TestApply(t *testing.T) {
	for name, tc := range map[string]struct {
		kind   storage.Provider
		params storage.AuthParams
		value  string
		header http.Header
		query  string
		want   http.Header
		wantQ  string
	}{
		"oauth2":                {kind: storage.ProviderOAuth2, value: "t", want: http.Header{"Authorization": {"Bearer t"}}},
		"replaces the client's": {kind: storage.ProviderOAuth2, value: "t", header: http.Header{"Authorization": {"Bearer mine"}, "authorization": {"x"}}, want: http.Header{"Authorization": {"Bearer t"}}},
		"api key":               {kind: storage.ProviderAPIKey, value: "k", want: http.Header{"X-Api-Key": {"k"}}},
		"api key with prefix":   {kind: storage.ProviderAPIKey, params: storage.AuthParams{Name: "Authorization", Prefix: "Token"}, value: "k", want: http.Header{"Authorization": {"Token k"}}},
		"prefix with a mark":    {kind: storage.ProviderAPIKey, params: storage.AuthParams{Name: "Authorization", Prefix: "key="}, value: "k", want: http.Header{"Authorization": {"key=k"}}},
		"bearer elsewhere":      {kind: storage.ProviderBearerToken, params: storage.AuthParams{Name: "X-Auth"}, value: "k", want: http.Header{"X-Auth": {"k"}}},
		"in the query": {
			kind: storage.ProviderAPIKey, params: storage.AuthParams{In: "query", Name: "key"}, value: "a&b=c", query: "x=1&key=mine&k%65y=2&y=%2f",
			want: http.Header{}, wantQ: "x=1&y=%2f&key=a%26b%3Dc",
		},
		"none": {kind: storage.ProviderNone, want: http.Header{}},
	} {
		t.Run(name, func(t *testing.T) {
			c := Credential{kind: tc.kind, value: seal.NewSecret(tc.value), place: place{origin: "https://a.test https://events.test:8443"}}
			c, err := c.on(storage.DirectoryEntry{AuthParams: tc.params})
			if err != nil {
				t.Fatal(err)
			}
			for _, host := range []string{"a.test", "A.test:443", "events.test:8443"} {
				h, u := tc.header.Clone(), &url.URL{Scheme: "https", Host: host, RawQuery: tc.query}
				if h == nil {
					h = http.Header{}
				}
				if err := c.Apply(h, u); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(tc.want, h); d != "" || u.RawQuery != tc.wantQ {
					t.Errorf("query %q, header %s", u.RawQuery, d)
				}
			}
			for _, elsewhere := range []string{"https://evil.test/", "http://a.test/", "https://a.test:8443/", "https://events.test/", "https://a.test.evil.test/"} {
				u, err := url.Parse(elsewhere)
				if err != nil {
					t.Fatal(err)
				}
				h := http.Header{}
				if err := c.Apply(h, u); (err == nil) != (tc.kind == storage.ProviderNone) || len(h) != 0 || u.RawQuery != "" {
					t.Errorf("%s: %v, %v", elsewhere, err, h)
				}
			}
		})
	}
}

func TestOrigin(t *testing.T) {
	for in, want := range map[string]string{
		"https://A.test/x?y": "https://a.test", "https://a.test:443": "https://a.test", "http://a.test:80/": "http://a.test",
		"http://a.test:443": "http://a.test:443", "http://[::1]:8080/": "http://[::1]:8080", "https://[2001:DB8::1]/": "https://[2001:db8::1]",
		"ftp://a.test": "", "a.test": "", "": "", "https://": "",
	} {
		if got, _ := origin(in); got != want {
			t.Errorf("origin of %q = %q, want %q", in, got, want)
		}
	}
}

func FuzzSetQuery(f *testing.F) {
	f.Add("a=b&key=x&%6bey=1", "key", "v")
	f.Add("&&=&key", "key", "a&b")
	f.Fuzz(func(t *testing.T, raw, name, value string) {
		got := setQuery(raw, name, value)
		var seen []string
		for pair := range splitPairs(got) {
			if k, err := url.QueryUnescape(pair[0]); err == nil && k == name {
				seen = append(seen, pair[1])
			}
		}
		if len(seen) != 1 || seen[0] != url.QueryEscape(value) {
			t.Errorf("setQuery(%q, %q, %q) = %q", raw, name, value, got)
		}
	})
}

func splitPairs(raw string) func(yield func([2]string) bool) {
	return func(yield func([2]string) bool) {
		for pair := range strings.SplitSeq(raw, "&") {
			key, value, _ := strings.Cut(pair, "=")
			if pair != "" && !yield([2]string{key, value}) {
				return
			}
		}
	}
}

func BenchmarkCredential(b *testing.B) {
	bundle := setup(b)
	bundle.connect()
	bundle.use(bundle.Broker)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := bundle.Credential(b.Context(), bundle.key, bundle.server); err != nil {
			b.Fatal(err)
		}
	}
}
