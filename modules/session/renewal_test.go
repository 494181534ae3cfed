package session_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/identity/logins"
	"github.com/durward-gateway/durward/internal/identity/websession"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/caddytest"
	"github.com/durward-gateway/durward/storage"
)

const (
	editor   = "editor"
	landing  = "https://editor.example.com/back"
	verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	// challenge is that of verifier (RFC 7636 appendix B).
	challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

// authorizing returns a configuration in which the gateway is an authorization server with these members more.
func authorizing(t *testing.T, issuer *caddytest.Issuer, more object) object {
	t.Helper()
	config := configOf(t, object{"kind": "oidc", "issuer": issuer.URL, "login_client": client})
	server := object{"mode": "on", "oauth_client": []any{object{"id": editor, "redirect_uris": []string{landing}}}}
	for name, value := range more {
		server[name] = value
	}
	config["authorization_server"] = server
	return config
}

// run runs a configuration with pages, and finds its core.
func run(t *testing.T, issuer *caddytest.Issuer, config object) *gateway {
	t.Helper()
	g := &gateway{t: t, address: caddytest.Address(t), issuer: issuer}
	handlers := []any{caddytest.Named("durward_session"), caddytest.Named("durward_auth"), caddytest.Handle(t, g.pass)}
	if err := caddytest.Load(t, caddytest.Config(config, g.address, handlers...)); err != nil {
		t.Fatal(err)
	}
	g.send("GET /api/servers HTTP/1.1\nAuthorization: Bearer " + g.issuer.Token(public, nil))
	if g.call == nil {
		t.Fatal("no request came through")
	}
	g.core = g.call.Core
	return g
}

// logIn makes a login of a user with the editor. subject is the user's at the identity provider, which gave a refresh token.
func (g *gateway) logIn(userID, subject string) *logins.Tokens {
	g.t.Helper()
	server := g.core.Authorization
	known, err := server.Client(g.t.Context(), editor)
	if err != nil {
		g.t.Fatal(err)
	}
	draft, err := server.Draft(g.t.Context(), logins.Draft{
		OrganizationID: organization, UserID: userID, Issuer: g.issuer.URL, Audience: client, Subject: subject, Refresh: seal.NewSecret("refresh"),
	})
	if err != nil {
		g.t.Fatal(err)
	}
	code, err := server.Agree(g.t.Context(), logins.Agreement{
		OrganizationID: organization, UserID: userID, Draft: draft, Client: known, Resource: public, RedirectURI: landing, Challenge: challenge,
	})
	if err != nil {
		g.t.Fatal(err)
	}
	tokens, err := server.Redeem(g.t.Context(), known, url.Values{"code": {code.Reveal()}, "redirect_uri": {landing}, "code_verifier": {verifier}})
	if err != nil {
		g.t.Fatal(err)
	}
	return tokens
}

// refresh exchanges a refresh token at the token endpoint, as the client does.
func (g *gateway) refresh(tokens *logins.Tokens) answer {
	g.t.Helper()
	return g.post("/oauth/token", "", url.Values{"grant_type": {"refresh_token"}, "client_id": {editor}, "refresh_token": {tokens.Refresh.Reveal()}})
}

// lives reports whether a login has not ended.
func (g *gateway) lives(l storage.Login) bool {
	g.t.Helper()
	_, err := g.core.Store.Login(g.t.Context(), l.OrganizationID, l.ID, time.Now())
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		g.t.Fatal(err)
	}
	return err == nil
}

// TestRenewal checks that a login ends when the identity provider names another user or another organization at its
// renewal, or lets the user act for no organization any more, or refuses it, and goes on with what is said of the same user.
func TestRenewal(t *testing.T) {
	const (
		subject = "0192f0c1-5bd2-7000-8000-00000000a11c"
		other   = "0192f0c1-5bd2-7000-8000-0000000000bb"
	)
	issuer := caddytest.NewIssuer(t)
	g := run(t, issuer, authorizing(t, issuer, nil))
	named := func(subject string) string {
		u, err := g.core.Store.ResolveUser(t.Context(), storage.UserClaim{
			OrganizationID: organization, Issuer: issuer.URL, Subject: subject, ID: subject, DerivedID: uuid.NewString(), Kind: storage.UserPerson,
		}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return u.ID
	}
	alice, bob := named(subject), named("0192f0c1-5bd2-7000-8000-00000000b0bb")
	foreign := uuid.NewString()
	if _, err := g.core.Store.ResolveOrganization(t.Context(), storage.OrganizationClaim{Issuer: "https://rival.example.com", ID: foreign}, time.Now()); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		user, subject string
		claims        object
		refusal       object
		ends          bool
	}{
		"the same user":                      {alice, subject, object{"groups": []string{"sales"}}, nil, false},
		"another user, of the same subject":  {bob, subject, nil, nil, true},
		"another subject":                    {alice, subject, object{"sub": "0192f0c1-5bd2-7000-8000-00000000b0bb"}, nil, true},
		"another organization":               {alice, subject, object{"org_id": other}, nil, true},
		"another identity provider's":        {alice, subject, object{"org_id": foreign}, nil, true},
		"no organization":                    {alice, subject, object{"org_id": nil}, nil, true},
		"a machine":                          {alice, client, object{"sub": client}, nil, true},
		"a user who is switched off":         {alice, subject, nil, object{"error": "invalid_grant"}, true},
		"a provider that knows no such word": {alice, subject, nil, object{"error": "temporarily_unavailable"}, false},
		"a token of another client":          {alice, subject, object{"azp": "another"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			tokens := g.logIn(c.user, c.subject)
			issuer.Login(client, c.claims)
			issuer.Refuse(c.refusal)
			defer issuer.Refuse(nil)
			a := g.refresh(tokens)
			if asked := issuer.Asked(); len(asked) == 0 || asked[0].PostForm.Get("refresh_token") != "refresh" {
				t.Errorf("the identity provider is not asked: %v", asked)
			}
			if lives := g.lives(tokens.Login); lives == c.ends {
				t.Errorf("the login lives on: %v", lives)
			}
			if c.ends != (a.status == http.StatusBadRequest && strings.Contains(a.body, `"invalid_grant"`)) || !c.ends && a.status != http.StatusOK {
				t.Errorf("the client gets %d %s", a.status, a.body)
			}
		})
	}
}

