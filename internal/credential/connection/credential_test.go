package connection

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/durward-gateway/durward/internal/proxy/http1"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

func TestApply(t *testing.T) {
	for name, tc := range map[string]struct {
		kind   storage.Provider
		params storage.AuthParams
		value  string
		fields []http1.Field
		query  string
		want   []http1.Field
		wantQ  string
	}{
		"oauth2":                {kind: storage.ProviderOAuth2, value: "t", want: []http1.Field{{Name: "Authorization", Value: "Bearer t"}}},
		"replaces the client's": {kind: storage.ProviderOAuth2, value: "t", fields: []http1.Field{{Name: "Authorization", Value: "Bearer mine"}, {Name: "authorization", Value: "x"}}, want: []http1.Field{{Name: "Authorization", Value: "Bearer t"}}},
		"api key":               {kind: storage.ProviderAPIKey, value: "k", want: []http1.Field{{Name: "X-Api-Key", Value: "k"}}},
		"api key with prefix":   {kind: storage.ProviderAPIKey, params: storage.AuthParams{Name: "Authorization", Prefix: "Token"}, value: "k", want: []http1.Field{{Name: "Authorization", Value: "Token k"}}},
		"prefix with a mark":    {kind: storage.ProviderAPIKey, params: storage.AuthParams{Name: "Authorization", Prefix: "key="}, value: "k", want: []http1.Field{{Name: "Authorization", Value: "key=k"}}},
		"bearer elsewhere":      {kind: storage.ProviderBearerToken, params: storage.AuthParams{Name: "X-Auth"}, value: "k", want: []http1.Field{{Name: "X-Auth", Value: "k"}}},
		"in the query": {
			kind: storage.ProviderAPIKey, params: storage.AuthParams{In: "query", Name: "key"}, value: "a&b=c", query: "x=1&key=mine&k%65y=2&y=%2f",
			wantQ: "x=1&y=%2f&key=a%26b%3Dc",
		},
		"in the query, beside what is none": {
			kind: storage.ProviderAPIKey, params: storage.AuthParams{In: "query", Name: "key"}, value: "k", query: "&x%zz=1&&key=mine&key",
			wantQ: "x%zz=1&key=k",
		},
		"none": {kind: storage.ProviderNone},
	} {
		t.Run(name, func(t *testing.T) {
			c := Credential{kind: tc.kind, value: seal.NewSecret(tc.value), place: place{origin: "https://a.test https://events.test:8443"}}
			c, err := c.on(tc.params)
			if err != nil {
				t.Fatal(err)
			}
			for _, host := range []string{"a.test", "A.test:443", "events.test:8443"} {
				r := &http1.Request{URL: &url.URL{Scheme: "https", Host: host, RawQuery: tc.query}, Fields: slices.Clone(tc.fields)}
				if err := c.Apply(r); err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(tc.want, r.Fields, cmpopts.EquateEmpty()); d != "" || r.URL.RawQuery != tc.wantQ {
					t.Errorf("query %q, header %s", r.URL.RawQuery, d)
				}
			}
			for _, elsewhere := range []string{"https://evil.test/", "http://a.test/", "https://a.test:8443/", "https://events.test/", "https://a.test.evil.test/"} {
				u, err := url.Parse(elsewhere)
				if err != nil {
					t.Fatal(err)
				}
				r := &http1.Request{URL: u}
				if err := c.Apply(r); (err == nil) != (tc.kind == storage.ProviderNone) || len(r.Fields) != 0 || u.RawQuery != "" {
					t.Errorf("%s: %v, %v", elsewhere, err, r.Fields)
				}
			}
		})
	}
}

// TestNoCredential checks that a credential that nobody made is no permission to send a request without one.
func TestNoCredential(t *testing.T) {
	r := &http1.Request{URL: &url.URL{Scheme: "https", Host: "a.test"}}
	if err := new(Credential).Apply(r); err == nil {
		t.Error("the request goes out without a credential")
	}
	if err := None().Apply(r); err != nil || len(r.Fields) != 0 {
		t.Errorf("a server that needs none: %v, %v", err, r.Fields)
	}
}

