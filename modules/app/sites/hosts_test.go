package sites

import (
	"strings"
	"testing"
)

func TestHostsThatTheGatewayAnswersUnder(t *testing.T) {
	production := Names{}
	production.Add([]string{"gate.example.com", "Api.Example.com", "2001:db8::1", "*.example.org"})
	development := Names{development: true}
	development.Add([]string{"127.0.0.1"})
	for _, test := range []struct {
		host                    string
		production, development bool
	}{
		{"gate.example.com", true, false},
		{"gate.example.com:443", true, false},
		{"gate.example.com:1", true, false},
		{"GATE.EXAMPLE.COM:443", true, false},
		{"api.example.com", true, false},
		{"[2001:db8::1]", true, false},
		{"[2001:db8::1]:443", true, false},
		{"", false, false},
		{":443", false, false},
		{"gate.example.com.", false, false},
		{"gate.example.com.evil.tld", false, false},
		{"evil.tld/gate.example.com", false, false},
		{"gate.example.com@evil.tld", false, false},
		{"me@gate.example.com", false, false},
		{"[gate.example.com", false, false},
		{"[gate.example.com]", false, false},
		{"gate.example.com:8443.evil.tld", false, false},
		{"gate.example.com:evil", false, false},
		{"*.example.org", false, false},
		{"x.example.org", false, false},
		{"gate.example.com\x00.evil.tld", false, false},
		{"ＧATE.example.com", false, false},
		{"192.0.2.7", false, false},
		{"H15 rebinding.evil.tld", false, false},
		{"127.0.0.1", false, true},
		{"127.0.0.1:8080", false, true},
		{"127.9.9.9", false, true},
		{"localhost", false, true},
		{"LOCALHOST:8080", false, true},
		{"[::1]:8080", false, true},
		{"localhost.", false, false},
		{"localhost.evil.tld", false, false},
		{"H15 127.0.0.1:38080.evil", false, false},
		{"127.0.0.1.nip.io", false, false},
		{"[::ffff:127.0.0.1]", false, false},
		{"0.0.0.0", false, false},
	} {
		if got := production.HostAllowed(test.host); got != test.production {
			t.Errorf("production: %q allowed %v", test.host, got)
		}
		if got := development.HostAllowed(test.host); got != test.development {
			t.Errorf("development: %q allowed %v", test.host, got)
		}
	}
}

func TestOriginsThatMayCall(t *testing.T) {
	origins, err := parseOrigins([]string{"https://App.Example.com:443/", "http://tool.example.com:8080", "https://[2001:db8::1]"})
	if err != nil {
		t.Fatal(err)
	}
	production := Names{origins: append(origins, "https://gate.example.com")}
	development := Names{origins: []string{"http://127.0.0.1:8080"}, development: true}
	for _, test := range []struct {
		origin                  string
		production, development bool
	}{
		{"https://gate.example.com", true, false},
		{"HTTPS://GATE.EXAMPLE.COM", true, false},
		{"https://app.example.com", true, false},
		{"http://tool.example.com:8080", true, false},
		{"https://[2001:db8::1]", true, false},
		{"", false, false},
		{"null", false, false},
		{"*", false, false},
		{"http://gate.example.com", false, false},
		{"https://gate.example.com:8443", false, false},
		{"https://gate.example.com/", false, false},
		{"https://gate.example.com.evil.tld", false, false},
		{"https://gate.example.com@evil.tld", false, false},
		{"https://gate.example.com https://evil.tld", false, false},
		{"http://tool.example.com", false, false},
		{"https://evil.tld", false, false},
		{"http://127.0.0.1:8080", false, true},
		{"http://localhost:3000", false, true},
		{"https://localhost", false, true},
		{"http://[::1]:3000", false, true},
		{"http://localhost:3000/", false, false},
		{"http://localhost.evil.tld", false, false},
		{"http://localhost@evil.tld", false, false},
		{"file://localhost", false, false},
		{"chrome-extension://localhost", false, false},
	} {
		if got := production.OriginAllowed(test.origin); got != test.production {
			t.Errorf("production: %q allowed %v", test.origin, got)
		}
		if got := development.OriginAllowed(test.origin); got != test.development {
			t.Errorf("development: %q allowed %v", test.origin, got)
		}
	}
}

func TestOriginsThatCannotBeMeantAreRefused(t *testing.T) {
	for _, text := range []string{
		"", "null", "*", "https://*.example.com", "app.example.com", "https://app.example.com/path", "https://app.example.com?x", "https://",
		"https://me@app.example.com", "file:///tmp", "https://bücher.example", "https://app.example.com#x", "://", "https://a b",
	} {
		if _, err := parseOrigins([]string{text}); err == nil || !strings.Contains(err.Error(), "is not an origin such as") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
