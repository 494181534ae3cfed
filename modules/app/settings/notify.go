package settings

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/durward-gateway/durward/internal/policy/announce"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/seal"
)

// Notify names the receivers that are told about held calls of all organizations. None of them can decide: each message
// has a link to the page. Without it nobody is told.
type Notify struct {
	// Receivers of signed webhooks (Standard Webhooks). Default: none.
	Webhooks []NotifyWebhook `json:"webhooks,omitempty"`
	// References to the addresses of incoming webhooks of Slack: whoever knows one can write there. Default: none.
	Slack []string `json:"slack,omitempty"`
	// References to the addresses of incoming webhooks of Microsoft Teams. Default: none.
	Teams []string `json:"teams,omitempty"`
	// The mail server through which those who decide get a mail. Default: no mails.
	Email *NotifyEmail `json:"email,omitempty"`
}

// NotifyWebhook is a receiver of signed webhooks.
type NotifyWebhook struct {
	// The address to which events are posted. Required.
	URL string `json:"url,omitempty"`
	// References to the secrets that sign: `whsec_` and 24 to 64 bytes in base64. Requests have a signature for each, so
	// that a secret can be replaced. At least one is required.
	Secrets []string `json:"secrets,omitempty"`
	// Whether the receiver gets the arguments of calls. Default: false.
	Arguments bool `json:"arguments,omitempty"`
}

// NotifyEmail is a mail server.
type NotifyEmail struct {
	// Its host and port. Required.
	Server string `json:"server,omitempty"`
	// The address of the sender. Required.
	From string `json:"from,omitempty"`
	// The name with which the gateway logs in there. Default: it does not log in.
	User string `json:"user,omitempty"`
	// A reference to the password of that user, `{env.NAME}` or `{file./path}`.
	Password string `json:"password,omitempty"`
	// How the connection is encrypted: `starttls`, which is then required, `implicit`, or `off`, which is possible only to
	// addresses with which the gateway may speak plain http. Default: `starttls`.
	TLS string `json:"tls,omitempty"`
}

// maxReceivers is the largest number of receivers. Each held call makes rows for each of them.
const maxReceivers = 20

// Receivers resolves the receivers and their secrets. n may be nil.
func (n *Notify) Receivers(guard *netguard.Guard, now func() time.Time) ([]announce.Receiver, error) {
	if n == nil {
		return nil, nil
	}
	var all []announce.Receiver
	for i := range n.Webhooks {
		r, err := n.Webhooks[i].receiver(guard)
		if err != nil {
			return nil, fmt.Errorf("notify: webhook %s: %w", n.Webhooks[i].URL, err)
		}
		all = append(all, r)
	}
	for _, chat := range []struct {
		kind       announce.Kind
		references []string
	}{{announce.Slack, n.Slack}, {announce.Teams, n.Teams}} {
		for _, reference := range chat.references {
			r, err := chatReceiver(chat.kind, reference, guard)
			if err != nil {
				return nil, fmt.Errorf("notify: %s %s: %w", chat.kind, reference, err)
			}
			all = append(all, r)
		}
	}
	if n.Email != nil {
		r, err := n.Email.receiver(guard, now)
		if err != nil {
			return nil, fmt.Errorf("notify: email: %w", err)
		}
		all = append(all, r)
	}
	if len(all) > maxReceivers {
		return nil, fmt.Errorf("notify: at most %d receivers", maxReceivers)
	}
	names := make(map[string]bool)
	for _, r := range all {
		if names[r.Name] {
			return nil, fmt.Errorf("notify: a receiver is given twice: %s", r.Name)
		}
		names[r.Name] = true
	}
	return all, nil
}

func (w *NotifyWebhook) receiver(guard *netguard.Guard) (announce.Receiver, error) {
	u, err := url.Parse(w.URL)
	if err != nil {
		return announce.Receiver{}, errors.New("not an address such as https://hooks.example.com/path")
	}
	if u.User != nil {
		return announce.Receiver{}, errors.New("an address has no user and password: the signature proves who sends")
	}
	r, err := announce.NewReceiver(announce.Webhook, seal.NewSecret(w.URL), guard.CheckURL)
	if err != nil {
		return r, err
	}
	if len(w.Secrets) == 0 {
		return r, errors.New("it needs a secret")
	}
	for _, reference := range w.Secrets {
		secret, err := ResolveSecret(reference)
		if err != nil {
			return r, err
		}
		key, err := announce.ParseKey(secret)
		if err != nil {
			return r, err
		}
		r.Keys = append(r.Keys, key)
	}
	r.Arguments = w.Arguments
	return r, nil
}

func chatReceiver(kind announce.Kind, reference string, guard *netguard.Guard) (announce.Receiver, error) {
	address, err := ResolveSecret(reference)
	if err != nil {
		return announce.Receiver{}, err
	}
	return announce.NewReceiver(kind, address, guard.CheckURL)
}

func (e *NotifyEmail) receiver(guard *netguard.Guard, now func() time.Time) (announce.Receiver, error) {
	host, text, err := net.SplitHostPort(e.Server)
	if err != nil {
		return announce.Receiver{}, errors.New("server is a host and a port, as in mail.example.com:587")
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return announce.Receiver{}, errors.New("server is a host and a port, as in mail.example.com:587")
	}
	mailer := &announce.SMTP{Host: host, Port: port, From: e.From, User: e.User, TLS: announce.TLS(e.TLS), Guard: guard, Now: now}
	if e.TLS == "" {
		mailer.TLS = announce.STARTTLS
	}
	if e.Password != "" {
		if mailer.Password, err = ResolveSecret(e.Password); err != nil {
			return announce.Receiver{}, err
		}
	}
	return announce.NewMailReceiver(mailer)
}
