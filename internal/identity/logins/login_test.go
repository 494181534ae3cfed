package logins

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// TestLogin goes the way of a client: code, access token, refresh token, and the end of both.
func TestLogin(t *testing.T) {
	n := newNode(t)
	tokens := n.logIn(t, nil)
	answer := tokens.Answer()
	if answer["token_type"] != "Bearer" || answer["expires_in"] != int64(900) || answer["access_token"] == "" || answer["refresh_token"] == "" {
		t.Errorf("the answer is %v", answer)
	}
	claims, err := n.verify(t, tokens.Access, resource)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"sub": n.user.ID, "client_id": "editor", ClaimOrganization: n.user.OrganizationID, ClaimLogin: tokens.Login.ID, "aud": resource} {
		if got, _ := claims.Object.Get(name); !got.Is(want) {
			t.Errorf("%s is %s, want %s", name, got.Raw(), want)
		}
	}
	// The token is for its server alone.
	if _, err := n.verify(t, tokens.Access, issuer+"/mcp/other"); err == nil {
		t.Error("the token is taken at another server")
	}
	n.clock.forward(10 * time.Minute)
	second, err := n.refresh(t, tokens.Refresh)
	if err != nil {
		t.Fatal(err)
	}
	if second.Refresh.Equal(tokens.Refresh) || second.Access.Equal(tokens.Access) || second.Login.ID != tokens.Login.ID {
		t.Error("a refresh gives the same tokens, or another login")
	}
	n.clock.forward(AccessLifetime)
	if _, err := n.verify(t, second.Access, resource); err != nil { // the verifier's leeway
		t.Error(err)
	}
	n.clock.forward(time.Minute)
	if _, err := n.verify(t, second.Access, resource); err == nil {
		t.Error("an access token outlives 15 minutes")
	}
	// Idle logins end.
	n.clock.forward(DefaultIdle)
	_, err = n.refresh(t, second.Refresh)
	wantCode(t, "a login that was idle", err, "invalid_grant")
}

// TestCodes checks that a code is good once, for its client, its redirect URI, its verifier and its resource.
func TestCodes(t *testing.T) {
	n := newNode(t)
	others := &authserver.Client{ID: "other", GrantTypes: []string{authserver.GrantCode}}
	for name, c := range map[string]struct {
		change func(form url.Values) (client *authserver.Client)
		code   string
	}{
		"another client":        {func(url.Values) *authserver.Client { return others }, "invalid_grant"},
		"another redirect URI":  {func(f url.Values) *authserver.Client { f.Set("redirect_uri", "http://127.0.0.1:1/back"); return nil }, "invalid_grant"},
		"no redirect URI":       {func(f url.Values) *authserver.Client { f.Del("redirect_uri"); return nil }, "invalid_grant"},
		"another verifier":      {func(f url.Values) *authserver.Client { f.Set("code_verifier", verifier+"x"); return nil }, "invalid_grant"},
		"no verifier":           {func(f url.Values) *authserver.Client { f.Del("code_verifier"); return nil }, "invalid_grant"},
		"another resource":      {func(f url.Values) *authserver.Client { f.Set("resource", issuer+"/mcp/other"); return nil }, "invalid_target"},
		"one more resource":     {func(f url.Values) *authserver.Client { f.Add("resource", issuer); return nil }, "invalid_target"},
		"after its time":        {func(url.Values) *authserver.Client { n.clock.forward(CodeLifetime); return nil }, "invalid_grant"},
		"another's form of it":  {func(f url.Values) *authserver.Client { f.Set("code", "dwr_"+f.Get("code")[4:]); return nil }, "invalid_grant"},
		"no code":               {func(f url.Values) *authserver.Client { f.Del("code"); return nil }, "invalid_grant"},
		"a refresh token":       {func(f url.Values) *authserver.Client { f.Set("code", n.logIn(t, nil).Refresh.Reveal()); return nil }, "invalid_grant"},
		"without a resource":    {func(f url.Values) *authserver.Client { f.Del("resource"); return nil }, ""},
		"as it should be shown": {func(url.Values) *authserver.Client { return nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			form := redeeming(n.begin(t, nil))
			right := redeeming(form.Get("code"))
			client := n.client(t, "editor")
			if other := c.change(form); other != nil {
				client = other
			}
			tokens, err := n.Redeem(t.Context(), client, form)
			if c.code == "" {
				if err != nil {
					t.Fatal(err)
				}
				_, err = n.Redeem(t.Context(), client, form)
				wantCode(t, "the second time", err, "invalid_grant")
				if n.lives(t, tokens.Login) {
					t.Error("the login outlives the second use of its code")
				}
				_, err = n.refresh(t, tokens.Refresh)
				wantCode(t, "a refresh after that", err, "invalid_grant")
				return
			}
			wantCode(t, name, err, c.code)
			if form.Get("code") == right.Get("code") { // it is spent
				_, err = n.Redeem(t.Context(), n.client(t, "editor"), right)
				wantCode(t, "the right request after the wrong one", err, "invalid_grant")
			}
		})
	}
}

