package connection

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage"
)

// TestW05NextConnectAsksForMore checks that missed scopes are asked for together with the granted ones, until the user
// has answered.
func TestW05NextConnectAsksForMore(t *testing.T) {
	b := setup(t)
	asked := func(r ConnectResult) string {
		t.Helper()
		u, err := url.Parse(*r.AuthURL)
		if err != nil {
			t.Fatal(err)
		}
		return u.Query().Get("scope")
	}
	if err := b.Want(t.Context(), b.key, "write"); err != nil {
		t.Errorf("of somebody who is not connected: %v", err)
	}
	first := asked(b.begin())
	b.connect()
	version := b.connection().Version
	for _, want := range []string{"files:write", "files:write", "", "files:write", "\"none\"", strings.Repeat("x", 9<<10)} {
		if err := b.Want(t.Context(), b.key, want); err != nil {
			t.Fatalf("%q: %v", want, err)
		}
	}
	c := b.connection()
	if c.WantedScope != "files:write" || c.Status != storage.ConnectionConnected || c.Version == version {
		t.Errorf("stored %+v", c)
	}
	if got := widened(storage.Connection{Scope: "read files:write"}, "read files:write more"); got != "more" {
		t.Errorf("beside what is granted %q is wanted", got)
	}
	b.use(b.Broker)
	again := b.begin()
	if got := asked(again); got != first+" files:write" {
		t.Errorf("asked for %q, at first for %q", got, first)
	}
	if r, err := b.Callback(t.Context(), b.provider.approve(*again.AuthURL), ownBrowser); err != nil || !r.OK {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := b.connection().WantedScope; got != "" {
		t.Errorf("after the user's answer %q is still asked for", got)
	}
}

// TestW05GrantedAsAsked checks a provider that leaves out scope when it grants the requested scope (RFC 6749 section
// 5.1). The requested scope is kept then: a user must not be sent to the provider again and again for scopes already
// granted.
func TestW05GrantedAsAsked(t *testing.T) {
	for name, tc := range map[string]struct{ says, want string }{
		"it says nothing":  {"", "read files:write"},
		"it grants less":   {"read", "read"},
		"it grants others": {"read admin", "read admin"},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.connect()
			if err := b.Want(t.Context(), b.key, "files:write"); err != nil {
				t.Fatal(err)
			}
			b.provider.set(func(p *provider) { p.scope = tc.says })
			b.connect()
			if got := b.connection().Scope; got != tc.want {
				t.Errorf("%q is stored as granted, want %q", got, tc.want)
			}
			if err := b.Want(t.Context(), b.key, "files:write"); err != nil {
				t.Fatal(err)
			}
			enough, err := b.GivesEnough(t.Context(), b.key)
			if err != nil || enough != (tc.says == "") {
				t.Errorf("gives enough: %v, %v", enough, err)
			}
			b.clock.advance(time.Hour)
			b.use(b.Broker)
			if got := b.connection().Scope; got != tc.want {
				t.Errorf("after a refresh it is %q", got)
			}
			b.provider.set(func(p *provider) { p.scope = "less" })
			b.clock.advance(time.Hour)
			b.use(b.Broker)
			if got := b.connection().Scope; got != "less" {
				t.Errorf("after a refresh that gives less it is %q", got)
			}
		})
	}
}

// TestW05UnnamedPermission checks a server that does not say which permission it misses (RFC 6750 section 3.1). The
// missing permission is noted, no scope is made up, and the granted scopes are asked for again.
func TestW05UnnamedPermission(t *testing.T) {
	b := setup(t)
	b.provider.set(func(p *provider) { p.scope = "read extra" })
	b.connect()
	for _, scope := range []string{"", " ", "\"none\""} {
		if err := b.Want(t.Context(), b.key, scope); err != nil {
			t.Fatal(err)
		}
		enough, err := b.GivesEnough(t.Context(), b.key)
		if err != nil || enough {
			t.Errorf("%q: it gives enough (%v)", scope, err)
		}
		began := b.begin()
		u, err := url.Parse(*began.AuthURL)
		if err != nil || u.Query().Get("scope") != "read extra" {
			t.Errorf("%q: asked at %s, %v", scope, u, err)
		}
		if r, err := b.Callback(t.Context(), b.provider.approve(*began.AuthURL), ownBrowser); err != nil || !r.OK {
			t.Fatalf("%+v, %v", r, err)
		}
		if enough, err := b.GivesEnough(t.Context(), b.key); err != nil || !enough {
			t.Errorf("%q: after the user's answer it does not give enough (%v)", scope, err)
		}
	}
	if err := b.Want(t.Context(), b.key, "read"); err != nil {
		t.Fatal(err)
	}
	if enough, err := b.GivesEnough(t.Context(), b.key); err != nil || !enough {
		t.Errorf("what is granted is missed (%v)", err)
	}
}

