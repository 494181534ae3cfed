package authserver

import (
	"strings"
	"testing"
)

func TestParseRedirect(t *testing.T) {
	for redirect, want := range map[string]bool{
		"https://a.test/cb": true, "http://127.0.0.1:1/": true, "http://localhost": true, "http://[::1]:80/cb?x=1": true,
		"cursor://anysphere.cursor-mcp/oauth/callback": true, "com.example.app:/cb": true, "com.example.app://cb": true,
		"cursor://install?name=x": false, "cursor://cb?": false, "com.example.app:cb": false, "com.example.app:/cb#x": false, "evil://cb": false, "javascript://a.test/%0aalert(1)": false, "https:///cb": false,
		"http:///cb": false, "view-source:https://a.test/": false, "intent://a.test/#Intent;end": false,
		"": false, "/cb": false, "//a.test/cb": false, "http://a.test/cb": false, "https://u@a.test/": false, "https://a.test/#": false, "https:a.test": false,
		"javascript:alert(1)": false, "data:text/html,x": false, "file:///x": false, "https://a.test/\n": false, "https://a.test/ü": false,
		"http://localhost\\.evil.tld/": false, "http://127.0.0.1.evil.tld/": false, "https://" + strings.Repeat("a", maxText): false,
	} {
		if _, got := ParseRedirect(redirect); got != want {
			t.Errorf("ParseRedirect(%.60q) = %v, want %v", redirect, got, want)
		}
	}
}

// TestAllows checks that a redirect URI is compared as a whole, but for the port of a public client's loopback address
// (RFC 8252 section 7.3, RFC 9700 section 4.1.3).
func TestAllows(t *testing.T) {
	public := &Client{RedirectURIs: []string{"http://127.0.0.1:1/cb", "https://a.test/cb?x=1", "http://localhost/cb"}}
	secret := &Client{SecretHash: HashSecret("s"), RedirectURIs: public.RedirectURIs}
	for redirect, want := range map[string][2]bool{
		"http://127.0.0.1:1/cb":       {true, true},
		"http://127.0.0.1:49152/cb":   {true, false},
		"http://localhost:8080/cb":    {true, false},
		"http://[::1]:1/cb":           {false, false}, // another address of this machine
		"http://127.0.0.1:1/cb/":      {false, false},
		"http://127.0.0.1:1/cb?x=1":   {false, false},
		"http://127.0.0.1:1/c%62":     {false, false},
		"https://127.0.0.1:1/cb":      {false, false},
		"https://a.test/cb?x=1":       {true, true},
		"https://a.test/cb":           {false, false},
		"https://a.test/cb?x=1&y=2":   {false, false},
		"https://a.test:443/cb?x=1":   {false, false},
		"https://A.test/cb?x=1":       {false, false},
		"https://a.test.evil/cb?x=1":  {false, false},
		"https://a.test/../cb?x=1":    {false, false},
		"https://a.test/cb?x=1#":      {false, false},
		"http://127.0.0.1.evil.tld/":  {false, false},
		"http://a.test/cb?x=1":        {false, false},
		"https://a.test@evil/cb?x=1":  {false, false},
		"https://evil/\\@a.test?x=1":  {false, false},
		"":                            {false, false},
		"javascript://a.test/cb%0aal": {false, false},
	} {
		got := [2]bool{public.Allows(redirect), secret.Allows(redirect)}
		if got != want {
			t.Errorf("%s: public, with a secret: %v, want %v", redirect, got, want)
		}
	}
}

func TestRedirectOrigin(t *testing.T) {
	for redirect, want := range map[string]string{
		"https://A.test/cb":        "https://a.test",
		"https://a.test:8443/cb":   "https://a.test:8443",
		"http://127.0.0.1:4711/cb": "http://127.0.0.1",
		"http://localhost/cb":      "http://localhost",
		"http://[::1]:4711/cb":     "http://[::1]",
		"http://a.test/cb":         "",
		"Cursor://mcp/cb":          "cursor://mcp",
		"com.example.app:/cb":      "com.example.app://",
	} {
		if got, ok := RedirectOrigin(redirect); got != want || ok != (want != "") {
			t.Errorf("%s: %q %v, want %q", redirect, got, ok, want)
		}
	}
}

func TestFormSources(t *testing.T) {
	for redirect, want := range map[string]string{
		"http://127.0.0.1:7/cb":  "'self' https: http://localhost:* http://127.0.0.1:*",
		"http://127.0.0.2:7/cb":  "'self' https: http://localhost:* http://127.0.0.1:* http://127.0.0.2:*",
		"https://a.test:8443/cb": "'self' https: http://localhost:* http://127.0.0.1:*",
		"https://x;sandbox/cb":   "*", // no redirect
		"http://[::1]:7/cb":      "*",
	} {
		if got := FormSources(redirect); got != want {
			t.Errorf("%s: %q, want %q", redirect, got, want)
		}
	}
}