// TestRefreshTokens checks that a refresh token is good once, but for a moment, for its client and its resource.
func TestRefreshTokens(t *testing.T) {
	n := newNode(t)
	tokens := n.logIn(t, nil)
	ask := func(client *authserver.Client, form url.Values) error {
		_, err := n.Refresh(t.Context(), client, form)
		return err
	}
	form := url.Values{"refresh_token": {tokens.Refresh.Reveal()}}
	wantCode(t, "another client", ask(&authserver.Client{ID: "other"}, form), "invalid_grant")
	wantCode(t, "another resource", ask(n.client(t, "editor"), url.Values{"refresh_token": form["refresh_token"], "resource": {issuer}}), "invalid_target")
	wantCode(t, "a code", ask(n.client(t, "editor"), url.Values{"refresh_token": {n.begin(t, nil)}}), "invalid_grant")
	wantCode(t, "nothing", ask(n.client(t, "editor"), nil), "invalid_grant")
	second, err := n.refresh(t, tokens.Refresh)
	if err != nil {
		t.Fatal(err) // what was refused changed nothing
	}
	again, err := n.refresh(t, tokens.Refresh)
	if err != nil || !again.Refresh.Equal(second.Refresh) {
		t.Errorf("the same request again: another token, error %v", err)
	}
	n.clock.forward(grace + time.Second)
	_, err = n.refresh(t, tokens.Refresh)
	wantCode(t, "an old token", err, "invalid_grant")
	_, err = n.refresh(t, second.Refresh)
	wantCode(t, "the newest one after that", err, "invalid_grant")
}

