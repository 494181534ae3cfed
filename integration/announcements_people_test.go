package integration

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/durward-gateway/durward/integration/rig"
)

// chat is the incoming webhook of a chat. It takes the bodies that the chat documents, and nothing else.
type chat struct {
	server *httptest.Server
	status int
	read   func(text []byte) (title, link string, err error)

	mu     sync.Mutex
	titles []string
	links  []string
	wrong  []string
	texts  []string
}

func newChat(t *testing.T, status int, read func([]byte) (title, link string, err error)) *chat {
	t.Helper()
	c := &chat{status: status, read: read}
	c.server = httptest.NewServer(c)
	t.Cleanup(c.server.Close)
	return c
}

// ServeHTTP implements http.Handler.
func (c *chat) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	title, link := "", ""
	if err == nil {
		title, link, err = c.read(text)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.URL.Path != "/services/T0/SECRET" {
		c.wrong = append(c.wrong, r.Method+" "+r.URL.Path+": "+string(text))
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.titles, c.links, c.texts = append(c.titles, title), append(c.links, link), append(c.texts, string(text))
	w.WriteHeader(c.status)
}

func (c *chat) waitFor(t *testing.T, titles ...string) {
	t.Helper()
	rig.Eventually(t, "the messages "+strings.Join(titles, ", "), func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return strings.Join(c.titles, "\n") == strings.Join(titles, "\n") || len(c.wrong) > 0
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.wrong) > 0 {
		t.Errorf("messages that the chat does not take: %q", c.wrong)
	}
}

// strictly decodes JSON of known members alone.
func strictly(text []byte, to any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(to)
}

var errShape = errors.New("not what the chat documents")

type slackText struct {
	Type  string `json:"type"`
	Text  string `json:"text"`
	Emoji *bool  `json:"emoji"`
}

// readSlack reads a message as https://docs.slack.dev/reference/block-kit/blocks describes it, within the limits there.
func readSlack(text []byte) (title, link string, err error) {
	var m struct {
		Text        string `json:"text"`
		UnfurlLinks bool   `json:"unfurl_links"`
		UnfurlMedia bool   `json:"unfurl_media"`
		Blocks      []struct {
			Type   string      `json:"type"`
			Text   *slackText  `json:"text"`
			Fields []slackText `json:"fields"`
		} `json:"blocks"`
	}
	if err := strictly(text, &m); err != nil {
		return "", "", err
	}
	if m.Text == "" || len(m.Blocks) == 0 || len(m.Blocks) > 50 {
		return "", "", errShape
	}
	for _, b := range m.Blocks {
		switch {
		case b.Type == "header" && b.Text != nil && b.Text.Type == "plain_text" && len(b.Text.Text) > 0 && len(b.Text.Text) <= 150:
			title = b.Text.Text
		case b.Type == "section" && b.Text == nil && len(b.Fields) > 0 && len(b.Fields) <= 10:
			for _, f := range b.Fields {
				if f.Type != "plain_text" || f.Text == "" || len(f.Text) > 2000 {
					return "", "", errShape
				}
			}
		case b.Type == "section" && b.Text != nil && b.Text.Type == "mrkdwn" && len(b.Text.Text) <= 3000:
			link, _, _ = strings.Cut(strings.TrimPrefix(b.Text.Text, "<"), "|")
		default:
			return "", "", errShape
		}
	}
	return title, link, nil
}

// readTeams reads a message with an adaptive card, as Microsoft documents it for incoming webhooks of Teams.
func readTeams(text []byte) (title, link string, err error) {
	type run struct {
		Type   string `json:"type"`
		Text   string `json:"text"`
		Weight string `json:"weight"`
	}
	var m struct {
		Type        string `json:"type"`
		Attachments []struct {
			ContentType string `json:"contentType"`
			Content     struct {
				Schema  string `json:"$schema"`
				Type    string `json:"type"`
				Version string `json:"version"`
				Body    []struct {
					run
					Size    string `json:"size"`
					Wrap    bool   `json:"wrap"`
					Inlines []run  `json:"inlines"`
				} `json:"body"`
				Actions []struct{ Type, Title, URL string } `json:"actions"`
			} `json:"content"`
		} `json:"attachments"`
	}
	if err := strictly(text, &m); err != nil {
		return "", "", err
	}
	if m.Type != "message" || len(m.Attachments) != 1 || m.Attachments[0].ContentType != "application/vnd.microsoft.card.adaptive" || len(text) > 28<<10 {
		return "", "", errShape
	}
	card := m.Attachments[0].Content
	if card.Type != "AdaptiveCard" || card.Version != "1.4" || len(card.Body) < 2 || len(card.Actions) != 1 || card.Actions[0].Type != "Action.OpenUrl" {
		return "", "", errShape
	}
	for _, b := range card.Body[1:] {
		if b.Type != "RichTextBlock" || len(b.Inlines) == 0 {
			return "", "", errShape
		}
	}
	return card.Body[0].Text, card.Actions[0].URL, nil
}

// mailbox is a mail server of others. It takes mails over an encrypted connection of a user who has logged in.
type mailbox struct {
	address string
	mu      sync.Mutex
	away    bool
	mails   []*mail.Message
	to      []string
}

// newMailbox starts a mail server whose certificate is in a file.
func newMailbox(t *testing.T, file string) *mailbox {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's own
	if err != nil {
		t.Fatal(err)
	}
	b := &mailbox{address: listener.Addr().String()}
	server := smtp.NewServer(b)
	server.Domain, server.TLSConfig = "mail.test", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}} //nolint:gosec // a test's own
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return b
}

