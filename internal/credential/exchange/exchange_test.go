package exchange

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/proxy/http1"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/seal/sealtest"
	"github.com/durward-gateway/durward/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	organization = "01900000-0000-7000-8000-000000000001"
	issuer       = "https://id.test"
	partner      = "https://partner.test" // another identity provider of the configuration
	stranger     = "https://stranger.test"
)

// protocol is an identity provider.
type protocol struct {
	mu     sync.Mutex
	asked  []oauth.TokenExchangeRequest
	found  []string // issuers whose metadata was fetched
	answer func(r oauth.TokenExchangeRequest) (oauth.Tokens, error)
	fetch  error
	// methods are the places of secrets that the metadata lists.
	methods []string

	// assert answers the first step of an exchange by an assertion, grant what an upstream's own server is asked.
	assert  func(r oauth.TokenExchangeRequest) (seal.Secret, error)
	grant   func(form any) (oauth.Tokens, error)
	granted []any
}

func (p *protocol) ExchangeForAssertion(_ context.Context, r oauth.TokenExchangeRequest) (seal.Secret, error) {
	p.mu.Lock()
	p.asked = append(p.asked, r)
	p.mu.Unlock()
	return p.assert(r)
}

func (p *protocol) RedeemAssertion(_ context.Context, r oauth.AssertionRequest) (oauth.Tokens, error) {
	return p.grants(r)
}

func (p *protocol) ClientCredentials(_ context.Context, r oauth.ClientCredentialsRequest) (oauth.Tokens, error) {
	return p.grants(r)
}

func (p *protocol) grants(form any) (oauth.Tokens, error) {
	p.mu.Lock()
	p.granted = append(p.granted, form)
	p.mu.Unlock()
	return p.grant(form)
}

func (p *protocol) FetchProvider(_ context.Context, issuer string) (oauth.Discovery, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found = append(p.found, issuer)
	return oauth.Discovery{Endpoints: storage.OAuthEndpoints{Issuer: issuer, TokenEndpoint: issuer + "/token"}, AuthMethods: p.methods}, p.fetch
}

func (p *protocol) ObtainClient(ctx context.Context, d oauth.Discovery, app oauth.Application) (oauth.Registration, error) {
	return oauth.New(netguard.New(netguard.Policy{}), nil).ObtainClient(ctx, d, app)
}

func (p *protocol) ExchangeToken(_ context.Context, r oauth.TokenExchangeRequest) (oauth.Tokens, error) {
	p.mu.Lock()
	p.asked = append(p.asked, r)
	answer := p.answer
	p.mu.Unlock()
	return answer(r)
}

func (p *protocol) last() oauth.TokenExchangeRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked[len(p.asked)-1]
}

func (p *protocol) times() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked) + len(p.granted)
}

// vault opens what was sealed by writing the place before it.
type vault struct{}

func (vault) Open(sealed []byte, at seal.AD) ([]byte, error) {
	plain, ok := bytes.CutPrefix(sealed, []byte(at.Organization+at.Record+at.Column+":"))
	if !ok {
		return nil, seal.ErrOpen
	}
	return bytes.Clone(plain), nil
}

// desk is an exchanger with an identity provider, a user and a server.
type desk struct {
	*Exchanger
	t        *testing.T
	provider *protocol
	clock    atomic.Int64
	log      bytes.Buffer
	counts   map[Event]int
	asking   Asking
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, counts: map[Event]int{}}
	d.clock.Store(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	d.provider = &protocol{answer: func(r oauth.TokenExchangeRequest) (oauth.Tokens, error) {
		return oauth.Tokens{Access: seal.NewSecret(r.Audience + " for " + r.Subject.Reveal()), ExpiresAt: d.now().Add(10 * time.Minute)}, nil
	}}
	var mu sync.Mutex
	d.Exchanger = New(Options{
		Memory: NewMemory(), OAuth: d.provider, Keyring: vault{}, Now: d.now, Log: slog.New(slog.NewTextHandler(&d.log, nil)),
		Known: func(name string) bool { return name == issuer || name == partner },
		Count: func(e Event) { mu.Lock(); defer mu.Unlock(); d.counts[e]++ },
	})
	t.Cleanup(d.Close)
	d.asking = Asking{OrganizationID: organization, UserID: "alice", Subject: proof("alice", AccessToken), Server: &storage.Server{
		ID: "s1", OrganizationID: organization, Slug: "payroll", Status: storage.ServerActive, ClientID: "gateway", SealedClientSecret: []byte(organization + "s1" + "client_secret:s3cret"),
		Entry: storage.DirectoryEntry{
			URL: "https://payroll.test/mcp", Provider: storage.ProviderTokenExchange, RequiresAuth: true, Source: storage.SourceCustom,
			Options: storage.EntryOptions{Audience: "payroll"},
		},
	}}
	return d
}

