package app

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/authn/authntest"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

const here = "192.0.2.1:1234"

// identity is an Identity of tests.
type identity struct{ *authntest.Issuer }

func (identity) Bind(Binding) error { return nil }
func (identity) IssuerID() string   { return authntest.IssuerID }

// keyring makes calls with tokens and keys, and has the core that they go to.
type keyring struct {
	*authntest.Keys
	t      testing.TB
	core   *Core
	issuer *authntest.Issuer
}

func newKeyring(t testing.TB) *keyring {
	t.Helper()
	store := sqlitetest.Open(t)
	r := &resources{store: store, epochs: new(cache.Epochs)}
	if err := r.makeCaches(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.closeCaches)
	k := &keyring{Keys: authntest.NewKeys(t, store, time.Now), t: t, issuer: authntest.NewIssuer(t, time.Now())}
	k.core = &Core{
		Store: store, Log: slog.New(slog.DiscardHandler), Streams: new(streams.Registry), resources: r, digester: k.Digester,
		rulesID: "rules",
	}
	if err := k.core.Issuers.Add(identity{k.issuer}); err != nil {
		t.Fatal(err)
	}
	k.core.Authenticator = k.core.newAuthenticator(nil)
	t.Cleanup(store.OnChange(r.epochs.Bump))
	judgeAgain := &streams.Rejudger{Streams: k.core.Streams, Hold: r.hold}
	t.Cleanup(store.OnChange(judgeAgain.Changed))
	k.core.bindServers(nil)
	return k
}

// use makes a call with a key.
func (k *keyring) use(raw, remote string) (*Call, error) {
	call := &Call{Core: k.core}
	b, err := k.core.Authenticator.Key(k.t.Context(), raw, remote)
	call.SetBearer(b)
	return call, err
}

// show makes a call with a token.
func (k *keyring) show(raw string) (*Call, error) {
	call := &Call{Core: k.core}
	b, err := k.core.Authenticator.Token(k.t.Context(), raw, "")
	call.SetBearer(b)
	return call, err
}

// TestBearers checks what a call knows of the bearer of a token and of a key.
func TestBearers(t *testing.T) {
	k := newKeyring(t)
	raw, id := k.Make(nil)
	byToken, err := k.show(k.issuer.Sign(nil))
	if err != nil {
		t.Fatal(err)
	}
	byKey, err := k.use(raw, here)
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]*Call{"key": byKey, "token": byToken} {
		if call.Caller == nil || call.Caller.UserID != k.User.ID || call.notes == nil || call.Party().Principal() == nil || call.epoch() != call.bearer.ProvenAt() {
			t.Errorf("%s: %+v", name, call.Caller)
		}
	}
	if byKey.tokenNotes() != nil || byToken.tokenNotes() != byToken.notes {
		t.Error("notes")
	}
	if b := RecordedBearer(byKey.Caller); b != (record.Bearer{OrganizationID: authntest.OrganizationID, UserID: k.User.ID, KeyID: id}) {
		t.Errorf("%+v", b)
	}
	if b := RecordedBearer(byToken.Caller); b != (record.Bearer{OrganizationID: authntest.OrganizationID, UserID: k.User.ID, Client: "agent"}) {
		t.Errorf("%+v", b)
	}
	nobody, err := k.show("x")
	if err == nil || nobody.Caller != nil || nobody.Agent != nil || nobody.notes != nil || nobody.Party().Principal() != nil || RecordedBearer(nil) != (record.Bearer{}) {
		t.Errorf("%v, %+v", err, nobody.Caller)
	}
}

// TestNobodyHasAPrincipal checks that a call without a caller has no principal, and one whose caller has no credential
// has a principal that stays the same.
func TestNobodyHasAPrincipal(t *testing.T) {
	if (&Call{}).Party().Principal() != nil {
		t.Error("nobody has a principal")
	}
	call := &Call{Caller: &authn.Caller{UserID: "u"}, Agent: &storage.Agent{ID: "a"}}
	if p, err := call.Party().PrincipalNow()(t.Context()); err != nil || p.AgentID() != "a" || call.Party().PrincipalAs(nil).AgentID() != "" {
		t.Errorf("%v", err)
	}
}