// NewSession implements smtp.Backend.
func (b *mailbox) NewSession(*smtp.Conn) (smtp.Session, error) { return &mailSession{box: b}, nil }

type mailSession struct {
	box      *mailbox
	to       string
	loggedIn bool
}

// AuthMechanisms implements smtp.AuthSession. The library offers them over encrypted connections alone.
func (*mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

// Auth implements smtp.AuthSession.
func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if s.loggedIn = user == "durward" && password == "opensesame"; !s.loggedIn {
			return smtp.ErrAuthFailed
		}
		return nil
	}), nil
}

// Mail implements smtp.Session.
func (s *mailSession) Mail(string, *smtp.MailOptions) error {
	if !s.loggedIn {
		return smtp.ErrAuthRequired
	}
	return nil
}

// Rcpt implements smtp.Session.
func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error { s.to = to; return nil }

// Reset implements smtp.Session.
func (*mailSession) Reset() {}

// Logout implements smtp.Session.
func (*mailSession) Logout() error { return nil }

// Data implements smtp.Session.
func (s *mailSession) Data(r io.Reader) error {
	m, err := mail.ReadMessage(r)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(m.Body)
	if err != nil {
		return err
	}
	m.Body = bytes.NewReader(text)
	s.box.mu.Lock()
	defer s.box.mu.Unlock()
	if s.box.away {
		s.box.away = false
		return &smtp.SMTPError{Code: 451, Message: "try canary.inside.test later"}
	}
	s.box.mails, s.box.to = append(s.box.mails, m), append(s.box.to, s.to)
	return nil
}