func (d *desk) now() time.Time           { return time.Unix(0, d.clock.Load()).UTC() }
func (d *desk) forward(by time.Duration) { d.clock.Add(int64(by)) }
func proof(text, kind string) Subject {
	return Subject{Issuer: issuer, ID: text, Type: kind, Proof: func(context.Context) (seal.Secret, error) { return seal.NewSecret(text), nil }}
}

// with returns the desk's question with another server; change changes a copy.
func (d *desk) with(change func(a *Asking, s *storage.Server)) Asking {
	a, s := d.asking, *d.asking.Server
	a.Server = &s
	change(&a, &s)
	return a
}

// header returns what a credential puts on a request to the server.
func (d *desk) header(c connection.Credential) string {
	d.t.Helper()
	at, err := url.Parse("https://payroll.test/mcp")
	if err != nil {
		d.t.Fatal(err)
	}
	r := &http1.Request{URL: at}
	if err := c.Apply(r); err != nil {
		d.t.Fatal(err)
	}
	return r.Get("Authorization")
}

// wants checks the token of a question, and how often the identity provider was asked for it.
func (d *desk) wants(what string, a Asking, header string, asked int) connection.Credential {
	d.t.Helper()
	before := d.provider.times()
	c, err := d.Credential(d.t.Context(), a)
	if err != nil {
		d.t.Fatalf("%s: %v", what, err)
	}
	if got := d.header(c); got != header || d.provider.times()-before != asked {
		d.t.Errorf("%s: %q, asked %d times", what, got, d.provider.times()-before)
	}
	return c
}

// refuses checks the words of a refusal, and how often the identity provider was asked.
func (d *desk) refuses(what string, a Asking, says string, asked int) {
	d.t.Helper()
	before := d.provider.times()
	_, err := d.Credential(d.t.Context(), a)
	said, ok := errors.AsType[*connection.NotConnectedError](err)
	if !ok || !said.NoStep || !strings.Contains(said.Reason, says) || d.provider.times()-before != asked {
		d.t.Errorf("%s: %v, asked %d times", what, err, d.provider.times()-before)
	}
}

