package authn

import (
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authn/authntest"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/storage"
)

// register registers a client as an agent.
func (d *door) register(organization, issuer, client string) storage.Agent {
	d.t.Helper()
	a := storage.Agent{
		ID: "agent-" + organization + issuer + client, OrganizationID: organization, CreatedAt: time.Now(), UpdatedAt: time.Now(),
		Application: storage.Application{ID: "app-" + organization + issuer + client, OrganizationID: organization, Issuer: issuer, ExternalID: client, Name: client},
	}
	if err := d.store.CreateAgent(d.t.Context(), a); err != nil {
		d.t.Fatal(err)
	}
	return a
}

func TestAgentOfAToken(t *testing.T) {
	d := newDoor(t, nil)
	raw := d.issuer.Sign(nil)
	b := d.settled(raw)
	if b.Agent() != nil || b.Caller().Agent != "agent" {
		t.Fatalf("unregistered: %+v", b.Agent())
	}
	organization := b.Caller().OrganizationID
	d.register(organization, authntest.IssuerID, "Agent")
	if b := d.settled(raw); b.Agent() != nil {
		t.Errorf("another client's: %+v", b.Agent())
	}
	registered := d.register(organization, authntest.IssuerID, "agent")
	if b := d.settled(raw); b.Agent() == nil || b.Agent().ID != registered.ID {
		t.Errorf("registered: %+v", b.Agent())
	}
	if b := d.settled(d.issuer.Sign(map[string]any{"azp": "other"})); b.Agent() != nil {
		t.Errorf("the other client is %+v", b.Agent())
	}
	others := 0
	d.settles(&d.store.agents, func() { // the client is looked up once for all of its users
		others++
		if b := d.bearer(d.issuer.Sign(map[string]any{"sub": "user " + strconv.Itoa(others)})); b.Agent() == nil || b.Agent().ID != registered.ID {
			t.Errorf("another user of the client: %+v", b.Agent())
		}
	})
	before := d.store.agents.Load()
	if b := d.settled(d.issuer.Sign(map[string]any{"azp": nil})); b.Agent() != nil || d.store.agents.Load() != before {
		t.Errorf("a token without a client: %+v after %d look-ups", b.Agent(), d.store.agents.Load()-before)
	}
	if err := d.store.DeleteAgent(t.Context(), organization, registered.ID, "", time.Now()); err != nil {
		t.Fatal(err)
	}
	if b := d.settled(raw); b.Agent() != nil {
		t.Errorf("deleted: %+v", b.Agent())
	}
	t.Run("O10 O15 an organization's agent is nobody else's", func(t *testing.T) {
		foreign := d.issuer.Sign(map[string]any{"org_id": "0192f0c1-5bd2-7000-8000-0000000000bb"})
		rival := d.settled(foreign).Caller().OrganizationID
		registered := d.register(rival, authntest.IssuerID, "agent")
		if b := d.settled(foreign); b.Agent() == nil || b.Agent().ID != registered.ID {
			t.Errorf("its own: %+v", b.Agent())
		}
		if b := d.settled(raw); b.Agent() != nil {
			t.Errorf("another organization's: %+v", b.Agent())
		}
	})
	t.Run("the store is away", func(t *testing.T) {
		d.store.agentsFail = storage.ErrUnavailable
		d.epochs.Bump("")
		if err := d.refused(raw, ""); !errors.Is(err, storage.ErrUnavailable) {
			t.Error(err)
		}
	})
}

