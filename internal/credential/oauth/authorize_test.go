package oauth

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"
)

func TestAuthorizationURL(t *testing.T) {
	c := newClient()
	request := AuthorizationRequest{
		Endpoint: "https://as.example/authorize?tenant=a%20b&client_id=theirs&scope=all", ClientID: "id",
		RedirectURI: "https://gw.example/api/oauth/callback", Scopes: []string{"a", "b"}, Resource: "https://mcp.example/mcp",
	}
	seenState, seenChallenge := map[string]bool{}, map[string]bool{}
	for range 10_000 {
		pkce := NewPKCE()
		request.State, request.Challenge = NewState(), pkce.Challenge
		raw, err := c.AuthorizationURL(request)
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		if seenState[q.Get("state")] || seenChallenge[q.Get("code_challenge")] {
			t.Fatal("A06 state or challenge is not unique")
		}
		seenState[q.Get("state")], seenChallenge[q.Get("code_challenge")] = true, true
		sum := sha256.Sum256([]byte(pkce.Verifier.Reveal()))
		if q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || len(q.Get("code_challenge")) != 43 || len(pkce.Verifier.Reveal()) != 43 {
			t.Fatal("A06 challenge is not the S256 of the verifier")
		}
		if strings.Contains(raw, pkce.Verifier.Reveal()) {
			t.Fatal("A06 the verifier is in the URL")
		}
		if b, err := base64.RawURLEncoding.DecodeString(q.Get("state")); err != nil || len(b) != 32 {
			t.Fatal("A06 state is not 256 bits")
		}
		for name, want := range map[string]string{
			"response_type": "code", "client_id": "id", "redirect_uri": request.RedirectURI, "scope": "a b", "resource": request.Resource,
			"code_challenge_method": "S256", "tenant": "a b",
		} {
			if len(q[name]) != 1 || q.Get(name) != want {
				t.Fatalf("A06 %s is %q, want %q", name, q[name], want)
			}
		}
	}
	request.Scopes, request.Resource = nil, ""
	raw, err := c.AuthorizationURL(request)
	if err != nil {
		t.Fatal(err)
	}
	if u, _ := url.Parse(raw); u.Query().Has("scope") || u.Query().Has("resource") {
		t.Errorf("empty parameters: %s", raw)
	}
	for _, endpoint := range []string{"javascript:alert(1)", "file:///x", "http://as.example\n/", "https://a:b@as.example/", "https://as.example/#f", ""} {
		request.Endpoint = endpoint
		if _, err := c.AuthorizationURL(request); !errors.Is(err, ErrMalformed) {
			t.Errorf("S06 %q: %v", endpoint, err)
		}
	}
	request.Endpoint, request.State = "https://as.example/", ""
	if _, err := c.AuthorizationURL(request); err == nil {
		t.Error("no state passes")
	}
}

func TestParseCallback(t *testing.T) {
	for _, tc := range []struct {
		name, query string
		want        error
		denied      string
	}{
		{"code", "state=s&code=c&iss=https%3A%2F%2Fas", nil, ""},
		{"denied", "state=s&error=access_denied&error_description=no", nil, CodeAccessDenied},
		{"A01 no state", "code=c", ErrMalformed, ""},
		{"A01 state too long", "code=c&state=" + strings.Repeat("s", maxState+1), ErrMalformed, ""},
		{"state twice", "state=s&state=t&code=c", ErrMalformed, ""},
		{"A04 iss twice", "state=s&code=c&iss=a&iss=b", ErrMalformed, ""},
		{"code and error", "state=s&code=c&error=access_denied", ErrMalformed, ""},
		{"neither", "state=s", ErrMalformed, ""},
		{"A10 script for a code", "state=s&error=%3Cscript%3E", ErrMalformed, ""},
		{"A10 the state in an error", "state=STATE-CANARY&error=bad.STATE-CANARY", ErrMalformed, ""},
		{"code too long", "state=s&code=" + strings.Repeat("c", maxCode+1), ErrMalformed, ""},
	} {
		q, err := url.ParseQuery(tc.query)
		if err != nil {
			t.Fatal(err)
		}
		cb, err := ParseCallback(q)
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
		if got := ""; err == nil {
			if cb.Denied != nil {
				got = cb.Denied.Code
			}
			if got != tc.denied || cb.State != "s" {
				t.Errorf("%s: %+v", tc.name, cb)
			}
		}
	}
	q := url.Values{"state": {"STATE-CANARY"}, "error": {"server_error"}, "error_description": {"a\r\n\x1b[31mSTATE-CANARY " + strings.Repeat("x", 500)}}
	cb, err := ParseCallback(q)
	if err != nil {
		t.Fatal(err)
	}
	if d := cb.Denied.Description; strings.ContainsAny(d, "\r\n\x1b") || len(d) > maxDescription+3 || strings.Contains(d, "CANARY") {
		t.Errorf("A10 description %q", d)
	}
	if strings.Contains(cb.Denied.Error(), "xxx") {
		t.Error("A10 the description is in the error's text")
	}
}

func TestValidateIssuer(t *testing.T) {
	const as = "https://as.example"
	for _, tc := range []struct {
		name, iss, expected string
		promised, ok        bool
	}{
		{"equal", as, as, true, true},
		{"not promised, not there", "", as, false, true},
		{"not promised, there and equal", as, as, false, true},
		{"A04 wrong", "https://evil.example", as, true, false},
		{"A04 wrong, not promised", "https://evil.example", as, false, false},
		{"A04 absent while promised", "", as, true, false},
		{"A04 trailing slash", as + "/", as, true, false},
		{"A04 case changed", "https://AS.example", as, true, false},
		{"A04 default port", as + ":443", as, true, false},
		{"issuer not known", as, "", false, true},
	} {
		if err := ValidateIssuer(tc.iss, tc.expected, tc.promised); (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrMismatch) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}
