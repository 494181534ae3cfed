package app

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/storage"
)

// bearerStore counts look-ups of users and agents, and revokes users.
type bearerStore struct {
	storage.Store
	revokedAt     time.Time
	users, agents int
	fails         error
}

func (s *bearerStore) User(ctx context.Context, organization, id string) (storage.User, error) {
	s.users++
	u, err := s.Store.User(ctx, organization, id)
	u.RevokedAt = s.revokedAt
	return u, err
}

func (s *bearerStore) AgentByClient(ctx context.Context, organization, issuer, externalID string) (storage.Agent, error) {
	if s.agents++; s.fails != nil {
		return storage.Agent{}, s.fails
	}
	return s.Store.AgentByClient(ctx, organization, issuer, externalID)
}

func newBearers(t testing.TB, rules AgentRules) (*Core, *issuer, *bearerStore) {
	t.Helper()
	core, i, opened := newAuthenticator(t)
	store := &bearerStore{Store: opened}
	core.Store, core.resources.store, core.agents = store, store, rules
	t.Cleanup(store.OnChange(core.resources.epochs.Bump))
	core.bindServers(nil)
	return core, i, store
}

// agentSettles authenticates until the standing of the bearer is kept, and returns the call.
func agentSettles(t testing.TB, core *Core, store *bearerStore, raw string) *Call {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		before, call := store.users, &Call{Core: core}
		if err := call.Authenticate(t.Context(), raw, ""); err != nil {
			t.Fatal(err)
		}
		if store.users == before {
			return call
		}
		if time.Now().After(deadline) {
			t.Fatal("the standing is never kept") // the cache stores in the background
		}
	}
}

