package netguard

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// URLError says why CheckURL refuses a URL. The reason depends only on the URL's text and the configuration, not on
// the network, so it may be shown to the user who entered the URL. It matches ErrRefused.
type URLError struct {
	Reason string
	cause  error // the refusal of an address; nil when there is none in the URL
}

func (e *URLError) Error() string { return "URL refused: " + e.Reason }

// Unwrap returns the refusal of the URL's address.
func (e *URLError) Unwrap() error { return e.cause }

// Is makes every URLError match ErrRefused.
func (e *URLError) Is(target error) bool { return target == ErrRefused }

// wellKnownNames holds names whose address is known without a lookup. They are refused early; the dial would refuse
// them too.
var wellKnownNames = map[string][]netip.Addr{
	"localhost":                {netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")},
	"metadata.google.internal": {netip.MustParseAddr("169.254.169.254")},
	"metadata.goog":            {netip.MustParseAddr("169.254.169.254")},
	"instance-data":            {netip.MustParseAddr("169.254.169.254")},
}

// CheckURL refuses, without using the network, a URL that could never be fetched: another scheme than https (or http
// where the policy allows it for some range), user information, a fragment, no host, a host that is an address in a
// refused range or a number in disguise (`127.1`, `0x7f.1`, `2130706433`). A name passes; its addresses are checked
// when it is dialled. The error is a *URLError.
func (g *Guard) CheckURL(u *url.URL) error {
	if reason := g.urlReason(u); reason != "" {
		return &URLError{Reason: reason}
	}
	if err := g.checkHost(u); err != nil {
		return &URLError{Reason: err.Error(), cause: err}
	}
	return nil
}

// urlReason says why a URL is refused, apart from its host.
func (g *Guard) urlReason(u *url.URL) string {
	if u == nil {
		return "it is missing"
	}
	plain := u.Scheme == "http"
	switch {
	case u.Scheme != "https" && !plain:
		return "its scheme is not https"
	case plain && len(g.http) == 0:
		return "its scheme must be https"
	case u.Opaque != "" || u.Host == "":
		return "it has no host"
	case u.User != nil:
		return "it carries user information"
	case u.Fragment != "" || u.RawFragment != "":
		return "it has a fragment"
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "its port is not valid"
		}
	} else if strings.HasSuffix(u.Host, ":") {
		return "its port is empty"
	}
	return ""
}

// checkHost refuses a host that could never be dialled. A name passes, unless its address is known without a lookup.
func (g *Guard) checkHost(u *url.URL) error {
	addr, isLiteral, reason := parseHost(u.Hostname())
	if reason != "" {
		return refuse("%s", reason)
	}
	addrs := []netip.Addr{addr}
	if !isLiteral {
		name := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
		if strings.HasSuffix(name, ".localhost") {
			name = "localhost"
		}
		if addrs = wellKnownNames[name]; len(addrs) == 0 {
			return nil
		}
	}
	var err error
	for _, a := range addrs {
		if err = g.checkAddr(a, u.Scheme == "http"); err == nil {
			return nil
		}
	}
	return err
}

// parseHost tells an address from a name. It returns a reason for a host that is neither: numbers in the forms that
// inet_aton takes, non-ASCII text (which IDNA may turn into digits and dots), zones, and characters that no host name
// contains.
func parseHost(host string) (addr netip.Addr, isLiteral bool, reason string) {
	if a, err := netip.ParseAddr(host); err == nil {
		if a.Zone() != "" {
			return netip.Addr{}, false, "its host is an address with a zone"
		}
		return a, true, ""
	}
	name := strings.TrimSuffix(host, ".")
	if name == "" || len(name) > 253 {
		return netip.Addr{}, false, "its host is not a name"
	}
	label := 0 // length of the label being read
	for i := range len(name) {
		c := name[i]
		switch {
		case c == '.':
			if label == 0 {
				return netip.Addr{}, false, "its host is not a name"
			}
			label = 0
			continue
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
			label++
		default:
			return netip.Addr{}, false, "its host is not a name"
		}
		if label > 63 {
			return netip.Addr{}, false, "its host is not a name"
		}
	}
	if label == 0 {
		return netip.Addr{}, false, "its host is not a name"
	}
	if isNumber(name[strings.LastIndexByte(name, '.')+1:]) {
		return netip.Addr{}, false, "its host is a number that is not an address in the usual form"
	}
	return netip.Addr{}, false, ""
}

// isNumber applies the "ends in a number" test of the URL standard: no top-level domain looks like this, and
// inet_aton takes it for a part of an address.
func isNumber(label string) bool {
	if len(label) >= 2 && label[0] == '0' && (label[1] == 'x' || label[1] == 'X') {
		for i := 2; i < len(label); i++ {
			c := label[i] | 0x20
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
		}
		return true
	}
	for i := range len(label) {
		if label[i] < '0' || label[i] > '9' {
			return false
		}
	}
	return true
}
