package legacysse

import (
	"errors"
	"net/url"
	"strings"
)

// ErrEndpoint says that the upstream announced an endpoint that is refused. For the caller it is an upstream error.
var ErrEndpoint = errors.New("upstream's endpoint event is not usable")

// MaxEndpoint is the maximum length of an endpoint, in bytes, before and after it was resolved.
const MaxEndpoint = 2 << 10

// Resolve returns the address that the upstream at server announced for messages. announced is the event's data, a
// reference relative to server's URL. It must be of server's origin and without userinfo, because the user's
// credential goes there. It fails with [ErrEndpoint].
func Resolve(server *url.URL, announced string) (*url.URL, error) {
	announced = strings.TrimSpace(announced)
	if announced == "" || len(announced) > MaxEndpoint || !visible(announced) {
		return nil, ErrEndpoint
	}
	reference, err := url.Parse(announced)
	if err != nil || reference.Opaque != "" || reference.User != nil {
		return nil, ErrEndpoint
	}
	u := server.ResolveReference(reference)
	if !SameOrigin(server, u) {
		return nil, ErrEndpoint
	}
	u.Host, u.User, u.Fragment, u.RawFragment = server.Host, nil, "", ""
	if len(u.String()) > MaxEndpoint {
		return nil, ErrEndpoint
	}
	return u, nil
}

// SameOrigin reports whether two http or https URLs have the same origin (RFC 6454).
func SameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && a.Hostname() != "" && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) != "" && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	return map[string]string{"http": "80", "https": "443"}[u.Scheme]
}

// visible reports whether s is visible ASCII, as every URI is (RFC 3986).
func visible(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return true
}