func TestAgentsRegisterThemselves(t *testing.T) {
	d := newDoor(t, func(o *Options) { o.RegisterAgents = true })
	b := d.settled(d.issuer.Sign(nil))
	a := b.Agent()
	if a == nil || a.Type() != storage.AgentExternal || a.Channel() != storage.ChannelOutOfBand || a.Application.ExternalID != "agent" ||
		a.Application.Issuer != authntest.IssuerID || a.Application.Name != "agent" || a.WriteConfirmationsRequired || a.OrganizationID != b.Caller().OrganizationID {
		t.Fatalf("%+v", a)
	}
	if a.ID == "" || a.Application.ID == "" || a.ID == a.Application.ID {
		t.Errorf("its ids are %q and %q", a.ID, a.Application.ID)
	}
	for _, at := range []time.Time{a.CreatedAt, a.UpdatedAt, a.Application.CreatedAt, a.Application.UpdatedAt} {
		if since := time.Since(at); since < 0 || since > time.Minute {
			t.Errorf("it was made %s ago", since)
		}
	}
	if again := d.settled(d.issuer.Sign(map[string]any{"sub": "bob"})); again.Agent() == nil || again.Agent().ID != a.ID {
		t.Errorf("registered again: %+v", again.Agent())
	}
	if counts, err := d.store.AgentCounts(t.Context(), a.OrganizationID); err != nil || counts.All != 1 || counts.External != 1 {
		t.Errorf("%+v, %v", counts, err)
	}
	d.store.full, d.store.registered = true, 0
	if b := d.settled(d.issuer.Sign(map[string]any{"azp": "one too many"})); b.Agent() != nil || d.store.registered == 0 {
		t.Errorf("beyond the limit: %+v", b.Agent())
	}
	tried := d.store.registered
	d.store.agentsFail = storage.ErrUnavailable
	d.epochs.Bump("")
	if err := d.refused(d.issuer.Sign(nil), ""); !errors.Is(err, storage.ErrUnavailable) || d.store.registered != tried {
		t.Errorf("while the store is away: %v, %d tries", err, d.store.registered-tried)
	}
	d.store.agentsFail = nil
	// A configuration without the rule takes nothing over from one that has it.
	d.registerAgents, d.rulesID = false, "other rules"
	if b := d.settled(d.issuer.Sign(map[string]any{"azp": "another"})); b.Agent() != nil || d.store.registered != tried {
		t.Errorf("without the rule: %+v", b.Agent())
	}
}

// TestRegistrationOfAnotherConfiguration checks that a client which one configuration knows as no agent becomes one in
// another, with which it shares its memory.
func TestRegistrationOfAnotherConfiguration(t *testing.T) {
	d := newDoor(t, nil)
	who := d.settled(d.issuer.Sign(nil)).Caller()
	agent := func(register bool) *storage.Agent {
		t.Helper()
		s, err := d.memory.standingOf(t.Context(), &person{who: *who, register: register}, storage.MatchUserName)
		if err != nil {
			t.Fatal(err)
		}
		return s.agent
	}
	d.settles(&d.store.users, func() {
		if a := agent(false); a != nil {
			t.Errorf("registered: %+v", a)
		}
	})
	if agent(true) == nil {
		t.Error("not registered")
	}
}