func TestAgentOfAToken(t *testing.T) {
	core, i, store := newBearers(t, AgentRules{RequireRegistered: true})
	raw := i.sign(nil)
	call := agentSettles(t, core, store, raw)
	if call.Agent != nil || call.AgentAllowed() || call.Caller.Agent != "agent" {
		t.Fatalf("unregistered: %+v", call.Agent)
	}
	register := func(organization, issuer, client string) storage.Agent {
		a := storage.Agent{
			ID: "agent-" + organization + issuer + client, OrganizationID: organization, CreatedAt: time.Now(), UpdatedAt: time.Now(),
			Application: storage.Application{ID: "app-" + organization + issuer + client, OrganizationID: organization, Issuer: issuer, ExternalID: client, Name: client},
		}
		if err := store.CreateAgent(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		return a
	}
	organization := call.Caller.OrganizationID
	register(organization, issuerID, "Agent")
	if call := agentSettles(t, core, store, raw); call.Agent != nil {
		t.Errorf("another client's: %+v", call.Agent)
	}
	registered := register(organization, issuerID, "agent")
	if call := agentSettles(t, core, store, raw); call.Agent == nil || call.Agent.ID != registered.ID || !call.AgentAllowed() {
		t.Errorf("registered: %+v", call.Agent)
	}
	if call := agentSettles(t, core, store, i.sign(map[string]any{"azp": "other"})); call.Agent != nil {
		t.Errorf("the other client is %+v", call.Agent)
	}
	before := store.agents
	if call := agentSettles(t, core, store, i.sign(map[string]any{"sub": "bob"})); call.Agent == nil || store.agents != before {
		t.Errorf("another user of the client: %+v after %d look-ups", call.Agent, store.agents-before)
	}
	if call := agentSettles(t, core, store, i.sign(map[string]any{"azp": nil})); call.Agent != nil || store.agents != before {
		t.Errorf("a token without a client: %+v after %d look-ups", call.Agent, store.agents-before)
	}
	if err := store.DeleteAgent(t.Context(), organization, registered.ID, "", time.Now()); err != nil {
		t.Fatal(err)
	}
	if call := agentSettles(t, core, store, raw); call.Agent != nil {
		t.Errorf("deleted: %+v", call.Agent)
	}
	t.Run("O10 O15 an organization's agent is nobody else's", func(t *testing.T) {
		foreign := i.sign(map[string]any{"org_id": "0192f0c1-5bd2-7000-8000-0000000000bb"})
		rival := agentSettles(t, core, store, foreign).Caller.OrganizationID
		registered := register(rival, issuerID, "agent")
		if call := agentSettles(t, core, store, foreign); call.Agent == nil || call.Agent.ID != registered.ID {
			t.Errorf("its own: %+v", call.Agent)
		}
		if call := agentSettles(t, core, store, raw); call.Agent != nil {
			t.Errorf("another organization's: %+v", call.Agent)
		}
	})
	t.Run("the store is away", func(t *testing.T) {
		store.fails = storage.ErrUnavailable
		core.resources.epochs.Bump("")
		call := &Call{Core: core}
		if err := call.Authenticate(t.Context(), raw, ""); !errors.Is(err, storage.ErrUnavailable) || call.Caller != nil || call.Agent != nil {
			t.Errorf("%v, caller %v, agent %v", err, call.Caller, call.Agent)
		}
	})
}

// fullStore has no room for another agent.
type fullStore struct {
	*bearerStore
	tried int
}

func (s *fullStore) RegisterAgent(_ context.Context, _ storage.Agent, limit int) (storage.Agent, error) {
	s.tried++
	if limit != 1000 {
		return storage.Agent{}, errors.New("no limit")
	}
	return storage.Agent{}, storage.ErrNotFound
}

func TestAgentsRegisterThemselves(t *testing.T) {
	core, i, store := newBearers(t, AgentRules{AutoRegister: true})
	call := agentSettles(t, core, store, i.sign(nil))
	a := call.Agent
	if a == nil || a.Type() != storage.AgentExternal || a.Channel() != storage.ChannelOutOfBand || a.Application.ExternalID != "agent" ||
		a.Application.Issuer != issuerID || a.Application.Name != "agent" || !a.WriteConfirmationsRequired || a.OrganizationID != call.Caller.OrganizationID {
		t.Fatalf("%+v", a)
	}
	if again := agentSettles(t, core, store, i.sign(map[string]any{"sub": "bob"})); again.Agent == nil || again.Agent.ID != a.ID {
		t.Errorf("registered again: %+v", again.Agent)
	}
	if counts, err := store.AgentCounts(t.Context(), a.OrganizationID); err != nil || counts.All != 1 || counts.External != 1 {
		t.Errorf("%+v, %v", counts, err)
	}
	full := &fullStore{bearerStore: store}
	core.Store, core.resources.store = full, full
	if call := agentSettles(t, core, store, i.sign(map[string]any{"azp": "one too many"})); call.Agent != nil || full.tried == 0 {
		t.Errorf("beyond the limit: %+v", call.Agent)
	}
	// A configuration without the rule takes nothing over from one that has it.
	core.agents, core.rulesID = AgentRules{}, "other rules"
	tried := full.tried
	if call := agentSettles(t, core, store, i.sign(map[string]any{"azp": "another"})); call.Agent != nil || full.tried != tried {
		t.Errorf("without the rule: %+v", call.Agent)
	}
}

func TestRevokedUsers(t *testing.T) {
	core, i, store := newBearers(t, AgentRules{})
	raw := i.sign(nil)
	call := agentSettles(t, core, store, raw)
	addServer(t, store, call.Caller.OrganizationID, call.Caller.UserID, "demo")
	if err := errors.Join(call.ResolveServer(t.Context(), "demo"), call.RenewServer(t.Context())); err != nil {
		t.Fatal(err)
	}
	revoke := func(at time.Time) {
		store.revokedAt = at
		core.resources.epochs.Bump(call.Caller.OrganizationID)
	}
	refused := func(raw string) bool {
		t.Helper()
		again := &Call{Core: core}
		err := again.Authenticate(t.Context(), raw, "")
		_, other := core.Authenticate(t.Context(), raw, "")
		if !errors.Is(other, token.ErrInvalid) != (err == nil) || (err == nil) != (again.Caller != nil) || err != nil && !errors.Is(err, token.ErrInvalid) {
			t.Errorf("%v, %v, caller %v", err, other, again.Caller)
		}
		return err != nil
	}
	revoke(time.Now())
	if !refused(raw) {
		t.Error("R06 the token is good after its user was revoked")
	}
	var ended *streams.Ended
	if err := call.RenewServer(t.Context()); !errors.As(err, &ended) || ended.Reason != streams.Revoked {
		t.Errorf("R06 a call that was on its way: %v", err)
	}
	if !refused(i.sign(map[string]any{"jti": "same second"})) {
		t.Error("a token of the second of the revocation is good")
	}
	if !refused(i.sign(map[string]any{"iat": nil})) {
		t.Error("a token that does not say when it was issued is good")
	}
	i.now.Add(2)
	if refused(i.sign(nil)) {
		t.Error("a token issued since is refused")
	}
	t.Run("an issuer whose clock is ahead", func(t *testing.T) {
		ahead := i.sign(map[string]any{"iat": i.now.Load() + 30, "jti": "ahead"})
		settle(t, core, i, ahead, "")
		revoke(time.Now())
		if !refused(ahead) {
			t.Error("a token that was here before the revocation outlives it")
		}
	})
}

func TestAgentRules(t *testing.T) {
	if rules := (&App{Agents: &AgentRules{RequireRegistered: true}}).agentRules(); rules != (AgentRules{RequireRegistered: true}) {
		t.Errorf("%+v", rules)
	}
	if rules := (&App{}).agentRules(); rules != (AgentRules{}) {
		t.Errorf("by default %+v", rules)
	}
}

func TestPrincipal(t *testing.T) {
	core, i, store := newBearers(t, AgentRules{AutoRegister: true})
	raw := i.sign(nil)
	call := agentSettles(t, core, store, raw)
	made := call.Principal()
	if made == nil || made != call.Principal() || made != agentSettles(t, core, store, raw).Principal() {
		t.Error("the principal is made anew for each call")
	}
	for _, agent := range []*storage.Agent{nil, call.Agent} {
		want := ""
		if agent != nil {
			want = agent.ID
		}
		if call.PrincipalAs(agent) == nil || call.token.last.Load().AgentID() != want {
			t.Error("the principal does not know the agent")
		}
	}
	t.Run("of a stream", func(t *testing.T) {
		now := call.PrincipalNow()
		if who, err := now(t.Context()); err != nil || who != call.Principal() {
			t.Errorf("%v, %v", who, err)
		}
		if err := store.DeleteAgent(t.Context(), call.Caller.OrganizationID, call.Agent.ID, "", time.Now()); err != nil {
			t.Fatal(err)
		}
		if who, err := now(t.Context()); err != nil || who == nil || call.token.last.Load().AgentID() == call.Agent.ID {
			t.Errorf("%v, %v: the agent was deleted", who, err)
		}
		core.agents = AgentRules{RequireRegistered: true}
		call.token.register = false
		found, err := store.AgentByClient(t.Context(), call.Caller.OrganizationID, issuerID, "agent")
		if err == nil { // registered again on sight
			err = store.DeleteAgent(t.Context(), call.Caller.OrganizationID, found.ID, "", time.Now())
		}
		if err != nil {
			t.Fatal(err)
		}
		if who, err := now(t.Context()); err != nil || who != nil {
			t.Errorf("%v, %v: an agent is required", who, err)
		}
		store.revokedAt = time.Now()
		core.resources.epochs.Bump("")
		if who, err := now(t.Context()); err != nil || who == nil {
			t.Errorf("%v, %v: the user was revoked", who, err)
		}
		store.fails = storage.ErrUnavailable
		core.resources.epochs.Bump("")
		if who, err := now(t.Context()); !errors.Is(err, storage.ErrUnavailable) || who != nil {
			t.Errorf("%v, %v: the store is away", who, err)
		}
	})
	if (&Call{}).Principal() != nil {
		t.Error("nobody has a principal")
	}
}

// BenchmarkAuthenticate measures the cost of every request for knowing its caller, whose token is known.
func BenchmarkAuthenticate(b *testing.B) {
	core, i, store := newBearers(b, AgentRules{AutoRegister: true})
	raw := i.sign(nil)
	agentSettles(b, core, store, raw)
	b.ReportAllocs()
	for b.Loop() {
		call := Call{Core: core}
		if err := call.Authenticate(b.Context(), raw, ""); err != nil || call.Agent == nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStanding measures the part of it that asks whether the user was revoked, and for the agent.
func BenchmarkStanding(b *testing.B) {
	core, i, store := newBearers(b, AgentRules{AutoRegister: true})
	call := agentSettles(b, core, store, i.sign(nil))
	b.ReportAllocs()
	for b.Loop() {
		if s, err := core.standing(b.Context(), call.token); err != nil || s.agent == nil {
			b.Fatal(err)
		}
	}
}