// TestW05WriteAmplifier checks an upstream that misses another scope at each call. It causes one write a minute, and no
// more wanted scopes than a provider's page could show. A user who connects again starts from zero.
func TestW05WriteAmplifier(t *testing.T) {
	b := setup(t)
	b.connect()
	writes := func(f func()) int {
		t.Helper()
		n := 0
		count := func() error { n++; return nil }
		b.store.afterEdit.Store(&count)
		defer b.store.afterEdit.Store(nil)
		f()
		return n
	}
	want := func(scope string) {
		t.Helper()
		if err := b.Want(t.Context(), b.key, scope); err != nil {
			t.Fatal(err)
		}
	}
	if n := writes(func() {
		for i := range 50 {
			want(fmt.Sprint("scope", i))
			b.clock.advance(time.Second)
		}
	}); n != 1 {
		t.Errorf("%d writes within a minute", n)
	}
	bob := b.as("bob")
	if n := writes(func() {
		if err := b.Want(t.Context(), bob, "write"); err != nil {
			t.Fatal(err)
		}
	}); n != 1 {
		t.Errorf("%d writes for another user", n)
	}
	b.clock.advance(wantEvery)
	if n := writes(func() {
		for i := range 100 {
			want(fmt.Sprint("other", i))
			b.clock.advance(wantEvery)
		}
	}); n != maxWanted-1 {
		t.Errorf("%d writes in a hundred minutes", n)
	}
	if n := len(strings.Fields(b.connection().WantedScope)); n != maxWanted {
		t.Errorf("%d scopes are wanted", n)
	}
	want("last")
	b.connect()
	want("write " + strings.Repeat("x ", 3) + "more")
	if got := b.connection().WantedScope; got != "write x more" {
		t.Errorf("right after the user's answer %q is wanted", got)
	}
	b.clock.advance(wantEvery)
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprint("many", i)
	}
	want(strings.Join(many, " "))
	if got := strings.Fields(b.connection().WantedScope); len(got) != maxWanted || got[3] != "many0" {
		t.Errorf("%q are wanted", got)
	}
}

// TestW05PlainReconnect checks a user who connects again when no server asked for it. The configured or discovered
// scopes are asked for, and stored as granted: the user may choose least privilege.
func TestW05PlainReconnect(t *testing.T) {
	b := setup(t)
	b.connect()
	if err := b.Want(t.Context(), b.key, "files:write"); err != nil {
		t.Fatal(err)
	}
	b.connect()
	b.connect()
	if got := b.connection().Scope; got != "read" {
		t.Errorf("%q is stored as granted", got)
	}
	if err := b.Want(t.Context(), b.key, "files:write"); err != nil {
		t.Fatal(err)
	}
	if got := b.connection().WantedScope; got != "files:write" {
		t.Errorf("%q is wanted", got)
	}
}

