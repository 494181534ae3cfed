package connection

import (
	"context"
	"errors"
	"net/textproto"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/proxy/http1"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

func TestConnectOAuth(t *testing.T) {
	b := setup(t)
	if got := b.status(); got != storage.ConnectionPending {
		t.Errorf("before: %s", got)
	}
	began := b.begin()
	b.server = b.reload(b.server)
	if b.server.Status != storage.ServerActive {
		t.Errorf("server is %s after its first registration", b.server.Status)
	}
	if got := b.status(); got != storage.ConnectionPending {
		t.Errorf("under way: %s", got)
	}
	back := b.provider.approve(*began.AuthURL)
	r, err := b.Callback(t.Context(), back, ownBrowser)
	if err != nil || !r.OK {
		t.Fatalf("%+v, %v\n%s", r, err, b.log)
	}
	if r.ReturnURL != appURL+"?status=connected&server=demo" || r.UserID != b.who.UserID || r.Server.ID != b.server.ID || r.Undo == "" {
		t.Errorf("result %+v", r)
	}
	c := b.connection()
	if c.ID != began.ConnectionID || c.Origin != b.provider.URL || c.Resource != b.provider.URL+"/mcp" || c.Issuer != b.provider.URL {
		t.Errorf("stored %+v", c)
	}
	if want := b.clock.now().Add(time.Hour); !c.ExpiresAt.Equal(want) {
		t.Errorf("expires %s, want %s", c.ExpiresAt, want)
	}
	if got := b.status(); got != storage.ConnectionConnected {
		t.Errorf("after: %s", got)
	}
	b.use(b.Broker)

	// A second connect keeps the client and the id. The old connection stays until the new one is there.
	again := b.begin()
	if again.ConnectionID != began.ConnectionID {
		t.Error("another connection id")
	}
	if got := b.status(); got != storage.ConnectionConnected {
		t.Errorf("a second attempt disturbs the connection: %s", got)
	}
	r, err = b.Callback(t.Context(), url.Values{"state": {again.State}, "error": {"access_denied"}, "iss": {b.provider.URL}}, ownBrowser)
	if err != nil || r.OK || r.ReturnURL != appURL+"?status=error&server=demo" {
		t.Errorf("denied: %+v, %v", r, err)
	}
	if got := b.status(); got != storage.ConnectionConnected {
		t.Errorf("a failed attempt disturbs the connection: %s", got)
	}
	b.use(b.Broker)
	if n := get(b.provider, func(p *provider) int { return p.registers }); n != 1 {
		t.Errorf("%d registrations", n)
	}
}

func TestAuthorizationURLs(t *testing.T) {
	b := setup(t)
	b.begin()
	b.server = b.reload(b.server)
	seen := map[string]bool{}
	for range 200 {
		r := b.begin()
		u, err := url.Parse(*r.AuthURL)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		state, challenge := q.Get("state"), q.Get("code_challenge")
		if seen[state] || seen[challenge] || len(challenge) != 43 || len(state) < 43 || state != r.State {
			t.Fatalf("A06 state %q, challenge %q", state, challenge)
		}
		seen[state], seen[challenge] = true, true
		got := map[string]string{}
		for _, k := range []string{"code_challenge_method", "resource", "redirect_uri", "response_type", "scope"} {
			got[k] = q.Get(k)
		}
		want := map[string]string{
			"code_challenge_method": "S256", "resource": b.provider.URL + "/mcp", "redirect_uri": gatewayURL + "/api/oauth/callback",
			"response_type": "code", "scope": "read",
		}
		if d := cmp.Diff(want, got); d != "" || q.Has("client_secret") || q.Has("code_verifier") {
			t.Fatalf("A06 %s", d)
		}
	}
	if n := get(b.provider, func(p *provider) int { return p.discoveries }); n > 2 {
		t.Errorf("the third party was asked %d times", n)
	}
}

func TestCallbackState(t *testing.T) {
	b := setup(t)
	good := b.provider.approve(*b.begin().AuthURL)
	with := func(change func(q url.Values)) url.Values {
		q := url.Values{}
		for k, v := range good {
			q[k] = v
		}
		change(q)
		return q
	}
	for name, q := range map[string]url.Values{
		"A01 missing":  with(func(q url.Values) { q.Del("state") }),
		"A01 empty":    with(func(q url.Values) { q.Set("state", "") }),
		"A01 unknown":  with(func(q url.Values) { q.Set("state", oauth.NewState()) }),
		"A01 repeated": with(func(q url.Values) { q.Add("state", q.Get("state")) }),
		"A01 huge":     with(func(q url.Values) { q.Set("state", strings.Repeat("a", 1<<20)) }),
	} {
		if _, err := b.Callback(t.Context(), q, ownBrowser); !errors.Is(err, ErrState) {
			t.Errorf("%s: %v", name, err)
		}
	}
	expired := b.provider.approve(*b.begin().AuthURL)
	b.clock.advance(attemptLifetime)
	if _, err := b.Callback(t.Context(), expired, ownBrowser); !errors.Is(err, ErrState) {
		t.Errorf("A01 expired: %v", err)
	}
	if n := get(b.provider, func(p *provider) int { return p.exchanges }); n != 0 {
		t.Errorf("A01: %d token requests", n)
	}
	q := b.provider.approve(*b.begin().AuthURL)
	if r, err := b.Callback(t.Context(), q, ownBrowser); err != nil || !r.OK {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := b.Callback(t.Context(), q, ownBrowser); !errors.Is(err, ErrState) {
		t.Errorf("A01 reused: %v", err)
	}
	if n := get(b.provider, func(p *provider) int { return p.exchanges }); n != 1 {
		t.Errorf("A01: %d token requests", n)
	}
}

func TestCallbackRefusals(t *testing.T) {
	const canary = "<script>alert(1)</script>"
	for name, tc := range map[string]struct {
		before func(p *provider)
		change func(b *bundle, q url.Values)
		asked  int // token requests
	}{
		"A04 iss of another provider":      {change: func(_ *bundle, q url.Values) { q.Set("iss", "https://evil.example.test") }},
		"A04 iss absent although promised": {change: func(_ *bundle, q url.Values) { q.Del("iss") }},
		"A04 iss with a slash":             {change: func(_ *bundle, q url.Values) { q.Set("iss", q.Get("iss")+"/") }},
		"A04 iss in other case":            {change: func(_ *bundle, q url.Values) { q.Set("iss", strings.ToUpper(q.Get("iss"))) }},
		"A04 iss twice":                    {change: func(_ *bundle, q url.Values) { q.Add("iss", q.Get("iss")) }},
		"A10 error with a script": {change: func(_ *bundle, q url.Values) {
			q.Del("code")
			q.Set("error", "server_error")
			q.Set("error_description", canary)
		}},
		"A10 script as error": {change: func(_ *bundle, q url.Values) { q.Del("code"); q.Set("error", canary) }},
		"no code":             {change: func(_ *bundle, q url.Values) { q.Del("code") }},
		"code and error":      {change: func(_ *bundle, q url.Values) { q.Set("error", "access_denied") }},
		"A07 code of another session": {asked: 1, change: func(b *bundle, q url.Values) {
			q.Set("code", b.provider.approve(*b.begin().AuthURL).Get("code"))
		}},
		"provider down": {asked: 1, change: func(b *bundle, _ url.Values) { b.provider.set(func(p *provider) { p.down = true }) }},
		"token endpoint refuses": {asked: 1, change: func(b *bundle, _ url.Values) {
			b.provider.set(func(p *provider) { p.tokenError = "unsupported_grant_type" })
		}},
		"upstream has moved meanwhile": {change: func(b *bundle, _ url.Values) { b.move(b.provider.URL + "/elsewhere/../mcp2") }},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			q := b.provider.approve(*b.begin().AuthURL)
			tc.change(b, q)
			r, err := b.Callback(t.Context(), q, ownBrowser)
			if err != nil || r.OK || r.Reason == "" || r.Undo != "" {
				t.Fatalf("%+v, %v", r, err)
			}
			if strings.Contains(r.Reason+r.ReturnURL+b.log.String(), "script") || strings.Contains(r.Reason, "evil") {
				t.Errorf("the provider's words are shown: %+v", r)
			}
			if n := get(b.provider, func(p *provider) int { return p.exchanges }); n != tc.asked {
				t.Errorf("%d token requests, want %d", n, tc.asked)
			}
			if c := b.connection(); c.Status != storage.ConnectionError || c.SealedCredential != nil {
				t.Errorf("stored %+v", c)
			}
			if _, err := b.Callback(t.Context(), q, ownBrowser); !errors.Is(err, ErrState) {
				t.Errorf("the state was not spent: %v", err)
			}
		})
	}
}

