package announce

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/mail"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// letter is a mail as a server got it.
type letter struct {
	from  string
	to    []string
	text  []byte
	user  string
	plain bool // it came over a connection that is not encrypted
}

// post is an SMTP server of others.
type post struct {
	mu      sync.Mutex
	letters []letter
	refuses bool
	address string
	roots   *x509.CertPool
}

// newPost starts a server. It encrypts from the first byte with implicit; without a certificate it cannot encrypt.
func newPost(t *testing.T, certified, implicit bool) *post {
	t.Helper()
	p := &post{roots: x509.NewCertPool()}
	server := smtp.NewServer(p)
	server.Domain, server.ReadTimeout, server.WriteTimeout, server.AllowInsecureAuth = "mail.test", bound, bound, true
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's own
	if err != nil {
		t.Fatal(err)
	}
	p.address = listener.Addr().String()
	if certified {
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{p.certificate(t)}} //nolint:gosec // a test's own
	}
	if implicit {
		listener = tls.NewListener(listener, server.TLSConfig)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
	return p
}

func (p *post) certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "mail"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	p.roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// NewSession implements smtp.Backend.
func (p *post) NewSession(c *smtp.Conn) (smtp.Session, error) {
	_, encrypted := c.TLSConnectionState()
	return &delivery{post: p, letter: letter{plain: !encrypted}}, nil
}

type delivery struct {
	post *post
	letter
}

func (d *delivery) AuthMechanisms() []string { return []string{sasl.Plain} }

func (d *delivery) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "durward" || password != "opensesame" {
			return errors.New("wrong password")
		}
		d.user = user
		return nil
	}), nil
}

func (d *delivery) Mail(from string, _ *smtp.MailOptions) error { d.from = from; return nil }
func (d *delivery) Rcpt(to string, _ *smtp.RcptOptions) error   { d.to = append(d.to, to); return nil }
func (d *delivery) Reset()                                      {}
func (d *delivery) Logout() error                               { return nil }

func (d *delivery) Data(r io.Reader) (err error) {
	if d.text, err = io.ReadAll(r); err != nil {
		return err
	}
	d.post.mu.Lock()
	defer d.post.mu.Unlock()
	if d.post.refuses {
		return &smtp.SMTPError{Code: 451, Message: "later"}
	}
	d.post.letters = append(d.post.letters, d.letter)
	return nil
}

func (p *post) all() []letter {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]letter(nil), p.letters...)
}

// through returns the settings for a server.
func (p *post) through(t *testing.T, w *world, how TLS) *SMTP {
	t.Helper()
	host, port, err := net.SplitHostPort(p.address)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	m := &SMTP{Host: host, Port: number, From: "durward@gate.example.test", TLS: how, Guard: loopback, Roots: p.roots, Now: w.clock.Now}
	if how != NoTLS {
		m.User, m.Password = "durward", seal.NewSecret("opensesame")
	}
	return m
}

// TestMail checks that those who decide get a mail each, over an encrypted connection, with the link, and that the caller and
// others get none.
func TestMail(t *testing.T) {
	for _, how := range []TLS{STARTTLS, Implicit, NoTLS} {
		t.Run(string(how), func(t *testing.T) {
			w := newWorld(t)
			w.user("carol", "carol@example.test", "sales")
			dora := w.user("dora", "dora@example.test")
			if err := w.store.PutSessionFacts(t.Context(), w.org, dora.ID, storage.SessionFacts{Groups: []string{"leads"}, At: noon}); err != nil {
				t.Fatal(err)
			}
			w.user("left", "left@example.test", "leads")
			left := w.user("emil", "emil@example.test", "leads")
			if err := w.store.PutSessionFacts(t.Context(), w.org, left.ID, storage.SessionFacts{At: noon.Add(time.Minute)}); err != nil {
				t.Fatal(err)
			}
			p := newPost(t, how != NoTLS, how == Implicit)
			r, err := NewMailReceiver(p.through(t, w, how))
			if err != nil {
				t.Fatal(err)
			}
			s := w.sender(r)
			a := w.hold(s, "delete_issue")
			w.drain(s)
			to := map[string]bool{}
			for _, l := range p.all() {
				m, err := mail.ReadMessage(bytes.NewReader(l.text))
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(m.Body)
				if err != nil {
					t.Fatal(err)
				}
				text := strings.ReplaceAll(string(body), "=\r\n", "")
				if len(l.to) != 1 || to[l.to[0]] || l.from != "durward@gate.example.test" || l.plain != (how == NoTLS) || (l.user == "durward") != (how != NoTLS) {
					t.Errorf("%+v", l)
				}
				to[l.to[0]] = true
				if !strings.Contains(text, public+"/approvals/"+a.ID) || !strings.Contains(text, "alice@example.test") || strings.Contains(text, "<html") ||
					!strings.HasPrefix(m.Header.Get("Content-Type"), "text/plain") || m.Header.Get("Auto-Submitted") != "auto-generated" ||
					!strings.Contains(m.Header.Get("Subject"), "delete_issue") || m.Header.Get("To") != "<"+l.to[0]+">" || m.Header.Get("Message-ID") == "" {
					t.Errorf("%s", l.text)
				}
			}
			if len(to) != 3 || !to["bob@example.test"] || !to["dora@example.test"] || !to["left@example.test"] {
				t.Errorf("mails to %v", to)
			}
			w.drain(s)
			if n := len(p.all()); n != 3 {
				t.Errorf("%d mails in all", n)
			}
		})
	}
}