// TestRefreshRace refreshes one login on three nodes at one moment: all get tokens, and the login goes on.
func TestRefreshRace(t *testing.T) {
	nodes := newNodes(t, 3, nil)
	tokens := nodes[0].logIn(t, nil)
	for range 5 {
		answers := make(chan *Tokens, 24)
		var wg sync.WaitGroup
		for i := range cap(answers) {
			wg.Go(func() {
				got, err := nodes[i%len(nodes)].refresh(t, tokens.Refresh)
				if err != nil {
					t.Error(err)
				}
				answers <- got
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		first := <-answers
		for range cap(answers) - 1 {
			if other := <-answers; !other.Refresh.Equal(first.Refresh) {
				t.Error("two requests got different refresh tokens")
			}
		}
		nodes[0].clock.forward(10 * time.Minute)
		tokens = first
	}
}

// TestClientsWithoutRefresh checks that a login with a client that uses no refresh tokens ends with its access token.
func TestClientsWithoutRefresh(t *testing.T) {
	n := newNode(t)
	n.client(t, "editor").GrantTypes = []string{authserver.GrantCode}
	tokens := n.logIn(t, nil)
	if !tokens.Refresh.Empty() || tokens.Answer()["refresh_token"] != nil {
		t.Error("it has a refresh token")
	}
	n.clock.forward(AccessLifetime - time.Second)
	if !n.lives(t, tokens.Login) {
		t.Error("the login ends before its token")
	}
	n.clock.forward(time.Second)
	if n.lives(t, tokens.Login) {
		t.Error("the login outlives its token")
	}
}

// TestLastTokens checks that no access token outlives its login.
func TestLastTokens(t *testing.T) {
	n := newNode(t)
	tokens := n.logIn(t, nil)
	for range 4 {
		n.clock.forward(DefaultIdle - time.Hour)
		var err error
		if tokens, err = n.refresh(t, tokens.Refresh); err != nil {
			t.Fatal(err)
		}
	}
	n.clock.forward(tokens.Login.EndsAt.Sub(n.clock.time()) - time.Minute)
	last, err := n.refresh(t, tokens.Refresh)
	if err != nil || last.ExpiresIn != time.Minute {
		t.Fatalf("%+v, error %v", last, err)
	}
	n.clock.forward(time.Minute)
	_, err = n.refresh(t, last.Refresh)
	wantCode(t, "after 30 days", err, "invalid_grant")
}

func TestRevoke(t *testing.T) {
	n := newNode(t)
	tokens := n.logIn(t, nil)
	revoke := func(client *authserver.Client, text string) (recorded *storage.Login, err error) {
		err = n.Revoke(t.Context(), client, text, func(_ context.Context, l storage.Login) error { recorded = &l; return nil })
		return recorded, err
	}
	editor := n.client(t, "editor")
	for _, text := range []string{"", "dwr_AAAA"} {
		if ended, err := revoke(editor, text); ended != nil || err != nil {
			t.Errorf("%q: %+v %v", text, ended, err)
		}
	}
	_, err := revoke(editor, tokens.Access.Reveal())
	wantCode(t, "an access token", err, "unsupported_token_type")
	_, err = revoke(&authserver.Client{ID: "other"}, tokens.Refresh.Reveal())
	wantCode(t, "another client's", err, "invalid_grant")
	if !n.lives(t, tokens.Login) {
		t.Error("another client ended the login")
	}
	away := errors.New("nothing can be recorded")
	if err := n.Revoke(t.Context(), editor, tokens.Refresh.Reveal(), func(context.Context, storage.Login) error { return away }); !errors.Is(err, away) || !n.lives(t, tokens.Login) {
		t.Errorf("a login ended without a record: %v", err)
	}
	if ended, err := revoke(editor, tokens.Refresh.Reveal()); err != nil || ended == nil || ended.ID != tokens.Login.ID {
		t.Errorf("ended %+v, error %v", ended, err)
	}
	if ended, err := revoke(editor, tokens.Refresh.Reveal()); ended != nil || err != nil {
		t.Errorf("the second time: %+v, error %v", ended, err)
	}
	_, err = n.refresh(t, tokens.Refresh)
	wantCode(t, "a refresh after that", err, "invalid_grant")
}

// TestGenuine asks which requests hold a credential of the server's.
func TestGenuine(t *testing.T) {
	n := newNode(t)
	code := n.begin(t, nil)
	refresh := n.logIn(t, nil).Refresh.Reveal()
	for _, form := range []url.Values{{"code": {code}}, {"refresh_token": {refresh}}, {"token": {refresh}}} {
		if !n.Genuine(form) {
			t.Errorf("%v is not", form)
		}
	}
	for _, form := range []url.Values{nil, {"code": {refresh}}, {"refresh_token": {code}}, {"token": {code}}, {"code": {code + "x"}}, {"token": {"dwr_AAAA"}}} {
		if n.Genuine(form) {
			t.Errorf("%v is", form)
		}
	}
}

// TestGatewaySpelling exchanges the code of a login with the gateway as a whole, whose address a client wrote with a slash.
func TestGatewaySpelling(t *testing.T) {
	n := newNode(t)
	code := n.begin(t, func(_ *Draft, a *Agreement) { a.Resource = issuer })
	form := redeeming(code)
	form.Set("resource", issuer+"/")
	tokens, err := n.Redeem(t.Context(), n.client(t, "editor"), form)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.verify(t, tokens.Access, resource); err != nil {
		t.Error(err)
	}
	form = redeeming(n.begin(t, nil))
	form.Set("resource", resource+"/")
	_, err = n.Redeem(t.Context(), n.client(t, "editor"), form)
	wantCode(t, "a server's address with a slash", err, "invalid_target")
}

// TestRenew checks what a refresh does with the identity provider's answer.
func TestRenew(t *testing.T) {
	var asked []string
	var answer Renewal
	var failure error
	n := newNodes(t, 1, func(_ context.Context, l storage.Login, refresh seal.Secret) (Renewal, error) {
		asked = append(asked, l.Issuer+" "+refresh.Reveal())
		return answer, failure
	})[0]
	withRefresh := func(d *Draft, _ *Agreement) { d.Refresh = seal.NewSecret("idp-1") }
	tokens := n.logIn(t, withRefresh)
	refresh := func() error {
		t.Helper()
		n.clock.forward(10 * time.Minute)
		next, err := n.refresh(t, tokens.Refresh)
		if err == nil {
			tokens = next
		}
		return err
	}
	answer = Renewal{Facts: storage.LoginFacts{Groups: []string{"support"}}, Refresh: seal.NewSecret("idp-2")}
	if err := refresh(); err != nil || !slices.Equal(tokens.Login.Facts.Groups, []string{"support"}) {
		t.Fatalf("%+v, error %v", tokens.Login, err)
	}
	answer.Refresh = seal.Secret{} // this one stays good
	for range 2 {
		if err := refresh(); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"https://id.test idp-1", "https://id.test idp-2", "https://id.test idp-2"}; !slices.Equal(asked, want) {
		t.Errorf("asked %q", asked)
	}
	// A provider that cannot be asked is no reason to end a login, for a day.
	failure = errors.New("no route")
	if err := refresh(); err != nil || !slices.Equal(tokens.Login.Facts.Groups, []string{"support"}) {
		t.Errorf("%+v, error %v", tokens.Login, err)
	}
	n.clock.forward(oldestFacts)
	before := tokens
	for _, what := range []string{"facts of yesterday", "the same request again"} {
		tokens = before
		wantCode(t, what, refresh(), "temporarily_unavailable") // ten minutes apart
	}
	if !n.lives(t, tokens.Login) {
		t.Error("a provider that is away ends a login")
	}
	failure = nil
	if err := refresh(); err != nil { // the provider answers again, and the client tries once more
		t.Fatal(err)
	}
	tokens = n.logIn(t, withRefresh)
	failure = ErrEnded
	wantCode(t, "an account that is gone", refresh(), "invalid_grant")
	if n.lives(t, tokens.Login) {
		t.Error("a login outlives its account")
	}
	// Nobody is asked about a login without a refresh token.
	number := len(asked)
	tokens = n.logIn(t, nil)
	if err := refresh(); err != nil || len(asked) != number {
		t.Errorf("asked %q, error %v", asked[number:], err)
	}
}

// TestRenewLosesNothing checks that a refresh token which the provider hands out is kept although the rest of its answer
// cannot be used, and although the client goes away meanwhile.
func TestRenewLosesNothing(t *testing.T) {
	var asked []string
	var during func()
	failure := errors.New("userinfo fails")
	n := newNodes(t, 1, func(ctx context.Context, _ storage.Login, refresh seal.Secret) (Renewal, error) {
		asked = append(asked, refresh.Reveal())
		during()
		if err := ctx.Err(); err != nil {
			return Renewal{}, err
		}
		return Renewal{Facts: storage.LoginFacts{Groups: []string{"nobody's"}}, Refresh: seal.NewSecret(refresh.Reveal() + "+")}, failure
	})[0]
	tokens := n.logIn(t, func(d *Draft, _ *Agreement) { d.Refresh = seal.NewSecret("idp") })
	ctx, leave := context.WithCancel(t.Context())
	for _, leaves := range []func(){func() {}, leave, func() {}} {
		during = leaves
		n.clock.forward(time.Minute)
		next, err := n.Refresh(ctx, n.client(t, "editor"), url.Values{"refresh_token": {tokens.Refresh.Reveal()}})
		if ctx.Err() != nil {
			ctx = t.Context()
			if next, err = n.refresh(t, tokens.Refresh); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil || !slices.Equal(next.Login.Facts.Groups, []string{"sales"}) {
			t.Fatalf("%+v, error %v", next, err)
		}
		tokens = next
	}
	for i, refresh := range asked {
		if want := "idp" + strings.Repeat("+", i); refresh != want {
			t.Errorf("asked with %q, want %q", refresh, want)
		}
	}
}

// TestRefreshBesideRenewal checks that nobody gets tokens by old facts while another request asks the provider.
func TestRefreshBesideRenewal(t *testing.T) {
	n := newNodes(t, 1, nil)[0]
	tokens := n.logIn(t, func(d *Draft, _ *Agreement) { d.Refresh = seal.NewSecret("idp") })
	n.Renew = func(context.Context, storage.Login, seal.Secret) (Renewal, error) {
		n.Renew = func(context.Context, storage.Login, seal.Secret) (Renewal, error) {
			t.Error("two requests ask at one time")
			return Renewal{}, nil
		}
		_, err := n.refresh(t, tokens.Refresh)
		wantCode(t, "beside the one that asks", err, "temporarily_unavailable")
		return Renewal{Facts: storage.LoginFacts{Groups: []string{"support"}}}, nil
	}
	n.clock.forward(oldestFacts + time.Minute)
	next, err := n.refresh(t, tokens.Refresh)
	if err != nil || !slices.Equal(next.Login.Facts.Groups, []string{"support"}) {
		t.Errorf("%+v, error %v", next, err)
	}
}

// TestReuseBesideSuccess sends a refresh token twice at one moment, of which the second request gets no tokens. When the
// first one gets them, the token is good no longer than its grace; when neither does, it stays good.
func TestReuseBesideSuccess(t *testing.T) {
	for name, away := range map[string]error{"the first one gets tokens": nil, "neither does": errors.New("no route")} {
		t.Run(name, func(t *testing.T) {
			n := newNodes(t, 1, nil)[0]
			tokens := n.logIn(t, func(d *Draft, _ *Agreement) { d.Refresh = seal.NewSecret("idp") })
			n.Renew = func(context.Context, storage.Login, seal.Secret) (Renewal, error) {
				n.clock.forward(time.Second)
				_, err := n.refresh(t, tokens.Refresh)
				wantCode(t, "the second one", err, "temporarily_unavailable")
				return Renewal{}, away
			}
			n.clock.forward(oldestFacts + time.Minute)
			_, err := n.refresh(t, tokens.Refresh)
			if away == nil && err != nil {
				t.Fatal(err)
			}
			if away != nil {
				wantCode(t, "the first one", err, "temporarily_unavailable")
			}
			n.Renew = func(context.Context, storage.Login, seal.Secret) (Renewal, error) { return Renewal{}, nil }
			n.clock.forward(grace + time.Second)
			if _, err = n.refresh(t, tokens.Refresh); away != nil {
				if err != nil || !n.lives(t, tokens.Login) {
					t.Errorf("a client that got nothing cannot come back: %v", err)
				}
				return
			}
			wantCode(t, "the token after its grace", err, "invalid_grant")
			if n.lives(t, tokens.Login) {
				t.Error("the login outlives the second use of its token")
			}
		})
	}
}

func TestClients(t *testing.T) {
	n := newNode(t)
	asked := &authserver.Registration{Client: authserver.Client{Name: "A tool", AuthMethod: authserver.AuthPost, RedirectURIs: []string{redirect}, GrantTypes: []string{authserver.GrantCode}}}
	secret, err := n.Register(t.Context(), asked)
	if err != nil || secret.Empty() {
		t.Fatal(secret.Empty(), err)
	}
	found, err := n.Client(t.Context(), asked.Client.ID)
	if err != nil || found.Public() || found.SecretHash != authserver.HashSecret(secret.Reveal()) || found.Name != "A tool" || !found.Allows(redirect) || !found.Issued.Equal(n.clock.time()) {
		t.Errorf("%+v, error %v", found, err)
	}
	public := &authserver.Registration{Client: authserver.Client{AuthMethod: authserver.AuthNone, RedirectURIs: []string{redirect}, GrantTypes: []string{authserver.GrantCode}}}
	if secret, err := n.Register(t.Context(), public); err != nil || !secret.Empty() {
		t.Errorf("a public client has a secret: %v, error %v", !secret.Empty(), err)
	}
	if found, err := n.Client(t.Context(), public.Client.ID); err != nil || !found.Public() || public.Client.ID == asked.Client.ID {
		t.Errorf("%+v, error %v", found, err)
	}
	for _, id := range []string{"", "nobody", "https://client.test/client.json"} {
		if _, err := n.Client(t.Context(), id); !errors.Is(err, authserver.ErrNoClient) {
			t.Errorf("%q: %v", id, err)
		}
	}
	// A login keeps a registered client.
	n.begin(t, func(_ *Draft, a *Agreement) { a.Client = found })
	stored, err := n.Store.RegisteredClient(t.Context(), asked.Client.ID)
	if err != nil || !stored.LoggedInAt.Equal(n.clock.time()) {
		t.Errorf("%+v, error %v", stored, err)
	}
	// One with which nobody logged in is gone after a day, also when no other client registers.
	n.clock.forward(storage.UnusedClientLifetime - time.Second)
	if _, err := n.Client(t.Context(), public.Client.ID); err != nil {
		t.Errorf("before a day: %v", err)
	}
	n.clock.forward(time.Second)
	if _, err := n.Client(t.Context(), public.Client.ID); !errors.Is(err, authserver.ErrNoClient) {
		t.Errorf("after a day: %v", err)
	}
	if _, err := n.Client(t.Context(), asked.Client.ID); err != nil {
		t.Errorf("one that is used: %v", err)
	}
}

// TestStands checks that a client whose login came of an identity provider that is gone has to log its user in anew, and that
// nothing is lost when the provider is back.
func TestStands(t *testing.T) {
	n := newNode(t)
	tokens := n.logIn(t, nil)
	stands := false
	n.Stands = func(issuer, audience string) bool {
		return stands && issuer == tokens.Login.Issuer && audience == tokens.Login.Audience
	}
	_, err := n.refresh(t, tokens.Refresh)
	wantCode(t, "without its provider", err, "invalid_grant")
	stands = true
	if _, err := n.refresh(t, tokens.Refresh); err != nil {
		t.Errorf("with its provider again: %v", err)
	}
}