func TestAgentRules(t *testing.T) {
	if rules := (&App{Agents: &settings.AgentRules{RequireRegistered: true}}).agentRules(); rules != (settings.AgentRules{RequireRegistered: true}) {
		t.Errorf("%+v", rules)
	}
	if rules := (&App{}).agentRules(); rules != (settings.AgentRules{}) {
		t.Errorf("by default %+v", rules)
	}
	registered := &storage.Agent{ID: "a"}
	for _, tc := range []struct {
		rules   settings.AgentRules
		agent   *storage.Agent
		allowed bool
	}{
		{settings.AgentRules{}, nil, true}, {settings.AgentRules{}, registered, true},
		{settings.AgentRules{RequireRegistered: true}, nil, false}, {settings.AgentRules{RequireRegistered: true}, registered, true},
	} {
		if tc.rules.Allow(tc.agent) != tc.allowed {
			t.Errorf("%+v, agent %v", tc.rules, tc.agent)
		}
	}
}

// TestAuthenticatorOfRules checks that the rules for agents reach the authenticator of a configuration.
func TestAuthenticatorOfRules(t *testing.T) {
	k := newKeyring(t)
	call, err := k.show(k.issuer.Sign(nil))
	if err != nil || call.Agent != nil {
		t.Fatalf("%v, %+v", err, call.Agent)
	}
	k.core.AgentRules, k.core.rulesID = settings.AgentRules{RequireRegistered: true}, "required"
	k.core.Authenticator = k.core.newAuthenticator(nil)
	if call, err = k.show(k.issuer.Sign(nil)); err != nil {
		t.Fatal(err)
	}
	if p, err := call.Party().PrincipalNow()(t.Context()); err != nil || p != nil {
		t.Errorf("an agent is required: %v, %v", p, err)
	}
	k.core.AgentRules, k.core.rulesID = settings.AgentRules{AutoRegister: true}, "registering"
	k.core.Authenticator = k.core.newAuthenticator(nil)
	if call, err = k.show(k.issuer.Sign(nil)); err != nil || call.Agent == nil {
		t.Errorf("registering: %v", err)
	}
}