// TestMailToTheUser checks that a call that its own user decides is told to that user alone.
func TestMailToTheUser(t *testing.T) {
	w, p := newWorld(t), newPost(t, true, false)
	s := w.sender(Receiver{Kind: Email, Name: "email", Mailer: p.through(t, w, STARTTLS)})
	now := w.clock.Now()
	own := storage.Approval{
		ID: "0192f0c1-5bd2-7000-8000-0000000000aa", OrganizationID: w.org, UserID: w.alice.ID, ServerID: w.server.ID, Tool: "x", Binding: []byte("b"),
		Channel: storage.ChannelOutOfBand, Status: storage.ApprovalPending, CreatedAt: now, ExpiresAt: now.Add(time.Minute),
	}
	if _, err := w.store.CreateApproval(storage.WithAnnouncing(t.Context(), s.Announcements), own, storage.AskLimits{}); err != nil {
		t.Fatal(err)
	}
	w.drain(s)
	if all := p.all(); len(all) != 1 || len(all[0].to) != 1 || all[0].to[0] != "alice@example.test" {
		t.Errorf("%+v", all)
	}
}

// TestMailRetries checks that one recipient's trouble does not repeat the mails of others.
func TestMailRetries(t *testing.T) {
	w, p := newWorld(t), newPost(t, true, false)
	p.refuses = true
	s := w.sender(Receiver{Kind: Email, Name: "email", Mailer: p.through(t, w, STARTTLS)})
	w.hold(s, "delete_issue")
	w.drain(s)
	if log := w.log(); len(log) != 2 || log[1].Recipient != "bob@example.test" || log[1].Attempts != 1 || log[1].LastError != "the mail server answers 451" {
		t.Fatalf("%+v", log)
	}
	p.mu.Lock()
	p.refuses = false
	p.mu.Unlock()
	w.clock.add(time.Second)
	w.drain(s)
	if all := p.all(); len(all) != 1 {
		t.Errorf("%d mails", len(all))
	}
}

// TestMailNeedsEncryption checks that nothing is sent to a server that cannot encrypt, or whose certificate is another's.
func TestMailNeedsEncryption(t *testing.T) {
	w := newWorld(t)
	bare := newPost(t, false, false)
	other := newPost(t, true, false)
	stranger := other.through(t, w, STARTTLS)
	stranger.Roots = x509.NewCertPool()
	for name, m := range map[string]*SMTP{"it cannot": bare.through(t, w, STARTTLS), "another's certificate": stranger} {
		if err := m.Send(t.Context(), Mail{ID: "1", To: "bob@example.test", Subject: "s", Text: "t"}); err == nil {
			t.Errorf("%s: a mail was sent", name)
		}
	}
	if len(bare.all())+len(other.all()) != 0 {
		t.Error("a mail came")
	}
}

// TestMailInjection checks that no text of others makes a header, a recipient or another line.
func TestMailInjection(t *testing.T) {
	w, p := newWorld(t), newPost(t, true, false)
	m := p.through(t, w, STARTTLS)
	for _, text := range hostile {
		told := toldWith(text)
		if err := m.Send(t.Context(), mailTo("bob@example.test", &storage.Announcement{ID: "1", Event: storage.EventHeld}, told)); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	}
	for _, l := range p.all() {
		parsed, err := mail.ReadMessage(bytes.NewReader(l.text))
		if err != nil {
			t.Fatal(err)
		}
		if len(l.to) != 1 || parsed.Header.Get("Bcc") != "" || parsed.Header.Get("Cc") != "" || len(parsed.Header["To"]) != 1 || len(parsed.Header["Subject"]) != 1 {
			t.Errorf("%s", l.text)
		}
	}
	for _, to := range []string{"", "bob", "bob@example.test, eve@evil.example", "bob@example.test\r\nBcc: eve@evil.example", "Bob <bob@example.test>", "bob@example.test>\r\nRCPT TO:<eve@evil.example"} {
		if err := m.Send(t.Context(), Mail{ID: "1", To: to, Subject: "s", Text: "t"}); !errors.Is(err, errNever) {
			t.Errorf("%q: %v", to, err)
		}
	}
}

func TestMailSettings(t *testing.T) {
	good := SMTP{Host: "mail.example.test", Port: 587, From: "durward@example.test", TLS: STARTTLS}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*SMTP){
		"no host": func(m *SMTP) { m.Host = "" }, "no port": func(m *SMTP) { m.Port = 0 }, "a port too high": func(m *SMTP) { m.Port = 65536 },
		"no sender": func(m *SMTP) { m.From = "" }, "a sender with a name": func(m *SMTP) { m.From = "Durward <durward@example.test>" },
		"two senders": func(m *SMTP) { m.From = "a@example.test, b@example.test" }, "another way": func(m *SMTP) { m.TLS = "ssl" },
		"a user without a password": func(m *SMTP) { m.User = "x" }, "a password without a user": func(m *SMTP) { m.Password = seal.NewSecret("x") },
		"a password in the open": func(m *SMTP) { m.TLS, m.User, m.Password = NoTLS, "x", seal.NewSecret("x") },
	} {
		m := good
		if change(&m); m.Check() == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