// TestExchange checks what is sent, and that a token serves its own user, proof, server and settings until it ends.
func TestExchange(t *testing.T) {
	d := newDesk(t)
	d.asking.Server.Entry.Scopes = []string{"read", "write"}
	d.asking.Server.Entry.OAuth.Resource = "https://payroll.test/mcp"
	d.wants("the first", d.asking, "Bearer payroll for alice", 1)
	d.wants("the second", d.asking, "Bearer payroll for alice", 0)
	r := d.provider.last()
	if r.Endpoint != issuer+"/token" || r.Client.ID != "gateway" || r.Client.Secret.Reveal() != "s3cret" || r.Client.Method != oauth.AuthBasic ||
		r.SubjectType != "access_token" || r.RequestedType != "access_token" || r.Audience != "payroll" || r.Resource != "https://payroll.test/mcp" || r.Scope != "read write" {
		t.Errorf("sent %+v", r)
	}
	for name, change := range map[string]func(a *Asking, s *storage.Server){
		"another user":   func(a *Asking, _ *storage.Server) { a.UserID = "bob" },
		"another token":  func(a *Asking, _ *storage.Server) { a.Subject.ID = "alice's other token" },
		"a login":        func(a *Asking, _ *storage.Server) { a.Subject.Type = IDToken },
		"another client": func(_ *Asking, s *storage.Server) { s.ClientID = "other" },
		"another secret": func(_ *Asking, s *storage.Server) {
			s.SealedClientSecret = append(s.SealedClientSecret[:len(s.SealedClientSecret):len(s.SealedClientSecret)], 'x')
		},
		"other scopes":           func(_ *Asking, s *storage.Server) { s.Entry.Scopes = []string{"read"} },
		"another resource":       func(_ *Asking, s *storage.Server) { s.Entry.OAuth.Resource = "urn:other" },
		"another requested type": func(_ *Asking, s *storage.Server) { s.Entry.Options.RequestedTokenType = "jwt" },
		"another subject type":   func(_ *Asking, s *storage.Server) { s.Entry.Options.SubjectTokenType = "jwt" },
		"another method":         func(_ *Asking, s *storage.Server) { s.Entry.Options.AuthMethod = oauth.AuthPost },
		"an issuer":              func(_ *Asking, s *storage.Server) { s.Entry.OAuth.Issuer = issuer },
		"other authorities":      func(_ *Asking, s *storage.Server) { s.Entry.Options.TrustedCA = "x" },
		"another stream":         func(_ *Asking, s *storage.Server) { s.Entry.EventsURL = "https://payroll.test/events" },
	} {
		d.wants(name, d.with(change), "Bearer payroll for alice", 1)
	}
	d.wants("another audience", d.with(func(_ *Asking, s *storage.Server) { s.Entry.Options.Audience = "sales" }), "Bearer sales for alice", 1)
	moved := d.with(func(_ *Asking, s *storage.Server) { s.Entry.URL = "https://moved.test/mcp" })
	c, err := d.Credential(t.Context(), moved)
	if err != nil {
		t.Fatal(err)
	}
	at, _ := url.Parse("https://payroll.test/mcp")
	if c.Apply(&http1.Request{URL: at}) == nil {
		t.Error("a token goes to another address than its own")
	}
	if got := len(d.provider.found); got != 1 {
		t.Errorf("the metadata was fetched %d times", got)
	}
	if _, err := d.Credential(t.Context(), d.with(func(a *Asking, _ *storage.Server) { a.OrganizationID = "other" })); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("another organization: %v", err)
	}
	d.forward(9 * time.Minute)
	d.wants("a minute before its end", d.asking, "Bearer payroll for alice", 1)
	if d.counts[Exchanged] != d.provider.times() || d.counts[Failed] != 0 {
		t.Errorf("counted %v", d.counts)
	}
}

// TestLifetimes checks how long a token is used.
func TestLifetimes(t *testing.T) {
	for name, c := range map[string]struct {
		expires, good time.Duration
	}{
		"unknown": {0, 45 * time.Second}, "short": {20 * time.Second, 15 * time.Second}, "usual": {10 * time.Minute, 9 * time.Minute}, "long": {24 * time.Hour, time.Hour},
	} {
		d := newDesk(t)
		d.provider.answer = func(oauth.TokenExchangeRequest) (oauth.Tokens, error) {
			tokens := oauth.Tokens{Access: seal.NewSecret("a")}
			if c.expires != 0 {
				tokens.ExpiresAt = d.now().Add(c.expires)
			}
			return tokens, nil
		}
		d.wants(name, d.asking, "Bearer a", 1)
		d.forward(c.good - time.Second)
		d.wants(name+", before", d.asking, "Bearer a", 0)
		d.forward(time.Second)
		d.wants(name+", after", d.asking, "Bearer a", 1)
	}
}