// move changes the upstream's address in the directory.
func (b *bundle) move(to string) {
	b.t.Helper()
	if _, err := b.store.UpdateDirectoryEntry(b.t.Context(), b.who.OrganizationID, b.server.DirectoryID, func(e *storage.DirectoryEntry) error {
		e.URL = to
		e.OAuth.Resource = to
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
	b.server = b.reload(b.server)
}

func TestNoClient(t *testing.T) {
	t.Run("none to be had", func(t *testing.T) {
		b := setup(t)
		b.provider.set(func(p *provider) { p.noRegister = true })
		_, err := b.Connect(t.Context(), b.who, b.server, ConnectRequest{})
		if !errors.Is(err, ErrOAuthConfiguration) {
			t.Errorf("%v", err)
		}
		if b.server = b.reload(b.server); b.server.Status != storage.ServerPending {
			t.Errorf("server is %s", b.server.Status)
		}
	})
	t.Run("upstream gone", func(t *testing.T) {
		b := setup(t)
		b.provider.Close()
		if _, err := b.Connect(t.Context(), b.who, b.server, ConnectRequest{}); !errors.Is(err, ErrOAuthConfiguration) {
			t.Errorf("%v", err)
		}
	})
	t.Run("upstream gone but a client is there", func(t *testing.T) {
		b := setup(t)
		b.begin()
		b.provider.Close()
		b.clock.advance(sightingLifetime)
		b.begin()
	})
	t.Run("S08 another issuer than before", func(t *testing.T) {
		b := setup(t)
		b.connect()
		b.provider.set(func(p *provider) { p.issuer = p.URL + "/other" })
		b.clock.advance(sightingLifetime)
		if _, err := b.Connect(t.Context(), b.who, b.server, ConnectRequest{}); !errors.Is(err, ErrOAuthConfiguration) {
			t.Errorf("%v", err)
		}
		if b.server = b.reload(b.server); b.server.Status != storage.ServerError {
			t.Errorf("server is %s", b.server.Status)
		}
		if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) {
			t.Errorf("credential: %v", err)
		}
	})
}

// TestIssuerChanges checks S08: an upstream that names another authorization server than before is refused, for any
// resource in the entry. Only an administrator who points the server to another origin can change the authorization
// server.
func TestIssuerChanges(t *testing.T) {
	for name, resource := range map[string]string{
		"discovered": "", "of a scheme of its own": "api://app", "another origin's": "https://resource.example.test/mcp",
	} {
		for learned, forget := range map[string]bool{"": false, ", learned before its origin was kept": true} {
			t.Run(name+learned, func(t *testing.T) {
				b := setup(t)
				b.change(func(e *storage.DirectoryEntry) { e.OAuth.Resource = resource })
				b.begin()
				if forget {
					c := b.client()
					c.Origin = ""
					if err := b.store.PutOAuthClient(t.Context(), c, c.ClientID); err != nil {
						t.Fatal(err)
					}
				}
				was := b.client()
				b.provider.set(func(p *provider) { p.issuer = p.URL + "/other" })
				b.clock.advance(sightingLifetime)
				if _, err := b.Connect(t.Context(), b.who, b.server, ConnectRequest{}); !errors.Is(err, errIssuerChanged) {
					t.Errorf("%v", err)
				}
				if got := b.client(); got.Issuer != was.Issuer || got.ClientID != was.ClientID {
					t.Errorf("the client is %+v, was %+v", got, was)
				}
			})
		}
		t.Run(name+", the server moved", func(t *testing.T) {
			b := setup(t)
			b.change(func(e *storage.DirectoryEntry) { e.OAuth.Resource = resource })
			b.begin()
			moved := newProvider(t)
			b.change(func(e *storage.DirectoryEntry) { e.URL = moved.URL + "/mcp" })
			b.begin()
			if got := b.client(); got.Issuer != moved.URL || got.Origin != moved.URL || get(moved, func(p *provider) int { return p.registers }) != 1 {
				t.Errorf("the client is %+v", got)
			}
		})
	}
}

// TestIssuerChangesWithClient checks that an administrator who names a client of another authorization server is not taken
// for an upstream that has changed sides.
func TestIssuerChangesWithClient(t *testing.T) {
	b := setup(t)
	b.begin()
	b.configured(storage.EntryOptions{})
	b.provider.set(func(p *provider) { p.issuer = p.URL + "/other" })
	b.begin()
	if got := b.client(); got.Issuer != b.provider.URL+"/other" || got.ClientID != "configured-id" {
		t.Errorf("the client is %+v", got)
	}
}

func TestConfiguredClient(t *testing.T) {
	b := setup(t)
	b.provider.set(func(p *provider) { p.noRegister, p.clientID, p.secret = true, "configured-id", "configured-secret" })
	configure := func(secret string) {
		sealed, err := b.keyring.Seal([]byte(secret), ClientSecretAD(b.server.OrganizationID, b.server.ID))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.store.UpdateServer(t.Context(), b.server.OrganizationID, b.server.ID, func(s *storage.Server) error {
			s.ClientID, s.SealedClientSecret = "configured-id", sealed
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		b.server = b.reload(b.server)
	}
	configure("configured-secret")
	b.connect()
	b.use(b.Broker)
	client, err := b.store.OAuthClient(t.Context(), b.server.OrganizationID, b.server.ID)
	if err != nil || client.Kind != storage.ClientConfigured || client.SealedSecret != nil {
		t.Errorf("%+v, %v", client, err)
	}

	// A secret that the provider refuses puts the server in error. The right secret and a connect end the error.
	configure("wrong")
	r, err := b.Callback(t.Context(), b.provider.approve(*b.begin().AuthURL), ownBrowser)
	if err != nil || r.OK {
		t.Fatalf("%+v, %v", r, err)
	}
	if b.server = b.reload(b.server); b.server.Status != storage.ServerError {
		t.Errorf("server is %s", b.server.Status)
	}
	configure("configured-secret")
	b.connect()
	if b.server.Status != storage.ServerActive {
		t.Errorf("server is %s", b.server.Status)
	}
	if strings.Contains(b.log.String(), "configured-secret") {
		t.Error("L01 the log holds the client secret")
	}
}

func TestConnectTyped(t *testing.T) {
	long := strings.Repeat("a", maxCredential+1)
	s := seal.NewSecret
	for name, tc := range map[string]struct {
		kind  storage.Provider
		open  bool
		req   ConnectRequest
		field string // refused
		want  string // header
		in    string // header name; default Authorization
	}{
		"none":                      {kind: storage.ProviderNone},
		"requires_auth false":       {kind: storage.ProviderOAuth2, open: true},
		"api key":                   {kind: storage.ProviderAPIKey, req: ConnectRequest{APIKey: s("k")}, want: "k", in: "X-API-Key"},
		"api key missing":           {kind: storage.ProviderAPIKey, field: "api_key"},
		"api key with a line break": {kind: storage.ProviderAPIKey, req: ConnectRequest{APIKey: s("k\r\nX: y")}, field: "api_key"},
		"api key with NUL":          {kind: storage.ProviderAPIKey, req: ConnectRequest{APIKey: s("k\x00")}, field: "api_key"},
		"api key with a blank":      {kind: storage.ProviderAPIKey, req: ConnectRequest{APIKey: s("k k")}, field: "api_key"},
		"api key too long":          {kind: storage.ProviderAPIKey, req: ConnectRequest{APIKey: s(long)}, field: "api_key"},
		"bearer":                    {kind: storage.ProviderBearerToken, req: ConnectRequest{BearerToken: s("t")}, want: "Bearer t"},
		"bearer missing":            {kind: storage.ProviderBearerToken, req: ConnectRequest{APIKey: s("t")}, field: "bearer_token"},
		"basic":                     {kind: storage.ProviderBasicAuth, req: ConnectRequest{Username: s("Aladdin"), Password: s("open sesame")}, want: "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="},
		"basic without password":    {kind: storage.ProviderBasicAuth, req: ConnectRequest{Username: s("u")}, field: "password"},
		"basic without user":        {kind: storage.ProviderBasicAuth, req: ConnectRequest{Password: s("u")}, field: "username"},
		"basic with a colon":        {kind: storage.ProviderBasicAuth, req: ConnectRequest{Username: s("a:b"), Password: s("c")}, field: "username"},
		"basic with a line break":   {kind: storage.ProviderBasicAuth, req: ConnectRequest{Username: s("a"), Password: s("c\n")}, field: "password"},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.server = b.makeServer(storage.DirectoryEntry{
				Slug: "typed", URL: "https://api.example.test/mcp", Provider: tc.kind, RequiresAuth: !tc.open && tc.kind != storage.ProviderNone,
			})
			b.key.ServerID = b.server.ID
			r, err := b.Connect(t.Context(), b.who, b.server, tc.req)
			if tc.field != "" {
				var bad *BadRequestError
				if !errors.As(err, &bad) || bad.Field != tc.field {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || r.AuthURL != nil || r.ConnectionID == "" {
				t.Fatalf("%+v, %v", r, err)
			}
			if again, err := b.Connect(t.Context(), b.who, b.server, tc.req); err != nil || again.ConnectionID != r.ConnectionID {
				t.Errorf("again: %+v, %v", again, err)
			}
			if tc.open {
				b.server = b.reload(b.server)
			} else if got := b.status(); got != storage.ConnectionConnected {
				t.Errorf("status %s", got)
			}
			c, err := b.Credential(t.Context(), b.key, &b.server)
			if err != nil {
				t.Fatal(err)
			}
			sent := &http1.Request{URL: &url.URL{Scheme: "https", Host: "api.example.test", Path: "/mcp"}}
			if err := c.Apply(sent); err != nil {
				t.Fatal(err)
			}
			in := tc.in
			if in == "" {
				in = "Authorization"
			}
			if got := sent.Get(textproto.CanonicalMIMEHeaderKey(in)); got != tc.want {
				t.Errorf("header %q, want %q", got, tc.want)
			}
			if tc.want == "" {
				return
			}
			if _, err := b.Rejected(t.Context(), b.key, b.server, c); !errors.Is(err, ErrNotConnected) {
				t.Errorf("rejected: %v", err)
			}
			if got := b.status(); got != storage.ConnectionError {
				t.Errorf("after 401: %s", got)
			}
		})
	}
}

func TestConnectScope(t *testing.T) {
	b := setup(t)
	if _, err := b.Connect(t.Context(), Who{OrganizationID: "other", UserID: b.who.UserID}, b.server, ConnectRequest{}); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("another organization: %v", err)
	}
	key := b.key
	key.OrganizationID = "other"
	if _, err := b.Credential(t.Context(), key, &b.server); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("another organization: %v", err)
	}
	if _, err := b.Connect(t.Context(), b.who, b.server, ConnectRequest{ReturnURL: "https://evil.example.test/"}); !errors.Is(err, ErrReturnURL) {
		t.Errorf("return_url: %v", err)
	}
}

// TestTwoNodesRegister checks that two nodes that register a client for one server at the same moment end up with the
// client that is stored first. Connections made with it stay good, and attempts begun with it can be finished.
func TestTwoNodesRegister(t *testing.T) {
	b := setup(t)
	other := b.node()
	registering := func() {
		b.provider.set(func(p *provider) { p.registering = nil })
		b.connect() // the whole connect, while the other node waits for the provider
	}
	b.provider.set(func(p *provider) { p.registering = registering })
	slower, err := other.Connect(t.Context(), Who{b.who.OrganizationID, b.user("bob")}, b.server, ConnectRequest{ReturnURL: appURL})
	if err != nil {
		t.Fatal(err)
	}
	if n := get(b.provider, func(p *provider) int { return p.registers }); n != 2 {
		t.Fatalf("%d registrations", n)
	}
	b.server = b.reload(b.server)
	if r, err := other.Callback(t.Context(), b.provider.approve(*slower.AuthURL), ownBrowser); err != nil || !r.OK {
		t.Fatalf("%+v, %v\n%s", r, err, b.log)
	}
	b.clock.advance(time.Hour)
	for _, br := range []*Broker{b.Broker, other} {
		b.use(br)
	}
	if n := b.refreshes(); n != 1 {
		t.Errorf("%d refreshes", n)
	}
	b.counted(map[Event]int64{Refreshed: 1})
}

// TestClientChangesMeanwhile checks that a client from another node that cannot be used here is neither used nor
// replaced.
func TestClientChangesMeanwhile(t *testing.T) {
	b := setup(t)
	theirs := storage.OAuthClient{
		OrganizationID: b.who.OrganizationID, ServerID: b.server.ID, Issuer: "https://other.example.test", ClientID: "theirs",
		Kind: storage.ClientRegistered, RedirectURI: gatewayURL + CallbackPath, CreatedAt: b.clock.now(),
	}
	b.provider.set(func(p *provider) {
		p.registering = func() {
			if err := b.store.PutOAuthClient(t.Context(), theirs, ""); err != nil {
				t.Error(err)
			}
		}
	})
	if _, err := b.Connect(t.Context(), b.who, b.server, ConnectRequest{ReturnURL: appURL}); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if c, err := b.store.OAuthClient(t.Context(), b.who.OrganizationID, b.server.ID); err != nil || c.ClientID != "theirs" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestUndo(t *testing.T) {
	b := setup(t)
	first := b.connect()
	b.clock.advance(time.Minute)
	second := b.connect()
	for name, token := range map[string]string{"garbage": "x", "empty": "", "of a connection that was replaced": first.Undo} {
		if _, err := b.Undo(t.Context(), token); !errors.Is(err, ErrUndo) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.use(b.Broker)
	// A refresh in between does not make it another connection.
	if _, err := b.Rejected(t.Context(), b.key, b.server, b.use(b.Broker)); err != nil {
		t.Fatal(err)
	}
	if key, err := b.Undo(t.Context(), second.Undo); err != nil || key != b.key {
		t.Fatalf("%v, %v", key, err)
	}
	if _, err := b.store.Connection(t.Context(), b.key); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("still there: %v", err)
	}
	b.settle(func() bool { return has(get(b.provider, func(p *provider) []string { return p.revoked }), "refresh-") })
	if _, err := b.Undo(t.Context(), second.Undo); !errors.Is(err, ErrUndo) {
		t.Errorf("twice: %v", err)
	}
	late := b.connect()
	b.clock.advance(undoLifetime)
	if _, err := b.Undo(t.Context(), late.Undo); !errors.Is(err, ErrUndo) {
		t.Errorf("late: %v", err)
	}
}

func TestCallbackStoreFails(t *testing.T) {
	b := setup(t)
	q := b.provider.approve(*b.begin().AuthURL)
	err := storage.ErrUnavailable
	b.store.putErr.Store(&err)
	r, cbErr := b.Callback(t.Context(), q, ownBrowser)
	if cbErr != nil || r.OK {
		t.Fatalf("A12 %+v, %v", r, cbErr)
	}
	b.settle(func() bool { return has(get(b.provider, func(p *provider) []string { return p.revoked }), "access-") })
}

func TestCallbackBrowserGone(t *testing.T) {
	b := setup(t)
	gate := make(chan struct{})
	b.provider.set(func(p *provider) { p.gate = gate })
	q := b.provider.approve(*b.begin().AuthURL)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan CallbackResult)
	go func() {
		r, _ := b.Callback(ctx, q, ownBrowser)
		done <- r
	}()
	cancel()
	close(gate)
	if r := <-done; !r.OK {
		t.Fatalf("%+v\n%s", r, b.log)
	}
	b.server = b.reload(b.server)
	b.use(b.Broker)
}