// TestPrefix checks that a blank follows a prefix that ends with a letter or digit, and no other.
func TestPrefix(t *testing.T) {
	for last, blank := range map[string]bool{
		"a": true, "z": true, "A": true, "Z": true, "0": true, "9": true, "m": true, "5": true,
		"`": false, "{": false, "@": false, "[": false, "/": false, ":": false, "=": false, " ": false, "~": false,
	} {
		c, err := Credential{kind: storage.ProviderAPIKey, value: seal.NewSecret("k"), place: place{origin: "https://a.test"}}.on(
			storage.AuthParams{Name: "X-Key", Prefix: "p" + last})
		if err != nil {
			t.Fatalf("%q: %v", last, err)
		}
		r := &http1.Request{URL: &url.URL{Scheme: "https", Host: "a.test"}}
		if err := c.Apply(r); err != nil {
			t.Fatal(err)
		}
		want := "p" + last + "k"
		if blank {
			want = "p" + last + " k"
		}
		if got := r.Get("X-Key"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestOpenGrant checks what is not read as a credential: what may not be used, and what none is.
func TestOpenGrant(t *testing.T) {
	b := setup(t)
	b.connect()
	good := b.connection()
	for name, tc := range map[string]struct {
		change func(c *storage.Connection)
		want   error
	}{
		"good":        {func(*storage.Connection) {}, nil},
		"broken":      {func(c *storage.Connection) { c.Status = storage.ConnectionError }, errNothingStored},
		"none":        {func(c *storage.Connection) { c.SealedCredential = nil }, errNothingStored},
		"another's":   {func(c *storage.Connection) { c.UserID = "bob" }, seal.ErrOpen},
		"of a server": {func(c *storage.Connection) { c.ServerID = "another" }, seal.ErrOpen},
		"no JSON": {func(c *storage.Connection) {
			sealed, err := b.keyring.Seal([]byte("x"), credentialAD(b.key))
			if err != nil {
				t.Fatal(err)
			}
			c.SealedCredential = sealed
		}, seal.ErrOpen},
	} {
		c := good
		tc.change(&c)
		if g, err := b.openGrant(c); !errors.Is(err, tc.want) || g.Access.Empty() != (tc.want != nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOrigins checks that the place of a server whose events come from nowhere is no place.
func TestOrigins(t *testing.T) {
	for _, tc := range []struct{ url, events, want string }{
		{"https://a.test/mcp", "", "https://a.test"},
		{"https://a.test/mcp", "https://A.test:443/events", "https://a.test"},
		{"https://a.test/mcp", "https://b.test/events", "https://a.test https://b.test"},
		{"https://a.test/mcp", "nowhere", ""},
		{"nowhere", "https://b.test/events", ""},
		{"nowhere", "", ""},
	} {
		if got, err := origins(tc.url, tc.events); got != tc.want || (err == nil) != (tc.want != "") {
			t.Errorf("%q and %q: %q, %v", tc.url, tc.events, got, err)
		}
	}
}

func TestOrigin(t *testing.T) {
	for in, want := range map[string]string{
		"https://A.test/x?y": "https://a.test", "https://a.test:443": "https://a.test", "http://a.test:80/": "http://a.test",
		"http://a.test:443": "http://a.test:443", "https://a.test:80": "https://a.test:80", "http://[::1]:8080/": "http://[::1]:8080", "https://[2001:DB8::1]/": "https://[2001:db8::1]",
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

// TestCredentialOfRecent checks that a remembered credential is for one connection and one server only, until something
// is written.
func TestCredentialOfRecent(t *testing.T) {
	b := setup(t)
	b.connect()
	b.use(b.Broker)
	var recent Recent
	ask := func(key storage.ConnectionKey, server *storage.Server) (Credential, error) {
		return b.CredentialOf(t.Context(), key, server, &recent)
	}
	theirs, moved := b.key, b.server
	theirs.UserID = "018f3c2e-0000-7000-8000-0000000000ff"
	moved.Entry.URL = "https://elsewhere.test/mcp"
	for range 3 {
		if c, err := ask(b.key, &b.server); err != nil || c.Version() == 0 {
			t.Fatal(err)
		}
		if c, err := ask(theirs, &b.server); !errors.Is(err, ErrNotConnected) || c.Version() != 0 {
			t.Errorf("somebody else: %v", err)
		}
		if c, err := ask(b.key, &moved); err == nil || c.Version() != 0 {
			t.Error("the credential goes to a server elsewhere")
		}
		if err := b.Disconnect(t.Context(), b.key); err != nil {
			t.Fatal(err)
		}
		if _, err := ask(b.key, &b.server); !errors.Is(err, ErrNotConnected) {
			t.Errorf("disconnected: %v", err)
		}
		b.connect()
	}
}

// TestHoldsAlike checks that an address in the spelling of the place belongs to it, and that others are compared by
// meaning.
func TestHoldsAlike(t *testing.T) {
	for _, tc := range []struct {
		origin, address string
		holds           bool
	}{
		{"https://a.test", "https://a.test/x", true},
		{"https://a.test:8443", "https://a.test:8443/", true},
		{"https://a.test", "https://A.test:443/", true},
		{"https://a.test https://b.test", "https://b.test/", true},
		{"https://a.test", "https://a.test.evil.test/", false},
		{"https://a.test", "http://a.test/", false},
		{"https://a.test", "https://a.tes/", false},
		{"https://a.test", "https://user@b.test/", false},
		{"", "https://a.test/", false},
		{"https://a.test", "", false},
		{"https://a.test", "https:///a.test", false},
		{"https://a.test", "//a.test", false},
		{"https://a.test", "a.test", false},
		{unknownOrigin, "un://known/", false},
		{"https://a.test https://b.test", "https://a.test", true},
		{"https://a.test https://b.test", "https://c.test", false},
		{"https://[2001:db8::1]:8443", "https://[2001:DB8::1]:8443/", true},
		{"http://a.test", "http://a.test:80/", true},
	} {
		u, err := url.Parse(tc.address)
		if err != nil {
			t.Fatal(err)
		}
		if got := (place{origin: tc.origin}).holds(u); got != tc.holds {
			t.Errorf("%q holds %q: %v", tc.origin, tc.address, got)
		}
	}
}

// BenchmarkCredentialOf measures BenchmarkCredential for a caller who asks again and again.
func BenchmarkCredentialOf(b *testing.B) {
	bundle := setup(b)
	bundle.connect()
	bundle.use(bundle.Broker)
	var recent Recent
	b.ReportAllocs()
	for b.Loop() {
		if _, err := bundle.CredentialOf(b.Context(), bundle.key, &bundle.server, &recent); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCredential(b *testing.B) {
	bundle := setup(b)
	bundle.connect()
	bundle.use(bundle.Broker)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := bundle.Credential(b.Context(), bundle.key, &bundle.server); err != nil {
			b.Fatal(err)
		}
	}
}
