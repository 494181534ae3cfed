package announce

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/textproto"

	smtp "github.com/wneessen/go-mail"

	"github.com/durward-gateway/durward/internal/proxy/netguard"
)

// unreached is an error between the gateway and a receiver. Its text is for the operator's log: it can name addresses of
// the operator's network, and repeat what a receiver says.
type unreached struct{ error }

// Unwrap returns the cause.
func (e unreached) Unwrap() error { return e.error }

// shownErrorOf returns the reason of an error for the log of deliveries, which people of an organization read: no address, and
// no text of others.
func shownErrorOf(err error) string {
	if _, ok := errors.AsType[unreached](err); ok {
		return reasonOf(err)
	}
	return loggedErrorOf(err)
}

func reasonOf(err error) string {
	if errors.Is(err, netguard.ErrRefused) {
		return netguard.ErrRefused.Error()
	}
	if refused, ok := errors.AsType[*textproto.Error](err); ok {
		return fmt.Sprintf("the mail server answers %d", refused.Code)
	}
	if refused, ok := errors.AsType[*smtp.SendError](err); ok && refused.ErrorCode() > 0 {
		return fmt.Sprintf("the mail server answers %d", refused.ErrorCode())
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return "the receiver did not answer in time"
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return "the receiver's name was not found"
	}
	if isCertificate(err) {
		return "the receiver's certificate is not trusted"
	}
	return "the receiver could not be reached, or broke off"
}

func isCertificate(err error) bool {
	_, wrong := errors.AsType[*tls.CertificateVerificationError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, other := errors.AsType[x509.HostnameError](err)
	return wrong || unknown || other
}