// TestProgressIsTheUsers checks that what a browser keeps of an authorization request counts for the user of that
// organization, that request and that time alone: a user who has agreed must not have agreed for the next one at the
// browser.
func TestProgressIsTheUsers(t *testing.T) {
	issuer := caddytest.NewIssuer(t)
	g := run(t, issuer, authorizing(t, issuer, nil))
	alice, cookie := g.user("alice@example.test")
	bob, _ := g.user("bob@example.test")
	query := url.Values{
		"response_type": {"code"}, "client_id": {editor}, "redirect_uri": {landing}, "state": {"s"}, "code_challenge": {challenge}, "code_challenge_method": {"S256"},
	}.Encode()
	sum := sha256.Sum256([]byte(query))
	request := base64.RawURLEncoding.EncodeToString(sum[:])
	for name, c := range map[string]struct {
		organization, user, request string
		left                        time.Duration
		goesOn                      bool
	}{
		"the user's own":         {organization, alice, request, time.Hour, true},
		"another user's":         {organization, bob, request, time.Hour, false},
		"another organization's": {"0192f0c1-5bd2-7000-8000-0000000000bb", alice, request, time.Hour, false},
		"another request's":      {organization, alice, "another", time.Hour, false},
		"that of yesterday":      {organization, alice, request, -time.Second, false},
	} {
		memo, err := json.Marshal(object{"org": c.organization, "user": c.user, "request": c.request, "expires": time.Now().Add(c.left), "agreed": true})
		if err != nil {
			t.Fatal(err)
		}
		kept := "__Host-" + websession.NameOf(websession.CookieClient, request) + "=" + g.core.Logins.Browsers.SealMemo(websession.CookieClient, memo)
		a := g.get("/oauth/authorize?"+query, cookie+"; "+kept)
		goesOn := a.status == http.StatusSeeOther && strings.HasPrefix(a.header.Get("Location"), issuer.URL+"/authorize?")
		asks := a.status == http.StatusOK && strings.Contains(a.body, "Let editor act for you?")
		if goesOn != c.goesOn || asks == c.goesOn {
			t.Errorf("%s: %d %s %s", name, a.status, a.header.Get("Location"), a.body)
		}
	}
}

// TestLifetimes checks that the lifetime and the idle time of the configuration are those of logins and of their tokens.
func TestLifetimes(t *testing.T) {
	issuer := caddytest.NewIssuer(t)
	g := run(t, issuer, authorizing(t, issuer, object{"lifetime": "10m", "idle": "4m"}))
	u, _ := g.user("alice@example.test")
	tokens := g.logIn(u, "alice")
	l, err := g.core.Store.Login(t.Context(), organization, tokens.Login.ID, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	const tolerance = 30 * time.Second // the login begins between two readings of the clock
	near := func(got, want time.Duration) bool { return got > want-tolerance && got <= want }
	if ends, idle := l.EndsAt.Sub(l.CreatedAt), l.ExpiresAt.Sub(l.CreatedAt); !near(ends, 10*time.Minute+tolerance/2) || !near(idle, 4*time.Minute+tolerance/2) {
		t.Errorf("the login ends after %s, unused after %s", ends, idle)
	}
	if tokens.ExpiresIn > 4*time.Minute || tokens.ExpiresIn < 4*time.Minute-tolerance {
		t.Errorf("the access token lives for %s", tokens.ExpiresIn)
	}
}

// TestDocumentsAreGuarded checks that no metadata document is fetched from an address in the gateway's own network, unless
// the operator allows it.
func TestDocumentsAreGuarded(t *testing.T) {
	issuer := caddytest.NewIssuer(t)
	var connections atomic.Int64
	var address string
	site := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"client_id":"` + address + `","redirect_uris":["` + landing + `"],"token_endpoint_auth_method":"none"}`))
	}))
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = site.Listener.Close()
	site.Listener = listener
	site.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	site.Start()
	defer site.Close()
	address = site.URL + "/client.json"

	for _, c := range []struct {
		name, reaches string // reaches is the range of egress
		ids           []string
		err           error
		connections   int64
	}{
		{"refused", "127.0.0.1/32", []string{address, "https" + strings.TrimPrefix(address, "http")}, authserver.ErrDocument, 0},
		{"allowed", "127.0.0.0/30", []string{address}, nil, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := authorizing(t, issuer, nil)
			config["egress"] = object{"http": []string{c.reaches}}
			g := run(t, issuer, config)
			for _, id := range c.ids {
				if _, err := g.core.Authorization.Client(t.Context(), id); !errors.Is(err, c.err) {
					t.Errorf("%s: %v, want %v", id, err, c.err)
				}
			}
			if n := connections.Load(); n != c.connections {
				t.Errorf("%d connections reached the document's host, want %d", n, c.connections)
			}
		})
	}
}
