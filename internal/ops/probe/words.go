package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"

	"github.com/durward-gateway/durward/internal/proxy/netguard"
)

// unreachable describes an error below MCP, with advice.
func (s *probing) unreachable(err error) {
	// A url.Error repeats the URL, and with it a credential in the query.
	for u := (*url.Error)(nil); errors.As(err, &u); {
		err = u.Err
	}
	s.Cause = netguard.Cause(err)
	s.Problem, s.Message = Words(s.url, s.Cause)
}

// Words describes an error on the way to a server, with advice. err is the cause below netguard's errors.
func Words(u *url.URL, err error) (problem, message string) {
	host := strings.ToLower(u.Host)
	if address, plain, ok := netguard.Refused(err); ok {
		return "private_address", closedTo(u, address, plain)
	}
	var (
		refused   *netguard.URLError
		name      *net.DNSError
		unknown   x509.UnknownAuthorityError
		hostname  x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		timeout   net.Error
		certified *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &refused):
		return "address", "The server's address cannot be used: " + refused.Reason + "."
	case errors.As(err, &name) && name.IsNotFound:
		return "dns", fmt.Sprintf("No address is known for the name %s. Check its spelling, and that the gateway's machine can resolve it.", u.Hostname())
	case errors.As(err, &name):
		return "dns", fmt.Sprintf("The name %s cannot be resolved: the gateway's name server does not answer. Check the machine's resolver, and try again.", u.Hostname())
	case errors.As(err, &unknown):
		return "tls_unknown_authority", fmt.Sprintf("The certificate of %s is signed by an authority that the gateway does not know. "+
			"If it is your own, name its certificate: trusted_ca {file./path/to/ca.pem}. If not, the server may send its chain incompletely.", host)
	case errors.As(err, &hostname):
		return "tls_name", fmt.Sprintf("The certificate of %s is for other names. Use a name that it is for, or have one made for this name.", host)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "tls_expired", fmt.Sprintf("The certificate of %s has run out, or is not valid yet. Renew it, or check the clock of the gateway's machine.", host)
	case errors.As(err, &certified):
		return "tls", fmt.Sprintf("The certificate of %s is not acceptable. Its administrator must renew it.", host)
	case errors.As(err, &record), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return "tls", fmt.Sprintf("%s does not speak TLS. If it is meant to be so, enter the address with http:// and open its range: the line `http RANGE` in `egress` of the durward option.", host)
	case errors.Is(err, netguard.ErrRedirect):
		return "redirect", "The server answers with a redirect, which the gateway does not follow. Enter the address that it leads to; often only a slash at the end differs."
	case errors.Is(err, netguard.ErrTooLarge):
		return "too_large", "The server's answer is larger than 4 MiB."
	case errors.Is(err, netguard.ErrEncoded):
		return "encoded", "The server encodes its answer although that was not asked for, and in a way that the gateway does not decode: that is gzip and zstd. " +
			"Switch that off at the server, or at the proxy before it."
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused", fmt.Sprintf("Nothing listens on %s. Check the port, and that the server runs and listens on an address that other machines reach, which 127.0.0.1 is not.", host)
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "unreachable", fmt.Sprintf("There is no way to %s from the gateway's machine. Check routes and firewalls.", host)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.As(err, &timeout) && timeout.Timeout():
		return "timeout", fmt.Sprintf("%s does not answer in time. Check that the server is not overloaded, and that no firewall drops what the gateway sends.", host)
	}
	return "broken", fmt.Sprintf("The connection to %s broke before an answer came, or the answer is no HTTP. Check the port, and the server's own log.", host)
}

// closedTo names the line that lets the gateway connect to an address. The addresses of a name are for the operator,
// who has the log: an organization's administrator must not map the inner network by names.
func closedTo(u *url.URL, address netip.Addr, plain bool) string {
	which, target := "what "+u.Hostname()+" resolves to", "ADDRESS/32"
	if literal, err := netip.ParseAddr(u.Hostname()); err == nil && literal.Unmap() == address.Unmap() {
		which, target = address.String(), netip.PrefixFrom(address, address.BitLen()).String()
	}
	if plain {
		return fmt.Sprintf("The gateway speaks http without TLS only to addresses that its configuration opens, and %s is none. "+
			"Use https, or have the operator write into `egress`, in the durward option of the Caddyfile: http %s", which, target)
	}
	return fmt.Sprintf("The gateway connects to public addresses only, and %s is none. "+
		"To open it, the operator writes into `egress`, in the durward option of the Caddyfile: allow %s", which, target)
}
