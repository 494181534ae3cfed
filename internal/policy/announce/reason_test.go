package announce

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os"
	"testing"

	"github.com/durward-gateway/durward/internal/proxy/netguard"
)

// TestReasons checks that the log of deliveries shows no address of the operator's network, and no text of a receiver, whatever
// went wrong on the way, and that it shows the sender's own errors.
func TestReasons(t *testing.T) {
	const away = "the receiver could not be reached, or broke off"
	for _, c := range []struct {
		err  error
		want string
	}{
		{errGone, errGone.Error()},
		{errors.New("the receiver answers 500"), "the receiver answers 500"},
		{unreached{&net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 25}, Err: errors.New("connection refused")}}, away},
		{unreached{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}}, "the receiver did not answer in time"},
		{unreached{fmt.Errorf("x: %w", context.DeadlineExceeded)}, "the receiver did not answer in time"},
		{unreached{&net.DNSError{Name: "hooks.inside.test", Server: "10.0.0.53:53", Err: "no such host", IsNotFound: true}}, "the receiver's name was not found"},
		{unreached{fmt.Errorf("sending mail: %w", &textproto.Error{Code: 535, Msg: "of mail.inside.test"})}, "the mail server answers 535"},
		{unreached{x509.HostnameError{Host: "hooks.inside.test", Certificate: new(x509.Certificate)}}, "the receiver's certificate is not trusted"},
		{unreached{fmt.Errorf("10.0.0.7: %w", netguard.ErrRefused)}, netguard.ErrRefused.Error()},
		{unreached{io.ErrUnexpectedEOF}, away},
	} {
		if got := shownErrorOf(c.err); got != c.want {
			t.Errorf("%v is shown as %q, not %q", c.err, got, c.want)
		}
	}
}
