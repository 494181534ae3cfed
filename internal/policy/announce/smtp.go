package announce

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"strconv"
	"time"

	smtp "github.com/wneessen/go-mail"

	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/seal"
)

// SMTP holds the settings of a mail server.
type SMTP struct {
	Host string
	Port int
	// From is the address of the sender.
	From string
	// User and Password log in at the server. An empty user does not.
	User     string
	Password seal.Secret
	// TLS says how the connection is encrypted.
	TLS   TLS
	Guard *netguard.Guard
	Roots *x509.CertPool // nil: the system's
	Now   func() time.Time
}

// TLS is a way to encrypt the connection to a mail server.
type TLS string

// Ways to encrypt.
const (
	STARTTLS TLS = "starttls" // required, not only tried
	Implicit TLS = "implicit" // from the first byte (RFC 8314)
	NoTLS    TLS = "off"      // only to addresses with which the gateway may speak http
)

// Check returns the first mistake in the settings, or nil.
func (m *SMTP) Check() error {
	switch from, err := mail.ParseAddress(m.From); {
	case m.Host == "", m.Port < 1, m.Port > 65535:
		return errors.New("server is a host and a port, as in mail.example.com:587")
	case err != nil, from.Address != m.From:
		return errors.New("from is an address alone, as in durward@example.com")
	case m.TLS != STARTTLS && m.TLS != Implicit && m.TLS != NoTLS:
		return errors.New("tls is starttls, implicit or off")
	case m.TLS == NoTLS && m.User != "":
		return errors.New("a password is sent over an encrypted connection only: with tls off there is no user")
	case (m.User == "") != m.Password.Empty():
		return errors.New("user and password go together")
	}
	return nil
}

// Send sends a mail. It implements Mailer.
func (m *SMTP) Send(ctx context.Context, to Mail) error {
	message := smtp.NewMsg()
	if err := message.From(m.From); err != nil {
		return fmt.Errorf("%w: the sender's address cannot be used", errNever)
	}
	// A token of an identity provider says what a user's address is. A text that holds more than an address is none.
	if parsed, err := mail.ParseAddress(to.To); err != nil || parsed.Address != to.To || message.To(to.To) != nil {
		return fmt.Errorf("%w: the recipient's address cannot be used", errNever)
	}
	host := m.From[lastAt(m.From)+1:]
	message.SetMessageIDWithValue(to.ID + "@" + host)
	message.SetDateWithValue(m.Now())
	message.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no out-of-office answers
	message.Subject(to.Subject)
	message.SetBodyString(smtp.TypeTextPlain, to.Text)
	client, err := smtp.NewClient(m.Host, m.options()...)
	if err != nil {
		return fmt.Errorf("making a mail client: %w", err)
	}
	if err := client.DialAndSendWithContext(ctx, message); err != nil {
		return unreached{fmt.Errorf("sending mail: %w", err)}
	}
	return nil
}

func lastAt(address string) int {
	for i := len(address) - 1; i >= 0; i-- {
		if address[i] == '@' {
			return i
		}
	}
	return -1
}

func (m *SMTP) options() []smtp.Option {
	rules := &tls.Config{ServerName: m.Host, RootCAs: m.Roots, MinVersion: tls.VersionTLS12}
	options := []smtp.Option{smtp.WithPort(m.Port), smtp.WithTimeout(deadline), smtp.WithTLSConfig(rules), smtp.WithoutNoop()}
	login := smtp.SMTPAuthAutoDiscover
	switch m.TLS {
	case Implicit:
		// The library's own dialer would not ask the guard. It does not see that a given connection is encrypted, so the
		// method is named; its implementation does see it.
		login = smtp.SMTPAuthPlain
		options = append(options, smtp.WithSSL(), smtp.WithDialContextFunc(m.dial(m.Guard.DialContext, rules)))
	case NoTLS:
		options = append(options, smtp.WithTLSPolicy(smtp.NoTLS), smtp.WithDialContextFunc(m.dial(m.Guard.DialPlain, nil)))
	default:
		options = append(options, smtp.WithTLSPolicy(smtp.TLSMandatory), smtp.WithDialContextFunc(m.dial(m.Guard.DialContext, nil)))
	}
	if m.User != "" {
		options = append(options, smtp.WithSMTPAuth(login), smtp.WithUsername(m.User), smtp.WithPassword(m.Password.Reveal()))
	}
	return options
}

// dial returns a function that connects through the guard, and encrypts with rules that are not nil.
func (m *SMTP) dial(connect smtp.DialContextFunc, rules *tls.Config) smtp.DialContextFunc {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		c, err := connect(ctx, "tcp", net.JoinHostPort(m.Host, strconv.Itoa(m.Port)))
		if err != nil || rules == nil {
			return c, err
		}
		encrypted := tls.Client(c, rules)
		if err := encrypted.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		return encrypted, nil
	}
}
