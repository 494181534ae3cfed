package exchange

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

const (
	ownIssuer   = "https://as.payroll.test"
	ownEndpoint = ownIssuer + "/token"
	publicURL   = "https://gate.test"
)

// upstreams knows the gateway's client at one authorization server.
type upstreams struct {
	at     storage.OAuthClient
	method string
	err    error
	asked  int
	mu     sync.Mutex
}

func (u *upstreams) OwnClient(context.Context, *storage.Server) (storage.OAuthClient, oauth.ClientAuth, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked++
	return u.at, oauth.ClientAuth{ID: "gateway-at-payroll", Secret: seal.NewSecret("s3cret-at-payroll"), Method: u.method}, u.err
}

// newOwnDesk makes a desk whose server has an authorization server of its own.
func newOwnDesk(t *testing.T, change func(e *storage.DirectoryEntry)) (*desk, *upstreams) {
	t.Helper()
	d := newDesk(t)
	u := &upstreams{method: oauth.AuthBasic, at: storage.OAuthClient{
		Issuer: ownIssuer, Scopes: []string{"read", "write"},
		Endpoints: storage.OAuthEndpoints{Issuer: ownIssuer, TokenEndpoint: ownEndpoint, Resource: "https://payroll.test/mcp"},
	}}
	d.Upstreams, d.PublicURL = u, publicURL
	d.LoginClient = func(at string) (string, seal.Secret, bool) {
		return "gateway-login", seal.NewSecret("login-s3cret"), at == issuer
	}
	d.provider.assert = func(r oauth.TokenExchangeRequest) (seal.Secret, error) {
		return seal.NewSecret("assertion about " + r.Subject.Reveal() + " for " + r.Audience), nil
	}
	d.provider.grant = func(form any) (oauth.Tokens, error) {
		access := "of the gateway"
		if r, ok := form.(oauth.AssertionRequest); ok {
			access = "for " + r.Assertion.Reveal()
		}
		return oauth.Tokens{Access: seal.NewSecret(access), ExpiresAt: d.now().Add(10 * time.Minute)}, nil
	}
	entry := &d.asking.Server.Entry
	entry.Options.Audience = ""
	change(entry)
	return d, u
}

func asserting(e *storage.DirectoryEntry) {
	e.Options.RequestedTokenType = storage.TokenIdentityAssertion
}

func asClient(e *storage.DirectoryEntry) { e.Provider = storage.ProviderClientCredentials }

// TestAssertion checks that the proof of a user goes to the identity provider, and only what it says for that server to the
// upstream's authorization server.
func TestAssertion(t *testing.T) {
	d, u := newOwnDesk(t, asserting)
	d.asking.Subject = proof("alice's ID token", IDToken)
	const token = "Bearer for assertion about alice's ID token for " + ownIssuer
	d.wants("the first", d.asking, token, 2)
	d.wants("the second", d.asking, token, 0)
	first := d.provider.last()
	if first.Endpoint != issuer+"/token" || first.Client.ID != "gateway-login" || first.Client.Secret.Reveal() != "login-s3cret" || first.SubjectType != "id_token" ||
		first.Audience != ownIssuer || first.Resource != "https://payroll.test/mcp" || first.Scope != "read write" {
		t.Errorf("the identity provider was sent %+v", first)
	}
	second, _ := d.provider.granted[0].(oauth.AssertionRequest)
	if second.Endpoint != ownEndpoint || second.Client.ID != "gateway-at-payroll" || second.Client.Secret.Reveal() != "s3cret-at-payroll" ||
		second.Resource != "https://payroll.test/mcp" || second.Scope != "read write" {
		t.Errorf("the server was sent %+v", second)
	}
	another := d.asking
	another.Subject = proof("alice's next ID token", IDToken)
	d.wants("another login", another, "Bearer for assertion about alice's next ID token for "+ownIssuer, 2)
	another.UserID = "bob"
	d.wants("another user", another, "Bearer for assertion about alice's next ID token for "+ownIssuer, 2)
	off := d.with(func(_ *Asking, s *storage.Server) {
		s.Entry.Options.ResourceOff, s.Entry.Source = true, storage.SourceConfig
	})
	d.wants("without a resource", off, token, 2)
	if r := d.provider.last(); r.Resource != "" {
		t.Errorf("sent %+v", r)
	}

	// The draft knows ID tokens here. Another type has to be asked for.
	d.asking.Subject = proof("alice's access token", AccessToken)
	d.refuses("an access token", d.asking, "only for clients whose user logs in at the gateway", 0)
	d.asking.Server.Entry.Options.SubjectTokenType = AccessToken
	d.wants("an access token that the entry takes", d.asking, "Bearer for assertion about alice's access token for "+ownIssuer, 2)

	d.asking.Server.Status = storage.ServerError
	d.refuses("a server out of order", d.asking, "an administrator must look at this server first", 0)
	if u.asked == 0 {
		t.Error("nobody was asked for the client")
	}
}

