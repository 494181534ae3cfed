package netguard

import (
	"crypto/x509"
	"errors"
	"net/netip"
	"net/url"
	"strings"
)

// Advice names the option that would let a connection succeed that failed with err; "" when no option helps. It
// distinguishes refused addresses from unreachable ones, so that it is for administrators and logs only.
func Advice(err error) string {
	var authority x509.UnknownAuthorityError
	switch {
	case errors.Is(err, ErrRefused):
		return "the address is refused: allow its range with a line in `egress` of the gateway's configuration, as in `allow 10.0.0.0/8`, or `http 10.0.0.0/8` for plain http"
	case errors.As(err, &authority):
		return "the certificate is of an unknown authority: name it in the directory entry, as in `trusted_ca {file./etc/durward/ca.pem}`"
	}
	return ""
}

// AdviceFor returns the line in `egress` that lets CheckURL accept u; "" when there is none.
func AdviceFor(u *url.URL) string {
	if u == nil || (u.Scheme != "https" && u.Scheme != "http") || u.User != nil || u.Fragment != "" {
		return ""
	}
	word := "allow"
	if u.Scheme == "http" {
		word = "http"
	}
	cidr := "RANGE"
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && a.Zone() == "" {
		cidr = netip.PrefixFrom(a, a.BitLen()).String()
	} else if name := strings.ToLower(u.Hostname()); name == "localhost" || strings.HasSuffix(name, ".localhost") {
		cidr = "127.0.0.0/8 ::1/128"
	}
	return word + " " + cidr
}