// TestAnnouncementsToPeople checks that Slack and Teams are told about a held call and its decision in the forms that they
// document, and that those who decide get a mail over an encrypted connection; no arguments are in any of it. The log of
// deliveries shows neither what a receiver says nor an address of the operator's network.
func TestAnnouncementsToPeople(t *testing.T) {
	t.Parallel()
	slack, teams := newChat(t, http.StatusOK, readSlack), newChat(t, http.StatusAccepted, readTeams)
	roots := filepath.Join(t.TempDir(), "roots.pem")
	box := newMailbox(t, roots)
	box.away = true
	nobody := "http://127.0.0.1:" + freePort(t)
	g := startGateway(t, settings{
		env: []string{
			"SLACK=" + slack.server.URL + "/services/T0/SECRET", "TEAMS=" + teams.server.URL + "/services/T0/SECRET", "SMTP_PASSWORD=opensesame", "SSL_CERT_FILE=" + roots,
			"NOBODY=" + nobody + "/SECRET",
		},
		option: approvalConsole + `
		notify {
			slack {env.SLACK}
			teams {env.TEAMS}
			teams {env.NOBODY}
			email ` + box.address + ` {
				from durward@gate.example.test
				user durward
				password {env.SMTP_PASSWORD}
			}
		}`,
	})
	party := newThirdParty(t)
	s := g.bareServer(party.url()+"/open", bearerEntry())
	g.govern(s, members{"name": "asks", "authorized": true, "actions": []string{"tools/call:pay:approve"}, "approval": "out_of_band"})
	token, console := g.token(alice), g.consoleToken(alice)
	g.connectBearer(token, s, "a-secret-of-hers")
	g.send(http.MethodPost, s.path, token, toolCallWith("pay", `{"to":"canary-of-an-argument"}`), mcpHeader("")...).want(t, http.StatusOK)
	pending := g.object(console, http.MethodGet, "/api/approvals?status=pending", nil)["data"].([]any)
	if len(pending) != 1 {
		t.Fatalf("pending: %v", pending)
	}
	id := pending[0].(members)["id"].(string)
	page := g.url + "/approvals/" + id

	slack.waitFor(t, "A tool call waits for approval")
	teams.waitFor(t, "A tool call waits for approval")
	rig.Eventually(t, "a mail", func() bool {
		box.mu.Lock()
		defer box.mu.Unlock()
		return len(box.mails) == 1
	})
	letter, err := io.ReadAll(box.mails[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(strings.ReplaceAll(string(letter), "=\r\n", ""), "=3D", "=")
	if box.to[0] != alice["email"] || box.mails[0].Header.Get("From") != "<durward@gate.example.test>" || !strings.Contains(box.mails[0].Header.Get("Subject"), "pay") || !strings.Contains(text, page) {
		t.Errorf("the mail to %s is %v\n%s", box.to[0], box.mails[0].Header, text)
	}
	g.api(console, http.MethodPost, "/api/approvals/"+id+"/approve", nil)
	slack.waitFor(t, "A tool call waits for approval", "A tool call was approved")
	teams.waitFor(t, "A tool call waits for approval", "A tool call was approved")
	all := text
	for _, c := range []*chat{slack, teams} {
		for i, link := range c.links {
			if all += c.texts[i]; link != page {
				t.Errorf("the link is %s, not %s", link, page)
			}
		}
	}
	if strings.Contains(all, "canary") {
		t.Errorf("an argument was told: %s", all)
	}
	rows, err := json.Marshal(g.object(g.token(admin), http.MethodGet, "/api/webhook-deliveries?approval_id="+id, nil)["data"])
	if err != nil {
		t.Fatal(err)
	}
	log := string(rows)
	for _, want := range []string{`"last_error":"the receiver could not be reached, or broke off"`, `"state":"delivered"`} {
		if !strings.Contains(log, want) {
			t.Errorf("the log of deliveries has no %s: %s", want, log)
		}
	}
	for _, secret := range []string{"canary", "SECRET", nobody, strings.TrimPrefix(nobody, "http://"), "dial tcp", "opensesame"} {
		if strings.Contains(log, secret) {
			t.Errorf("the log of deliveries has %s: %s", secret, log)
		}
	}
}

// TestAnnouncementsOfExpiry checks that a program and a chat are told that nobody decided in time, once, by a webhook that a
// library of the standard's verifies.
func TestAnnouncementsOfExpiry(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="
	receiver, slack := newAnnouncementReceiver(t, secret), newChat(t, http.StatusOK, readSlack)
	g := startGateway(t, settings{env: []string{"WEBHOOK_SECRET=" + secret, "SLACK=" + slack.server.URL + "/services/T0/SECRET"}, option: approvalConsole + `
		notify {
			slack {env.SLACK}
			webhook ` + receiver.server.URL + `/held {
				secret {env.WEBHOOK_SECRET}
			}
		}`})
	party := newThirdParty(t)
	s := g.bareServer(party.url()+"/open", bearerEntry())
	g.govern(s, members{"name": "asks", "authorized": true, "actions": []string{"tools/call:pay:approve"}, "approval": "out_of_band"})
	token, console := g.token(alice), g.consoleToken(alice)
	g.connectBearer(token, s, "a-secret-of-hers")
	g.send(http.MethodPost, s.path, token, toolCallWith("pay", `{"to":"bob"}`), mcpHeader("")...).want(t, http.StatusOK)
	id := receiver.waitFor(t, "approval.held").Data["id"]
	slack.waitFor(t, "A tool call waits for approval")

	g.stop(t)
	g.alter(`UPDATE approvals SET created_at = created_at - 660000000, expires_at = expires_at - 660000000`)
	g.alter(`UPDATE announcements SET created_at = created_at - 660000000, next_at = next_at - 660000000 WHERE state = 'waiting'`)
	g.process = startProcess(t, g.directory, g.command.Env, durward(t), g.command.Args[1:]...)
	g.waitFor(t, g.url+"/readyz")
	expired := receiver.waitFor(t, "approval.held", "approval.expired")
	if expired.Data["id"] != id || expired.Data["status"] != "expired" {
		t.Errorf("the receiver is told: %v", expired.Data)
	}
	slack.waitFor(t, "A tool call waits for approval", "Nobody decided on a tool call in time")
	if status := g.object(console, http.MethodGet, "/api/approvals/"+id.(string), nil)["status"]; status != "expired" {
		t.Errorf("the call is %v", status)
	}
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	if len(receiver.wrong) > 0 {
		t.Errorf("not verified: %q", receiver.wrong)
	}
}