// TestW05StoreFails checks that a permission that could not be noted is noted at the next call. Nobody counts as having
// enough as long as the store cannot say so.
func TestW05StoreFails(t *testing.T) {
	b := setup(t)
	if enough, err := b.GivesEnough(t.Context(), b.key); !enough || err != nil {
		t.Errorf("nobody: gives enough: %v, %v", enough, err)
	}
	b.connect()
	b.Broker.store = unreadable{b.store}
	if err := b.Want(t.Context(), b.key, "write"); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if enough, err := b.GivesEnough(t.Context(), b.key); enough || !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("gives enough: %v, %v", enough, err)
	}
	b.Broker.store = b.store
	full := func() error { return storage.ErrUnavailable }
	b.store.afterEdit.Store(&full)
	if err := b.Want(t.Context(), b.key, "write"); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	b.store.afterEdit.Store(nil)
	if err := b.Want(t.Context(), b.key, "write"); err != nil || b.connection().WantedScope != "write" {
		t.Errorf("%v, %q is wanted", err, b.connection().WantedScope)
	}
	b.clock.advance(wantEvery)
	gone := func() {
		if err := b.Disconnect(t.Context(), b.key); err != nil {
			t.Error(err)
		}
	}
	b.store.beforeUpdate.Store(&gone)
	if err := b.Want(t.Context(), b.key, "more"); err != nil {
		t.Errorf("disconnected meanwhile: %v", err)
	}
}

// TestScopesFor checks which scopes a connect asks for.
func TestScopesFor(t *testing.T) {
	client := storage.OAuthClient{Scopes: []string{"read"}}
	long := strings.Repeat("x", 5<<10)
	for name, tc := range map[string]struct {
		client storage.OAuthClient
		former storage.Connection
		want   []string
	}{
		"nothing is wanted": {client, storage.Connection{Scope: "more"}, []string{"read"}},
		"more is wanted":    {client, storage.Connection{Scope: "read more", WantedScope: "write"}, []string{"read", "more", "write"}},
		"something unnamed": {client, storage.Connection{Scope: "read more", WantedScope: unnamed}, []string{"read", "more"}},
		"too much":          {client, storage.Connection{Scope: "a" + long, WantedScope: "b" + long}, []string{"read"}},
		"all": {storage.OAuthClient{Scopes: []string{"offline_access", "api://app/.default"}}, storage.Connection{Scope: "more", WantedScope: "write"},
			[]string{"offline_access", "api://app/.default"}},
	} {
		if diff := cmp.Diff(tc.want, scopesFor(tc.client, tc.former)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestRefreshScope checks W14: Entra ID answers a refresh without `scope` with a token for something else
// (anthropics/claude-code#89862). If the entry says so, the requested scopes are sent, not the granted ones: Entra ID
// refuses those (AADSTS70011).
func TestRefreshScope(t *testing.T) {
	for name, tc := range map[string]struct {
		on     bool
		scopes string
		wanted string // by the server, before the user connects once more
		want   string
	}{
		"off": {scopes: "api://app/.default offline_access"},
		"on":  {on: true, scopes: "api://app/.default offline_access", want: "api://app/.default offline_access"},
		"on, asked for more": {on: true, scopes: "api://app/read offline_access", wanted: "api://app/write",
			want: "api://app/read offline_access api://app/write"},
		"on, more than all that the app has": {on: true, scopes: "api://app/.default offline_access", wanted: "api://app/write",
			want: "api://app/.default offline_access"},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.change(func(e *storage.DirectoryEntry) {
				e.Scopes, e.Options.RefreshScope = strings.Fields(tc.scopes), tc.on
			})
			b.provider.set(func(p *provider) {
				p.scope = strings.Replace(tc.scopes, " offline_access", " api://app/read", 1)
			})
			b.connect()
			if tc.wanted != "" {
				if err := b.Want(t.Context(), b.key, tc.wanted); err != nil {
					t.Fatal(err)
				}
				b.connect()
				if enough, err := b.GivesEnough(t.Context(), b.key); err != nil || !enough {
					t.Errorf("after the user's answer it does not give enough (%v)", err)
				}
			}
			for range 2 { // the requested scopes are kept with the next token
				b.clock.advance(time.Hour)
				b.use(b.node())
				forms := get(b.provider, func(p *provider) []url.Values { return p.forms })
				last := forms[len(forms)-1]
				if last.Get("grant_type") != "refresh_token" || last.Get("scope") != tc.want || last.Has("scope") != tc.on {
					t.Errorf("sent %v, want scope %q", last, tc.want)
				}
			}
		})
	}
}