// TestStrangers checks that the proof of a user goes to their identity provider alone, unless the operator names another
// endpoint: an administrator who could name one would get tokens that open the gateway.
func TestStrangers(t *testing.T) {
	for name, c := range map[string]struct {
		source   storage.Source
		oauth    storage.OAuthEndpoints
		endpoint string // "": nothing is sent
	}{
		"an administrator names nothing":                       {storage.SourceCustom, storage.OAuthEndpoints{}, issuer + "/token"},
		"an administrator names the provider":                  {storage.SourceCustom, storage.OAuthEndpoints{Issuer: issuer}, issuer + "/token"},
		"an administrator names a stranger":                    {storage.SourceCustom, storage.OAuthEndpoints{Issuer: stranger}, ""},
		"an administrator names another organization's":        {storage.SourceCustom, storage.OAuthEndpoints{Issuer: partner}, ""},
		"an administrator names an endpoint":                   {storage.SourceCustom, storage.OAuthEndpoints{TokenEndpoint: stranger + "/t"}, ""},
		"an administrator names an endpoint beside the issuer": {storage.SourceCustom, storage.OAuthEndpoints{Issuer: issuer, TokenEndpoint: stranger + "/t"}, ""},
		"the operator names nothing":                           {storage.SourceConfig, storage.OAuthEndpoints{}, issuer + "/token"},
		"the operator names a stranger":                        {storage.SourceConfig, storage.OAuthEndpoints{Issuer: stranger}, stranger + "/token"},
		"the operator names an endpoint":                       {storage.SourceConfig, storage.OAuthEndpoints{TokenEndpoint: stranger + "/t"}, stranger + "/t"},
		"the operator names another provider":                  {storage.SourceConfig, storage.OAuthEndpoints{Issuer: partner}, ""},
		"the operator names an endpoint of another provider":   {storage.SourceConfig, storage.OAuthEndpoints{Issuer: partner, TokenEndpoint: partner + "/t"}, ""},
	} {
		d := newDesk(t)
		d.asking.Server.Entry.Source, d.asking.Server.Entry.OAuth = c.source, c.oauth
		read := false
		d.asking.Subject.Proof = func(context.Context) (seal.Secret, error) { read = true; return seal.NewSecret("alice"), nil }
		_, err := d.Credential(t.Context(), d.asking)
		if c.endpoint == "" {
			if !errors.Is(err, connection.ErrNotConnected) || d.provider.times() != 0 || read {
				t.Errorf("%s: %v, sent %d times", name, err, d.provider.times())
			}
			continue
		}
		if err != nil || d.provider.last().Endpoint != c.endpoint {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSubjectTypes checks which proofs an entry takes, and under which name they are sent.
func TestSubjectTypes(t *testing.T) {
	for _, c := range []struct{ wanted, have, sent string }{
		{"", AccessToken, "access_token"}, {"", IDToken, "id_token"}, {"jwt", AccessToken, "jwt"}, {"jwt", IDToken, "jwt"},
		{AccessToken, AccessToken, "access_token"}, {AccessToken, IDToken, ""}, {IDToken, IDToken, "id_token"}, {IDToken, AccessToken, ""},
	} {
		d := newDesk(t)
		d.asking.Server.Entry.Options.SubjectTokenType, d.asking.Subject.Type = c.wanted, c.have
		if c.sent == "" {
			d.refuses(c.wanted+" of "+c.have, d.asking, "only for clients", 0)
			continue
		}
		d.wants(c.wanted+" of "+c.have, d.asking, "Bearer payroll for alice", 1)
		if got := d.provider.last().SubjectType; got != c.sent {
			t.Errorf("%s of %s is sent as %s", c.wanted, c.have, got)
		}
	}
}

// TestParallel has many callers ask at one moment: the identity provider is asked once, and the exchange goes on when the
// first of them leaves.
func TestParallel(t *testing.T) {
	d := newDesk(t)
	begun, goOn := make(chan struct{}, 1), make(chan struct{})
	answer := d.provider.answer
	d.provider.answer = func(r oauth.TokenExchangeRequest) (oauth.Tokens, error) {
		begun <- struct{}{}
		<-goOn
		return answer(r)
	}
	ctx, leave := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := d.Credential(ctx, d.asking); !errors.Is(err, context.Canceled) {
			t.Errorf("who left: %v", err)
		}
	})
	select {
	case <-begun:
	case <-time.After(time.Minute):
		t.Fatalf("nobody asks: %s", d.log.String())
	}
	leave()
	for range 20 {
		all.Go(func() {
			if _, err := d.Credential(t.Context(), d.asking); err != nil {
				t.Error(err)
			}
		})
	}
	close(goOn)
	all.Wait()
	if n := d.provider.times(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestRejected checks that a token which the server refuses is replaced once, for all who have it.
func TestRejected(t *testing.T) {
	d := newDesk(t)
	serial := 0
	d.provider.answer = func(oauth.TokenExchangeRequest) (oauth.Tokens, error) {
		serial++
		return oauth.Tokens{Access: seal.NewSecret(strings.Repeat("t", serial)), ExpiresAt: d.now().Add(time.Hour)}, nil
	}
	first := d.wants("the first", d.asking, "Bearer t", 1)
	for range 3 {
		second, err := d.Rejected(t.Context(), d.asking, first)
		if err != nil || d.header(second) != "Bearer tt" || second.Version() == first.Version() {
			t.Fatalf("%v", err)
		}
	}
	if d.provider.times() != 2 {
		t.Errorf("asked %d times", d.provider.times())
	}
	second := d.wants("the second", d.asking, "Bearer tt", 0)
	for range 3 {
		if _, err := d.Rejected(t.Context(), d.asking, second); !errors.Is(err, connection.ErrNotConnected) {
			t.Errorf("the second: %v", err)
		}
	}
	if d.provider.times() != 2 {
		t.Errorf("a server that refuses everything makes the provider be asked %d times", d.provider.times())
	}
	d.forward(rejectedTwice)
	third, err := d.Rejected(t.Context(), d.asking, second)
	if err != nil || d.header(third) != "Bearer ttt" {
		t.Errorf("later: %v", err)
	}
	d.provider.answer = func(oauth.TokenExchangeRequest) (oauth.Tokens, error) {
		return oauth.Tokens{}, &oauth.ProtocolError{Endpoint: "token", Code: "access_denied"}
	}
	d.forward(rejectedTwice)
	if _, err := d.Rejected(t.Context(), d.asking, third); !errors.Is(err, connection.ErrNotConnected) {
		t.Errorf("refused: %v", err)
	}
	d.refuses("a token that was refused is not used again", d.asking, "refuses you", 0)
}

// TestFailures checks the words for each failure, that it is remembered for a while, and that the cause is in the log alone.
func TestFailures(t *testing.T) {
	protocol := func(code string) error {
		return &oauth.ProtocolError{Endpoint: "token", Status: 400, Code: code, Description: "CAUSE-CANARY"}
	}
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"invalid_grant":   {protocol("invalid_grant"), "refuses you"},
		"invalid_request": {protocol("invalid_request"), "refuses you"},
		"access_denied":   {protocol("access_denied"), "refuses you"},
		"invalid_target":  {protocol("invalid_target"), "gives no tokens for this server"},
		"invalid_scope":   {protocol("invalid_scope"), "scopes"},
		"no exchange":     {protocol("unsupported_grant_type"), "does not exchange tokens"},
		"the client":      {protocol("invalid_client"), "OAuth client"},
		"no words":        {protocol(""), "cannot be used"},
		"malformed":       {&oauth.UnusableError{Cause: oauth.ErrMalformed}, "cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.asking.Server.Entry.Options.AuthMethod = oauth.AuthBasic // a refused client is not tried in the other place
			good := d.provider.answer
			d.provider.answer = func(oauth.TokenExchangeRequest) (oauth.Tokens, error) { return oauth.Tokens{}, c.err }
			d.refuses("the first", d.asking, c.says, 1)
			d.refuses("at once", d.asking, c.says, 0)
			d.wantLog("exchanging a token", "organization="+organization, "user=alice", "server=payroll")
			if _, err := d.Credential(t.Context(), d.asking); strings.Contains(err.Error(), "CANARY") {
				t.Errorf("the provider's words are shown: %v", err)
			}
			if d.counts[Failed] != 1 {
				t.Errorf("counted %v", d.counts)
			}
			d.wants("another's", d.withGood(good, "bob"), "Bearer payroll for bob", 1)
			d.forward(firstWait + firstWait/4)
			d.wants("later", d.asking, "Bearer payroll for alice", 1)
		})
	}
	t.Run("away", func(t *testing.T) {
		d := newDesk(t)
		d.provider.answer = func(oauth.TokenExchangeRequest) (oauth.Tokens, error) { return oauth.Tokens{}, oauth.ErrUnavailable }
		for _, wait := range []time.Duration{firstWait, 2 * firstWait, 4 * firstWait, lastWait, lastWait} {
			before := d.provider.times()
			for range 3 {
				_, err := d.Credential(t.Context(), d.asking)
				away, ok := errors.AsType[*connection.UnavailableError](err)
				if !ok || away.RetryAfter < wait || away.RetryAfter > wait+wait/4 {
					t.Errorf("%v, %+v", err, away)
				}
			}
			if d.provider.times() != before+1 {
				t.Errorf("asked %d times", d.provider.times()-before)
			}
			d.forward(wait + wait/4)
		}
	})
	t.Run("metadata", func(t *testing.T) {
		d := newDesk(t)
		d.provider.fetch = oauth.ErrUnavailable
		if _, err := d.Credential(t.Context(), d.asking); !errors.Is(err, connection.ErrUnavailable) {
			t.Errorf("%v", err)
		}
		d = newDesk(t)
		d.provider.fetch = oauth.ErrMismatch
		d.refuses("another's metadata", d.asking, "cannot be used", 0)
	})
	t.Run("the proof", func(t *testing.T) {
		for _, err := range []error{&connection.NotConnectedError{Reason: "log in anew", NoStep: true}, &connection.UnavailableError{Cause: errors.New("away")}, storage.ErrUnavailable} {
			d := newDesk(t)
			read := 0
			d.asking.Subject.Proof = func(context.Context) (seal.Secret, error) { read++; return seal.Secret{}, err }
			for range 2 {
				if _, got := d.Credential(t.Context(), d.asking); got == nil || errors.Is(err, connection.ErrNotConnected) != errors.Is(got, connection.ErrNotConnected) ||
					errors.Is(err, storage.ErrUnavailable) != errors.Is(got, storage.ErrUnavailable) || errors.Is(err, connection.ErrUnavailable) != errors.Is(got, connection.ErrUnavailable) {
					t.Errorf("%v becomes %v", err, got)
				}
			}
			if want := map[bool]int{true: 2, false: 1}[errors.Is(err, storage.ErrUnavailable)]; read != want || d.provider.times() != 0 {
				t.Errorf("%v: read %d times", err, read)
			}
		}
	})
	t.Run("no client", func(t *testing.T) {
		d := newDesk(t)
		d.asking.Server.ClientID = ""
		d.refuses("no client", d.asking, "no OAuth client", 0)
		d.asking.Server.Status = storage.ServerPending
		if _, err := d.Credential(t.Context(), d.asking); !errors.Is(err, connection.ErrNotConnected) {
			t.Errorf("a server that waits for its client: %v", err)
		}
	})
}

func (d *desk) wantLog(says ...string) {
	d.t.Helper()
	for _, word := range says {
		if !strings.Contains(d.log.String(), word) {
			d.t.Errorf("the log lacks %q: %s", word, d.log.String())
		}
	}
}

// withGood lets the provider answer again, and returns the question of another user.
func (d *desk) withGood(answer func(oauth.TokenExchangeRequest) (oauth.Tokens, error), user string) Asking {
	d.provider.answer = answer
	a := d.asking
	a.UserID, a.Subject = user, proof(user, AccessToken)
	return a
}

// TestPlaceOfSecret checks where the client's secret goes: as the metadata or the entry says, and once in the other place.
func TestPlaceOfSecret(t *testing.T) {
	refuse := func(method string, answer func(oauth.TokenExchangeRequest) (oauth.Tokens, error)) func(oauth.TokenExchangeRequest) (oauth.Tokens, error) {
		return func(r oauth.TokenExchangeRequest) (oauth.Tokens, error) {
			if r.Client.Method == method {
				return oauth.Tokens{}, &oauth.ProtocolError{Endpoint: "token", Code: "invalid_client"}
			}
			return answer(r)
		}
	}
	d := newDesk(t)
	d.provider.answer = refuse(oauth.AuthBasic, d.provider.answer)
	d.wants("the other place", d.asking, "Bearer payroll for alice", 2)
	d.wants("remembered", d.withGood(d.provider.answer, "bob"), "Bearer payroll for bob", 1)

	d = newDesk(t)
	d.provider.methods = []string{oauth.AuthPost}
	d.wants("as listed", d.asking, "Bearer payroll for alice", 1)
	if got := d.provider.last().Client.Method; got != oauth.AuthPost {
		t.Errorf("sent by %s", got)
	}
	for method, secret := range map[string]string{oauth.AuthPost: "s3cret", oauth.AuthNone: ""} {
		d = newDesk(t)
		d.asking.Server.Entry.Options.AuthMethod = method
		d.wants(method, d.asking, "Bearer payroll for alice", 1)
		if got := d.provider.last().Client; got.Method != method || got.Secret.Reveal() != secret {
			t.Errorf("sent by %s", got.Method)
		}
	}
	d = newDesk(t)
	d.asking.Server.SealedClientSecret = nil
	d.wants("a public client", d.asking, "Bearer payroll for alice", 1)
	if got := d.provider.last().Client; got.Method != oauth.AuthNone {
		t.Errorf("sent by %s", got.Method)
	}
	d = newDesk(t)
	d.asking.Server.SealedClientSecret = []byte("another's")
	if _, err := d.Credential(t.Context(), d.asking); !errors.Is(err, seal.ErrOpen) || d.provider.times() != 0 {
		t.Errorf("a secret of another record: %v", err)
	}
}

// TestOpensGateway checks that a token which opens the gateway goes to no server.
func TestOpensGateway(t *testing.T) {
	d := newDesk(t)
	var undecided error
	d.Opens = func(_ context.Context, token seal.Secret, audience, resource string) (bool, error) {
		if audience != "payroll" || resource != "urn:payroll" {
			t.Errorf("asked about %s, %s", audience, resource)
		}
		return token.Reveal() == "payroll for alice", undecided
	}
	d.asking.Server.Entry.OAuth.Resource = "urn:payroll"
	d.refuses("it opens the gateway", d.asking, "would open this gateway", 1)
	d.refuses("nor later", d.asking, "would open this gateway", 0)
	d.wants("another's", d.withGood(d.provider.answer, "bob"), "Bearer payroll for bob", 1)
	undecided = errors.New("the keys cannot be fetched")
	if _, err := d.Credential(t.Context(), d.withGood(d.provider.answer, "carol")); !errors.Is(err, connection.ErrUnavailable) {
		t.Errorf("undecided: %v", err)
	}
}

// TestClose checks that nothing is asked afterwards, and that a panic of the protocol ends nothing else.
func TestClose(t *testing.T) {
	d := newDesk(t)
	d.provider.answer = func(oauth.TokenExchangeRequest) (oauth.Tokens, error) { panic("SECRET-CANARY") }
	if _, err := d.Credential(t.Context(), d.asking); !errors.Is(err, connection.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if strings.Contains(d.log.String(), "CANARY") {
		t.Error("L02 the log shows the panic")
	}
	d.Close()
	d.Close()
	if _, err := d.Credential(t.Context(), d.withGood(d.provider.answer, "bob")); !errors.Is(err, connection.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// TestSilent checks L01: nothing here shows a token.
func TestSilent(t *testing.T) {
	secret := seal.NewSecret(sealtest.Canary)
	sealtest.Silent(t, kept{token: secret}, &kept{token: secret}, oauth.TokenExchangeRequest{Subject: secret, Client: oauth.ClientAuth{Secret: secret}})
}
