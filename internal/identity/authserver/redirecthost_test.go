package authserver

import "testing"

// TestRedirectHost refuses redirect URIs whose host decodes to other than ASCII: the consent page shows the decoded host,
// and the browser goes to what IDNA makes of it.
func TestRedirectHost(t *testing.T) {
	for _, s := range []string{"https://cl%D0%B0ude.ai/cb", "https://claude.ai%E3%80%82evil.example/cb", "https://x%E2%80%AEmoc.live/cb", "https://a%C2%ADb.com/", "https://:443/"} {
		if u, ok := ParseRedirect(s); ok {
			t.Errorf("%s is a redirect to %q", s, u.Host)
		}
	}
}
