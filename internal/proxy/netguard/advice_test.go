package netguard

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// TestAdvice checks W17: a refusal names the line that lifts it.
func TestAdvice(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want string
	}{
		{&Error{cause: refuse("private")}, "egress"},
		{fmt.Errorf("asking: %w", &URLError{Reason: "its scheme must be https"}), "egress"},
		{fmt.Errorf("asking: %w", x509.UnknownAuthorityError{}), "trusted_ca"},
		{errors.New("connection refused"), ""},
		{nil, ""},
	} {
		if got := Advice(tc.err); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%v: %q", tc.err, got)
		}
	}
	for raw, want := range map[string]string{
		"https://10.1.2.3/mcp": "allow 10.1.2.3/32", "http://10.1.2.3:8080/mcp": "http 10.1.2.3/32",
		"http://mcp.example/": "http RANGE", "https://[fd00::1]/": "allow fd00::1/128",
		"http://localhost:1/": "http 127.0.0.0/8 ::1/128", "ftp://x.example/": "", "https://a@10.0.0.1/": "",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := AdviceFor(u); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
	}
}