// TestR06CallsEndWithTheirUser checks that a call on its way learns that its user was revoked.
func TestR06CallsEndWithTheirUser(t *testing.T) {
	k := newKeyring(t)
	call, err := k.show(k.issuer.Sign(nil))
	if err != nil {
		t.Fatal(err)
	}
	addServer(t, k.Store, authntest.OrganizationID, k.User.ID, "demo")
	if err := errors.Join(call.ResolveServer(t.Context(), "demo"), call.RenewServer(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Store.RevokeUser(t.Context(), authntest.OrganizationID, k.User.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := call.RenewServer(t.Context()); !isEnded(err, streams.Revoked) {
		t.Errorf("%v", err)
	}
	if holds, err := call.ground(nil)(t.Context()); holds || !isEnded(err, streams.Revoked) {
		t.Errorf("a stream: %t, %v", holds, err)
	}
}

// TestRolesInRecords checks that a record says when the roles of a key are not known, and how long names were that it
// leaves out.
func TestRolesInRecords(t *testing.T) {
	k := newKeyring(t)
	entry := func(call *Call, err error) (e storage.AuditEntry) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		call.addRoles(&e)
		return e
	}
	raw, _ := k.Make(nil)
	if e := entry(k.use(raw, here)); e.Detail["roles_unknown"] != true || e.Roles != nil {
		t.Errorf("a key without facts: %+v", e)
	}
	if e := entry(k.show(k.issuer.Sign(nil))); len(e.Roles) != 2 || e.Groups == nil || e.Detail != nil {
		t.Errorf("a token: %+v", e)
	}
	many := make([]string, 100)
	for i := range many {
		many[i] = strings.Repeat("r", 60) + strconv.Itoa(100+i)
	}
	if e := entry(k.show(k.issuer.Sign(map[string]any{"roles": many}))); e.Detail["roles_bytes"] != 6_300 || e.Roles != nil {
		t.Errorf("many roles: %+v", e)
	}
}

func isEnded(err error, reason streams.Reason) bool {
	var ended *streams.Ended
	return errors.As(err, &ended) && ended.Reason == reason
}

// TestK02StreamsEndWithTheirKey checks that calls and streams of a revoked key end once the store has the revocation,
// whoever writes it.
func TestK02StreamsEndWithTheirKey(t *testing.T) {
	for name, end := range map[string]func(k *keyring, id string) error{
		"revoked": func(k *keyring, id string) error {
			_, err := k.Store.RevokeAPIKey(t.Context(), authntest.OrganizationID, id, time.Now())
			return err
		},
		"disabled": func(k *keyring, id string) error {
			_, err := k.Store.UpdateAPIKey(t.Context(), authntest.OrganizationID, id, func(k *storage.APIKey) error { k.Disabled = true; return nil })
			return err
		},
		"its user revoked": func(k *keyring, _ string) error {
			_, err := k.Store.RevokeUser(t.Context(), authntest.OrganizationID, k.User.ID, time.Now())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeyring(t)
			raw, id := k.Make(nil)
			sibling, _ := k.Make(func(s *storage.APIKey) { s.UserID, s.GroupName = "", "g" })
			running, err := k.use(raw, here)
			if err != nil {
				t.Fatal(err)
			}
			ctx, done := running.Streams().Open(t.Context(), streams.Listen)
			defer done()
			other, err := k.use(sibling, here)
			if err != nil {
				t.Fatal(err)
			}
			otherCtx, otherDone := other.Streams().Open(t.Context(), streams.Listen)
			defer otherDone()
			if err := end(k, id); err != nil {
				t.Fatal(err)
			}
			if err := running.renewStanding(t.Context()); !isEnded(err, streams.Revoked) {
				t.Errorf("a call under way: %v", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(30 * time.Second):
				t.Fatal("the stream runs on")
			}
			if reason, _ := streams.EndedFor(ctx); reason != streams.Revoked {
				t.Errorf("ended for %q", reason)
			}
			late, lateDone := running.Streams().Open(t.Context(), streams.Listen)
			defer lateDone()
			if reason, ended := streams.EndedFor(late); !ended || reason != streams.Revoked {
				t.Errorf("a stream that opens too late: %q", reason)
			}
			if _, err := k.use(sibling, here); err != nil || otherCtx.Err() != nil {
				t.Errorf("another key: %v, %v", err, otherCtx.Err())
			}
		})
	}
}

// TestK04StreamsEndWithTheirKey checks that a stream ends at the moment at which its key expires.
func TestK04StreamsEndWithTheirKey(t *testing.T) {
	k := newKeyring(t)
	soon, _ := k.Make(func(s *storage.APIKey) { s.ExpiresAt = time.Now().Add(500 * time.Millisecond) })
	call, err := k.use(soon, here)
	if err != nil {
		t.Fatal(err)
	}
	ctx, done := call.Streams().Open(t.Context(), streams.Listen)
	defer done()
	<-ctx.Done()
	if reason, _ := streams.EndedFor(ctx); reason != streams.TokenExpired {
		t.Errorf("ended for %q", reason)
	}
	if _, err := k.use(soon, here); !token.IsOver(err) {
		t.Errorf("%v", err)
	}
}

// TestK09StreamOpensByFactsOfNow writes facts of the user between the proof of a key and the look at its server: the stream of
// the call begins only by the facts that hold then.
func TestK09StreamOpensByFactsOfNow(t *testing.T) {
	k := newKeyring(t)
	k.Say(authntest.Lists{Roles: []string{"staff"}, Groups: []string{"ops"}}, time.Hour)
	addServer(t, k.Store, authntest.OrganizationID, k.User.ID, "demo")
	raw, _ := k.Make(nil)
	call, err := k.use(raw, here)
	if err != nil {
		t.Fatal(err)
	}
	k.Say(authntest.Lists{Roles: []string{"staff"}, Groups: []string{"sales"}}, time.Minute)
	if err := call.ResolveServer(t.Context(), "demo"); err != nil {
		t.Fatal(err)
	}
	set, principalNow := authntest.DeniesSales(t), call.Party().PrincipalNow()
	allowed := func(ctx context.Context, who *engine.Principal) bool {
		return set.Decide(ctx, engine.Call{Principal: who, Kind: engine.ToolsCall, Name: "read"}).Effect == engine.Allow
	}
	if !allowed(t.Context(), call.Party().Principal()) {
		t.Fatal("the group of before is denied too")
	}
	call.Decide().Right = func(ctx context.Context) (bool, error) {
		who, err := principalNow(ctx)
		return err == nil && allowed(ctx, who), err
	}
	ctx, done := call.Streams().Open(t.Context(), streams.Listen)
	defer done()
	if reason, ended := streams.EndedFor(ctx); !ended || reason != streams.PolicyChanged {
		t.Errorf("the stream begins by what was: %q", reason)
	}
}