// TestAssertionRefused checks who is told what when there is no token, and that nothing is sent that should not be.
func TestAssertionRefused(t *testing.T) {
	protocol := func(code string) error {
		return &oauth.ProtocolError{Endpoint: "token", Status: 400, Code: code, Description: "CAUSE-CANARY"}
	}
	for name, c := range map[string]struct {
		change  func(d *desk, u *upstreams)
		says    string
		sent    int // to the identity provider
		granted int // to the upstream's server
	}{
		"the server is this gateway":           {func(_ *desk, u *upstreams) { u.at.Endpoints.Issuer = publicURL }, "names this gateway", 0, 0},
		"the server is this gateway, spelt so": {func(_ *desk, u *upstreams) { u.at.Endpoints.Issuer = publicURL + "/" }, "names this gateway", 0, 0},
		"a server without a name":              {func(_ *desk, u *upstreams) { u.at.Endpoints.Issuer = "" }, "must give its directory entry an issuer", 0, 0},
		"no server":                            {func(_ *desk, u *upstreams) { u.err = &connection.ConfigurationError{Cause: errors.New("CAUSE-CANARY")} }, "cannot be found or used", 0, 0},
		"no login client":                      {func(d *desk, _ *upstreams) { d.asking.Subject.Issuer = partner }, "login_client", 0, 0},
		"the provider refuses the user":        {func(d *desk, _ *upstreams) { d.fails(protocol("access_denied")) }, "the identity provider refuses you", 1, 0},
		"the provider refuses the gateway":     {func(d *desk, _ *upstreams) { d.fails(protocol("invalid_client")) }, "does not accept the gateway's own client", 2, 0}, // in either place
		"the provider knows no such server":    {func(d *desk, _ *upstreams) { d.fails(protocol("invalid_target")) }, "the identity provider gives no tokens for this server", 1, 0},
		"the provider knows no assertions":     {func(d *desk, _ *upstreams) { d.fails(protocol("unsupported_grant_type")) }, "does not exchange tokens", 1, 0},
		"the assertion is for somebody else":   {func(d *desk, _ *upstreams) { d.fails(&oauth.UnusableError{Cause: oauth.ErrMismatch}) }, "the identity provider's answer cannot be used", 1, 0},
		"the server refuses the user":          {func(d *desk, _ *upstreams) { d.refusesGrants(protocol("invalid_grant")) }, "the server's authorization server refuses you", 1, 1},
		"the server refuses its client":        {func(d *desk, u *upstreams) { u.method = oauth.AuthNone; d.refusesGrants(protocol("invalid_client")) }, "does not accept the server's OAuth client", 1, 1},
		"the server does not give the scopes":  {func(d *desk, _ *upstreams) { d.refusesGrants(protocol("invalid_scope")) }, "the server's authorization server does not give the scopes", 1, 1},
		"the server takes no assertions":       {func(d *desk, _ *upstreams) { d.refusesGrants(protocol("unsupported_grant_type")) }, "gives no tokens in this way", 1, 1},
		"the server's answer is no token":      {func(d *desk, _ *upstreams) { d.refusesGrants(&oauth.UnusableError{Cause: oauth.ErrMalformed}) }, "the server's authorization server's answer cannot be used", 1, 1},
		"the server gives what opens the gateway": {func(d *desk, _ *upstreams) {
			d.Opens = func(context.Context, seal.Secret, string, string) (bool, error) { return true, nil }
		}, "would open this gateway", 1, 1},
	} {
		d, u := newOwnDesk(t, asserting)
		d.asking.Subject = proof("alice", IDToken)
		if strings.Contains(name, "refuses its client") {
			d.asking.Server.Entry.Options.AuthMethod = oauth.AuthNone
		}
		c.change(d, u)
		d.refuses(name, d.asking, c.says, c.sent+c.granted)
		if len(d.provider.asked) != c.sent || len(d.provider.granted) != c.granted {
			t.Errorf("%s: the provider was asked %d times, the server %d times", name, len(d.provider.asked), len(d.provider.granted))
		}
		d.refuses(name+", at once", d.asking, c.says, 0)
		if _, err := d.Credential(t.Context(), d.asking); strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: another's words are shown: %v", name, err)
		}
		d.wantLog("exchanging a token", "issuer="+d.asking.Subject.Issuer)
	}
	for name, err := range map[string]error{
		"nobody answers":            &connection.ConfigurationError{Cause: fmt.Errorf("discovering: %w", oauth.ErrUnavailable)},
		"the store does not answer": storage.ErrUnavailable,
	} {
		d, u := newOwnDesk(t, asserting)
		d.asking.Subject, u.err = proof("alice", IDToken), err
		if _, got := d.Credential(t.Context(), d.asking); errors.Is(got, connection.ErrNotConnected) || !errors.Is(got, connection.ErrUnavailable) && !errors.Is(got, storage.ErrUnavailable) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// fails makes the identity provider give no assertion, and refusesGrants the upstream's server no token.
func (d *desk) fails(err error) {
	d.provider.assert = func(oauth.TokenExchangeRequest) (seal.Secret, error) { return seal.Secret{}, err }
}

func (d *desk) refusesGrants(err error) {
	d.provider.grant = func(any) (oauth.Tokens, error) { return oauth.Tokens{}, err }
}

// TestClientCredentials checks that everybody in an organization shares the gateway's own token, and nobody outside, and that
// it is got once, and once more after the server refused it.
func TestClientCredentials(t *testing.T) {
	d, _ := newOwnDesk(t, asClient)
	d.asking.Server.Entry.Options.Audience = "payroll"
	everybody := ForItself(d.asking.Server, organization)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := d.Credential(t.Context(), everybody); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := d.provider.times(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	first := d.wants("everybody's", everybody, "Bearer of the gateway", 0)
	want := oauth.ClientCredentialsRequest{Endpoint: ownEndpoint, Audience: "payroll", Resource: "https://payroll.test/mcp", Scope: "read write"}
	got, _ := d.provider.granted[0].(oauth.ClientCredentialsRequest)
	if got.Client.ID != "gateway-at-payroll" || got.Client.Secret.Reveal() != "s3cret-at-payroll" {
		t.Errorf("as %s", got.Client.ID)
	}
	if got.Client = (oauth.ClientAuth{}); got != want {
		t.Errorf("sent %+v", got)
	}
	if _, err := d.Credential(t.Context(), ForItself(d.asking.Server, "another")); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("another organization: %v", err)
	}
	next, err := d.Rejected(t.Context(), everybody, first)
	if err != nil || next.Version() == first.Version() || d.provider.times() != 2 {
		t.Errorf("after a 401: %v, asked %d times", err, d.provider.times())
	}
	if _, err := d.Rejected(t.Context(), everybody, next); err == nil || !strings.Contains(err.Error(), "gives the gateway") {
		t.Errorf("a second 401: %v", err)
	}
	d.forward(9 * time.Minute)
	d.wants("a minute before its end", everybody, "Bearer of the gateway", 1)
	for name, change := range map[string]func(s *storage.Server){
		"another server":   func(s *storage.Server) { s.ID = "s2" },
		"another address":  func(s *storage.Server) { s.Entry.URL = "https://payroll.test/other" },
		"another client":   func(s *storage.Server) { s.ClientID = "other" },
		"another audience": func(s *storage.Server) { s.Entry.Options.Audience = "sales" },
		"no resource":      func(s *storage.Server) { s.Entry.Options.ResourceOff = true },
	} {
		other := d.with(func(_ *Asking, s *storage.Server) { change(s) })
		d.wants(name, ForItself(other.Server, organization), "Bearer of the gateway", 1)
	}
	if d.counts[Exchanged] != d.provider.times() {
		t.Errorf("counted %v", d.counts)
	}
}

// TestClientCredentialsRefused checks the words for everybody, and that a refused client is tried in the other place.
func TestClientCredentialsRefused(t *testing.T) {
	for code, says := range map[string]string{
		"invalid_grant": "refuses the gateway a token for this server; an administrator", "access_denied": "refuses the gateway a token",
		"invalid_scope": "does not give the scopes", "invalid_target": "gives no tokens for this server", "unsupported_grant_type": "gives no tokens in this way",
	} {
		d, _ := newOwnDesk(t, asClient)
		d.refusesGrants(&oauth.ProtocolError{Endpoint: "token", Code: code, Description: "CAUSE-CANARY"})
		everybody := ForItself(d.asking.Server, organization)
		d.refuses(code, everybody, says, 1)
		d.refuses(code+", at once", everybody, says, 0)
		d.wantLog("getting a token for the gateway itself", "organization="+organization, "server=payroll")
	}
	d, _ := newOwnDesk(t, asClient)
	d.provider.grant = func(form any) (oauth.Tokens, error) {
		if r, _ := form.(oauth.ClientCredentialsRequest); r.Client.Method == oauth.AuthBasic {
			return oauth.Tokens{}, &oauth.ProtocolError{Endpoint: "token", Code: "invalid_client"}
		}
		return oauth.Tokens{Access: seal.NewSecret("a")}, nil
	}
	d.wants("the other place", ForItself(d.asking.Server, organization), "Bearer a", 2)
}

// jwtOf returns what a platform says: claims, and a signature that is others' concern.
func jwtOf(claims string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

// TestWorkload checks what is done with what the platform says about the gateway: it goes to those for whom it was made, while
// it is good, and is read each time.
func TestWorkload(t *testing.T) {
	said := func(audience string, good time.Duration) string {
		return jwtOf(fmt.Sprintf(`{"aud":%s,"exp":%d}`, audience, time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC).Add(good).Unix()))
	}
	for name, c := range map[string]struct {
		statement string
		audience  string // of the entry
		says      string // "": it is sent
	}{
		"for the issuer":                 {said(`"`+ownIssuer+`"`, time.Hour), "", ""},
		"for the issuer, with a slash":   {said(`["`+ownIssuer+`/"]`, time.Hour), "", ""},
		"for the endpoint":               {said(`"`+ownEndpoint+`"`, time.Hour), "", ""},
		"for what the entry says":        {said(`"api://exchange"`, time.Hour), "api://exchange", ""},
		"for the issuer, not as it says": {said(`"`+ownIssuer+`"`, time.Hour), "api://exchange", "is for somebody else"},
		"for a stranger":                 {said(`"https://stranger.test"`, time.Hour), "", "is for somebody else"},
		"for a stranger too":             {said(`["`+ownIssuer+`","https://stranger.test"]`, time.Hour), "", "is for somebody else"},
		"for nobody":                     {jwtOf(`{"exp":4102444800}`), "", "is for somebody else"},
		"for the slash":                  {said(`"/"`, time.Hour), "", "is for somebody else"},
		"expired":                        {said(`"`+ownIssuer+`"`, 0), "", "has expired"},
		"without an end":                 {jwtOf(`{"aud":"` + ownIssuer + `"}`), "", "cannot be used"},
		"no JWT":                         {"STATEMENT-CANARY", "", "cannot be used"},
		"nothing":                        {"", "", "cannot be read"},
	} {
		d, _ := newOwnDesk(t, func(e *storage.DirectoryEntry) {
			e.Provider, e.Source, e.Options.Audience = storage.ProviderWorkloadIdentity, storage.SourceConfig, c.audience
			e.Options.AssertionFile = "/var/run/statement"
		})
		read := []string{}
		d.Statement = func(path string) (seal.Secret, error) {
			if read = append(read, path); c.statement == "" {
				return seal.Secret{}, errors.New("no such file")
			}
			return seal.NewSecret(c.statement), nil
		}
		everybody := ForItself(d.asking.Server, organization)
		if c.says != "" {
			d.refuses(name, everybody, c.says, 0)
			if strings.Contains(d.log.String(), "CANARY") {
				t.Errorf("%s: the log shows it", name)
			}
			continue
		}
		d.wants(name, everybody, "Bearer for "+c.statement, 1)
		d.forward(9 * time.Minute)
		d.wants(name+", anew", everybody, "Bearer for "+c.statement, 1)
		if diff := cmp.Diff([]string{"/var/run/statement", "/var/run/statement"}, read); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if r, _ := d.provider.granted[0].(oauth.AssertionRequest); r.Endpoint != ownEndpoint || r.Scope != "read write" || len(d.provider.asked) != 0 {
			t.Errorf("%s: sent %+v", name, r)
		}
	}

	// The token endpoint of an entry has no issuer.
	for _, audience := range []string{`""`, `"/"`} {
		d, u := newOwnDesk(t, func(e *storage.DirectoryEntry) {
			e.Provider, e.Source = storage.ProviderWorkloadIdentity, storage.SourceConfig
		})
		u.at.Endpoints.Issuer = ""
		d.Statement = func(string) (seal.Secret, error) { return seal.NewSecret(said(audience, time.Hour)), nil }
		d.refuses("for "+audience, ForItself(d.asking.Server, organization), "is for somebody else", 0)
	}
	// Another file is another identity.
	files, _ := newOwnDesk(t, func(e *storage.DirectoryEntry) {
		e.Provider, e.Source = storage.ProviderWorkloadIdentity, storage.SourceConfig
	})
	files.Statement = func(string) (seal.Secret, error) { return seal.NewSecret(said(`"`+ownIssuer+`"`, time.Hour)), nil }
	for _, file := range []string{"/a", "/b"} {
		other := files.with(func(_ *Asking, s *storage.Server) { s.Entry.Options.AssertionFile = file })
		files.wants(file, ForItself(other.Server, organization), "Bearer for "+said(`"`+ownIssuer+`"`, time.Hour), 1)
	}
	itself := files.with(func(_ *Asking, s *storage.Server) {
		s.Entry.Provider, s.Entry.Options.AssertionFile = storage.ProviderClientCredentials, "/b"
	})
	files.wants("another kind", ForItself(itself.Server, organization), "Bearer of the gateway", 1)
	// An administrator's entry reads no file, whoever let it be stored.
	d, _ := newOwnDesk(t, func(e *storage.DirectoryEntry) {
		e.Provider, e.Options.AssertionFile = storage.ProviderWorkloadIdentity, "/etc/durward/master.key"
	})
	d.Statement = func(string) (seal.Secret, error) { t.Error("a file is read"); return seal.Secret{}, nil }
	d.refuses("an administrator's", ForItself(d.asking.Server, organization), "only the gateway's configuration", 0)
	// A refusal is final for a while: the statement is not sent again, nor anything else.
	d, _ = newOwnDesk(t, func(e *storage.DirectoryEntry) {
		e.Provider, e.Source = storage.ProviderWorkloadIdentity, storage.SourceConfig
	})
	d.Statement = func(string) (seal.Secret, error) { return seal.NewSecret(said(`"`+ownIssuer+`"`, time.Hour)), nil }
	d.refusesGrants(&oauth.ProtocolError{Endpoint: "token", Code: "invalid_grant"})
	for i := range 3 {
		d.refuses("refused", ForItself(d.asking.Server, organization), "refuses the gateway a token", max(0, 1-i))
	}
	// Without a reader there is no statement, and without a login client no assertion.
	bare := New(Options{Memory: NewMemory(), Now: d.now})
	t.Cleanup(bare.Close)
	if _, err := bare.Statement("x"); err == nil {
		t.Error("a statement out of nowhere")
	}
	if _, _, ok := bare.LoginClient(issuer); ok {
		t.Error("a client out of nowhere")
	}
}
