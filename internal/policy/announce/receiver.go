package announce

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/durward-gateway/durward/internal/seal"
)

// Kind is the kind of a receiver.
type Kind string

// Kinds of receivers.
const (
	Webhook Kind = "webhook" // Standard Webhooks
	Slack   Kind = "slack"   // an incoming webhook of Slack
	Teams   Kind = "teams"   // an incoming webhook of Microsoft Teams
	Email   Kind = "email"
)

// Receiver is a receiver of announcements.
type Receiver struct {
	Kind Kind
	// Name tells receivers apart, in the store and in the log of deliveries. It holds no secret.
	Name string
	// URL is the address of all kinds but Email. It may be a secret: whoever knows that of a chat can write there.
	URL seal.Secret
	// Keys sign the requests of a Webhook: with the first one, and while it is rotated with others as well.
	Keys []seal.Secret
	// Arguments says that a Webhook gets the arguments of calls.
	Arguments bool
	// Mailer sends the mails of Email.
	Mailer Mailer
}

// NewReceiver returns a receiver at an address. check says whether the gateway may connect to it.
func NewReceiver(kind Kind, address seal.Secret, check func(*url.URL) error) (Receiver, error) {
	u, err := url.Parse(address.Reveal())
	if err != nil || u.Host == "" {
		return Receiver{}, errors.New("not an address such as https://hooks.example.com/path") // the error would show a secret
	}
	if err := check(u); err != nil {
		return Receiver{}, err
	}
	return Receiver{Kind: kind, Name: nameOf(kind, u.Hostname(), address.Reveal()), URL: address}, nil
}

// nameOf returns the name of a receiver. The digest tells apart those at the same host.
func nameOf(kind Kind, host, address string) string {
	sum := sha256.Sum256([]byte(address))
	return fmt.Sprintf("%s:%s:%s", kind, host, hex.EncodeToString(sum[:4]))
}

// keyPrefix begins a secret of Standard Webhooks.
const keyPrefix = "whsec_"

// ParseKey reads a secret of Standard Webhooks: 24 to 64 bytes in base64, mostly behind whsec_.
func ParseKey(secret seal.Secret) (seal.Secret, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret.Reveal(), keyPrefix))
	if err != nil || len(key) < 24 || len(key) > 64 {
		return seal.Secret{}, errors.New("a secret of a webhook is whsec_ and 24 to 64 random bytes in base64, as `openssl rand -base64 32` makes them")
	}
	return seal.NewSecret(string(key)), nil
}

// NewMailReceiver returns a receiver that sends mails through a server.
func NewMailReceiver(m *SMTP) (Receiver, error) {
	if err := m.Check(); err != nil {
		return Receiver{}, err
	}
	return Receiver{Kind: Email, Name: nameOf(Email, m.Host, m.Host+" "+m.From), Mailer: m}, nil
}