func TestRevokedUsers(t *testing.T) {
	d := newDoor(t, nil)
	raw := d.issuer.Sign(nil)
	b := d.settled(raw)
	renew := func() error { return d.Renew(t.Context(), b) }
	if err := renew(); err != nil {
		t.Fatal(err)
	}
	revoke := func(at time.Time) {
		d.store.revokedAt = at
		d.epochs.Bump(b.Caller().OrganizationID)
	}
	refused := func(raw string) bool {
		t.Helper()
		again, err := d.Token(t.Context(), raw, "")
		if (err == nil) != again.Proven() || err != nil && !errors.Is(err, token.ErrInvalid) {
			t.Errorf("%v, %+v", err, again)
		}
		return err != nil
	}
	revoke(time.Now())
	if !refused(raw) {
		t.Error("R06 the token is good after its user was revoked")
	}
	err := d.refused(raw, "")
	if who := RefusedCaller(err); who == nil || who.UserID != b.Caller().UserID || who.OrganizationID != b.Caller().OrganizationID || err.Error() != token.ErrInvalid.Error() {
		t.Errorf("the refusal %v names %+v", err, who)
	}
	if err := renew(); !errors.Is(err, token.ErrInvalid) {
		t.Errorf("R06 a call that was on its way: %v", err)
	}
	if !refused(d.issuer.Sign(map[string]any{"jti": "same second"})) {
		t.Error("a token of the second of the revocation is good")
	}
	if !refused(d.issuer.Sign(map[string]any{"iat": nil})) {
		t.Error("a token that does not say when it was issued is good")
	}
	d.issuer.Advance(time.Now().Unix() + 2 - d.issuer.Now())
	if refused(d.issuer.Sign(nil)) {
		t.Error("a token issued since is refused")
	}
	t.Run("an issuer whose clock is ahead", func(t *testing.T) {
		ahead := d.issuer.Sign(map[string]any{"iat": d.issuer.Now() + 30, "jti": "ahead"})
		d.settled(ahead)
		revoke(time.Now())
		if !refused(ahead) {
			t.Error("a token that was here before the revocation outlives it")
		}
		ahead = d.issuer.Sign(map[string]any{"iat": d.issuer.Now() + 30, "jti": "slow", "name": "Alice of now"})
		d.store.resolving = func() { revoke(time.Now()) }
		defer func() { d.store.resolving = nil }()
		if !refused(ahead) {
			t.Error("a token that came before the revocation, and was read during it, outlives it")
		}
	})
	t.Run("the store is away", func(t *testing.T) {
		d.issuer.Advance(60)
		fresh := d.issuer.Sign(map[string]any{"jti": "fresh"})
		bearer := d.settled(fresh)
		d.store.agentsFail = storage.ErrUnavailable
		d.epochs.Bump("")
		if err := d.Renew(t.Context(), bearer); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("a call on its way: %v", err)
		}
	})
}

// TestZC01RevocationsByTheClockOfAllNodes checks that a node whose clock is ahead does not take a token that it saw
// before a revocation for one that came after it (Z-C01).
func TestZC01RevocationsByTheClockOfAllNodes(t *testing.T) {
	const ahead = 5 * time.Minute
	for name, shared := range map[string]func(time.Time) time.Time{
		"converted":     func(local time.Time) time.Time { return local.Add(-ahead) },
		"not converted": nil,
	} {
		d := newDoor(t, func(o *Options) { o.Shared = shared })
		d.turned.Store(int64(ahead))
		raw := d.issuer.Sign(map[string]any{"iat": d.issuer.Now() + 30})
		d.settled(raw)
		d.store.revokedAt = time.Now()
		d.epochs.Bump(authntest.OrganizationID)
		if _, err := d.Token(t.Context(), raw, ""); errors.Is(err, token.ErrInvalid) != (shared != nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRenewAsksOnlyAfterWrites checks that the store is asked about a call on its way only when something was written.
func TestRenewAsksOnlyAfterWrites(t *testing.T) {
	d := newDoor(t, nil)
	b := d.settled(d.issuer.Sign(nil))
	renewed := func() bool {
		t.Helper()
		before := d.store.users.Load()
		if err := d.Renew(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		return d.store.users.Load() != before
	}
	if b.History().Current() != b.ProvenAt() || renewed() {
		t.Error("nothing was written")
	}
	d.epochs.Bump("0192f0c1-5bd2-7000-8000-0000000000bb")
	if b.History().Current() != b.ProvenAt() || renewed() {
		t.Error("another organization's was written")
	}
	d.epochs.Bump(authntest.OrganizationID)
	if b.History().Current() == b.ProvenAt() || !renewed() {
		t.Error("something was written")
	}
}

// BenchmarkStanding measures the part of Token that asks whether the user was revoked, and for the agent.
func BenchmarkStanding(b *testing.B) {
	d := newDoor(b, func(o *Options) { o.RegisterAgents = true })
	bearer := d.settled(d.issuer.Sign(nil))
	b.ReportAllocs()
	for b.Loop() {
		if s, err := d.standing(b.Context(), bearer.token); err != nil || s.agent == nil {
			b.Fatal(err)
		}
	}
}
