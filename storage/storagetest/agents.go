package storagetest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// newAgent returns an internal agent with every member set, not stored.
func newAgent(organization, name string) storage.Agent {
	return storage.Agent{
		ID: newID(), OrganizationID: organization,
		Application: storage.Application{ID: newID(), OrganizationID: organization, Issuer: issuer, ExternalID: "client-" + newID()[24:],
			Name: name, Description: "About " + name, Public: true, PostLoginSuccess: true, Callbacks: []string{"https://app.example.com/cb"},
			CreatedAt: start, UpdatedAt: start.Add(time.Second)},
		WriteConfirmationsRequired: true, LLMGatewayEnabled: true, ApprovalChannel: storage.ChannelOutOfBand,
		CreatedAt: start, UpdatedAt: start.Add(time.Second),
	}
}

// agent stores an agent.
func (b *bundle) agent(t *testing.T, organization, name string) storage.Agent {
	t.Helper()
	a := newAgent(organization, name)
	noError(t, b.CreateAgent(t.Context(), a))
	return a
}

func testAgents(t *testing.T, b *bundle) {
	ctx := t.Context()
	full := b.agent(t, b.orgA, "Full")
	bare := storage.Agent{ID: newID(), OrganizationID: b.orgA,
		Application: storage.Application{ID: newID(), OrganizationID: b.orgA, Issuer: issuer, ExternalID: "bare", DCR: true}}
	noError(t, b.CreateAgent(ctx, bare))
	for _, want := range []storage.Agent{full, bare} {
		got, err := b.Agent(ctx, b.orgA, want.ID)
		noError(t, err)
		equal(t, got, want)
		got, err = b.AgentByClient(ctx, b.orgA, issuer, want.Application.ExternalID)
		noError(t, err)
		equal(t, got, want)
	}
	for _, key := range [][3]string{{b.orgA, otherIssuer, "bare"}, {b.orgA, issuer, "BARE"}, {b.orgB, issuer, "bare"}, {b.orgA, issuer, ""}} {
		_, err := b.AgentByClient(ctx, key[0], key[1], key[2])
		wantError(t, err, storage.ErrNotFound)
	}

	// There is one live agent for an external id of an issuer: issuers give their clients the same ids.
	twin := newAgent(b.orgA, "Twin")
	twin.Application.ExternalID = "bare"
	wantConflict(t, b.CreateAgent(ctx, twin), "external_id")
	twin.Application.Issuer = otherIssuer
	noError(t, b.CreateAgent(ctx, twin))
	for of, want := range map[string]storage.Agent{issuer: bare, otherIssuer: twin} {
		got, err := b.AgentByClient(ctx, b.orgA, of, "bare")
		noError(t, err)
		equal(t, got, want)
	}
	again := newAgent(b.orgA, "Again")
	again.Application.Issuer, again.Application.ExternalID = otherIssuer, "bare"
	wantConflict(t, b.CreateAgent(ctx, again), "external_id")
	again.OrganizationID, again.Application.OrganizationID = b.orgB, b.orgB
	noError(t, b.CreateAgent(ctx, again))
	unknown := newAgent(b.unknown, "Unknown")
	wantError(t, b.CreateAgent(ctx, unknown), storage.ErrNotFound)

	// The refusals stored nothing, not even an application.
	refused := newAgent(b.orgA, "Refused")
	refused.Application.ExternalID = "bare"
	wantConflict(t, b.CreateAgent(ctx, refused), "external_id")
	_, err := b.AdoptApplication(ctx, storage.Agent{ID: newID(), OrganizationID: b.orgA, Application: storage.Application{ID: refused.Application.ID}})
	wantError(t, err, storage.ErrNotFound)
}

func testAdoptApplication(t *testing.T, b *bundle) {
	ctx := t.Context()
	former := b.agent(t, b.orgA, "Former")
	adopt := func(organization string) (storage.Agent, error) {
		return b.AdoptApplication(ctx, storage.Agent{ID: newID(), OrganizationID: organization, WriteConfirmationsRequired: true,
			Application: storage.Application{ID: former.Application.ID, Name: "not this"}, CreatedAt: start.Add(time.Hour + 7), UpdatedAt: start.Add(time.Hour)})
	}
	_, err := adopt(b.orgA)
	wantConflict(t, err, "external_id")
	noError(t, b.DeleteAgent(ctx, b.orgA, former.ID, b.userA1, start))
	_, err = adopt(b.orgB)
	wantError(t, err, storage.ErrNotFound)
	adopted, err := adopt(b.orgA)
	noError(t, err)
	equal(t, adopted, storage.Agent{ID: adopted.ID, OrganizationID: b.orgA, Application: former.Application,
		WriteConfirmationsRequired: true, CreatedAt: start.Add(time.Hour), UpdatedAt: start.Add(time.Hour)})
	got, err := b.AgentByClient(ctx, b.orgA, issuer, former.Application.ExternalID)
	noError(t, err)
	equal(t, got, adopted)
}

func testRegisterAgent(t *testing.T, b *bundle) {
	ctx := t.Context()
	var told atomic.Int32
	defer b.OnChange(func(string) { told.Add(1) })()
	first := newAgent(b.orgA, "First")
	var made [16]storage.Agent
	var all sync.WaitGroup
	for i := range made {
		all.Go(func() {
			a := first
			a.ID, a.Application.ID = newID(), newID()
			var err error
			if made[i], err = b.RegisterAgent(ctx, a, 2); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, a := range made {
		equal(t, a, made[0])
	}
	equal(t, told.Load(), 1)
	want := first
	want.ID, want.Application.ID = made[0].ID, made[0].Application.ID
	equal(t, made[0], want)

	second := b.agent(t, b.orgA, "Second")
	full := newAgent(b.orgA, "Third")
	_, err := b.RegisterAgent(ctx, full, 2)
	wantError(t, err, storage.ErrNotFound)
	again := newAgent(b.orgA, "again")
	again.Application.ExternalID = second.Application.ExternalID
	got, err := b.RegisterAgent(ctx, again, 2) // a registered agent stays registered, whatever the limit
	noError(t, err)
	equal(t, got, second)

	foreign := newAgent(b.orgA, "Foreign")
	foreign.Application.Issuer, foreign.Application.ExternalID = otherIssuer, second.Application.ExternalID
	got, err = b.RegisterAgent(ctx, foreign, 100) // the client of another issuer is an agent of its own
	noError(t, err)
	equal(t, got, foreign)
	_, err = b.RegisterAgent(ctx, newAgent(b.orgB, "Theirs"), 1) // another organization's agents do not count
	noError(t, err)
	counts, err := b.AgentCounts(ctx, b.orgA)
	noError(t, err)
	equal(t, counts, storage.AgentCounts{All: 3, Internal: 3})
}

func testAgentLists(t *testing.T, b *bundle) {
	ctx := t.Context()
	b.agent(t, b.orgB, "Theirs")
	for _, name := range []string{"beta", "Alpha", "50%_off\\", "ÉCLAIR", "al pine"} {
		a := newAgent(b.orgA, name)
		a.Application.DCR = name == "beta" || name == "Alpha"
		if name == "beta" {
			a.Application.ExternalID, a.Application.Description = "Client-Of-Beta", "Ärger"
		}
		noError(t, b.CreateAgent(ctx, a))
	}
	names := func(f storage.AgentFilter) (names []string) {
		t.Helper()
		f.OrganizationID = b.orgA
		page, err := b.Agents(ctx, f)
		noError(t, err)
		if f.Page.Limit == 0 {
			equal(t, page.Total, len(page.Items))
		}
		for _, a := range page.Items {
			names = append(names, a.Application.Name)
		}
		return names
	}
	everything := []string{"50%_off\\", "Alpha", "al pine", "beta", "ÉCLAIR"}
	for _, c := range []struct {
		name   string
		filter storage.AgentFilter
		want   []string
	}{
		{"everything", storage.AgentFilter{}, everything},
		{"name", storage.AgentFilter{Search: "ALPHA"}, []string{"Alpha"}},
		{"beyond ASCII", storage.AgentFilter{Search: "éclair"}, []string{"ÉCLAIR"}},
		{"description", storage.AgentFilter{Search: "ärg"}, []string{"beta"}},
		{"external id", storage.AgentFilter{Search: "client-of"}, []string{"beta"}},
		{"percent is no wildcard", storage.AgentFilter{Search: "%"}, []string{"50%_off\\"}},
		{"underscore is no wildcard", storage.AgentFilter{Search: "_O"}, []string{"50%_off\\"}},
		{"Q05 a long pattern", storage.AgentFilter{Search: strings.Repeat("(a+)+$%", 20_000)}, nil},
		{"internal", storage.AgentFilter{Types: []storage.AgentType{storage.AgentInternal}}, []string{"50%_off\\", "al pine", "ÉCLAIR"}},
		{"external", storage.AgentFilter{Types: []storage.AgentType{storage.AgentExternal}}, []string{"Alpha", "beta"}},
		{"both", storage.AgentFilter{Types: []storage.AgentType{storage.AgentExternal, storage.AgentInternal}}, everything},
		{"unknown type", storage.AgentFilter{Types: []storage.AgentType{"unheard-of"}}, nil},
		{"page 2", storage.AgentFilter{Page: storage.PageRequest{Number: 2, Limit: 2}}, []string{"al pine", "beta"}},
		{"beyond the end", storage.AgentFilter{Page: storage.PageRequest{Number: 9, Limit: 2}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) { equal(t, names(c.filter), c.want) })
	}
	page, err := b.Agents(ctx, storage.AgentFilter{OrganizationID: b.orgA, Page: storage.PageRequest{Number: 9, Limit: 2}})
	noError(t, err)
	equal(t, page.Total, len(everything))
	counts, err := b.AgentCounts(ctx, b.orgA)
	noError(t, err)
	equal(t, counts, storage.AgentCounts{All: 5, Internal: 3, External: 2})
	counts, err = b.AgentCounts(ctx, b.unknown)
	noError(t, err)
	equal(t, counts, storage.AgentCounts{})
}

func testDeleteAgent(t *testing.T, b *bundle) {
	ctx := t.Context()
	gone, other := b.agent(t, b.orgA, "Gone"), b.agent(t, b.orgA, "Other")
	now := start.Add(time.Hour)
	type state struct {
		status   storage.PolicyStatus
		agents   []string
		want     storage.PolicyStatus
		left     []string
		revision int
	}
	var ids []string
	states := []state{
		{storage.PolicyActive, []string{gone.ID}, storage.PolicyArchived, []string{gone.ID}, 2},
		{storage.PolicyDraft, []string{gone.ID, gone.ID}, storage.PolicyArchived, []string{gone.ID, gone.ID}, 2},
		{storage.PolicyActive, []string{other.ID, gone.ID}, storage.PolicyActive, []string{other.ID}, 2},
		{storage.PolicyInactive, []string{gone.ID, other.ID}, storage.PolicyInactive, []string{other.ID}, 2},
		{storage.PolicyArchived, []string{gone.ID, other.ID}, storage.PolicyArchived, []string{gone.ID, other.ID}, 1},
		{storage.PolicyActive, nil, storage.PolicyActive, nil, 1},
		{storage.PolicyDraft, []string{other.ID}, storage.PolicyDraft, []string{other.ID}, 1},
	}
	for i, s := range states {
		p := b.newPolicy(b.orgA, fmt.Sprint("Policy ", i), s.agents...)
		p.Status = s.status
		if i == 2 { // another server, so that the active ones do not overlap
			p.ServerID = b.server(t, b.orgA, "Other").ID
		}
		_, err := b.CreatePolicy(ctx, p)
		noError(t, err)
		ids = append(ids, p.ID)
	}
	noError(t, b.DeleteAgent(ctx, b.orgA, gone.ID, b.userA2, now))
	for i, s := range states {
		p, err := b.Policy(ctx, b.orgA, ids[i])
		noError(t, err)
		equal(t, p.Status, s.want)
		equal(t, p.ApplicationIDs, s.left)
		equal(t, p.Revision, s.revision)
		revisions, err := b.PolicyRevisions(ctx, b.orgA, ids[i], storage.PageRequest{})
		noError(t, err)
		equal(t, revisions.Total, s.revision)
		if s.revision == 2 {
			equal(t, []any{p.UpdatedAt, p.UpdatedBy}, []any{now, b.userA2})
			equal(t, []any{revisions.Items[0].At, revisions.Items[0].UserID}, []any{now, b.userA2})
			equal(t, revisions.Items[0].Policy, p.Policy)
		}
	}
	wantError(t, b.DeleteAgent(ctx, b.orgA, gone.ID, b.userA2, now), storage.ErrNotFound)
	_, err := b.AgentByClient(ctx, b.orgA, issuer, gone.Application.ExternalID)
	wantError(t, err, storage.ErrNotFound)

	// O15: an agent of the same id and client inherits nothing.
	gone.Application.ID = newID()
	noError(t, b.CreateAgent(ctx, gone))
	policies, err := b.ServerPolicies(ctx, b.orgA, b.serverA.ID)
	noError(t, err)
	for _, p := range policies {
		for _, id := range p.ApplicationIDs {
			if id == gone.ID {
				t.Errorf("policy %s names the new agent", p.Name)
			}
		}
	}
	overlap, err := b.OverlappingPolicies(ctx, b.orgA, b.serverA.ID, []string{gone.ID}, "")
	noError(t, err)
	equal(t, len(overlap), 0)
}

// testDeleteAgentRace deletes an agent while policies begin to name it: afterwards none names it.
func testDeleteAgentRace(t *testing.T, b *bundle) {
	ctx := t.Context()
	for round := range 10 {
		a := b.agent(t, b.orgA, "Gone")
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				var missing *storage.ReferenceError
				if _, err := b.CreatePolicy(ctx, b.newPolicy(b.orgA, fmt.Sprint(round, i), a.ID)); err != nil && !errors.As(err, &missing) {
					t.Error(err)
				}
			})
		}
		all.Go(func() {
			if err := b.DeleteAgent(ctx, b.orgA, a.ID, "", start); err != nil {
				t.Error(err)
			}
		})
		all.Wait()
		page, err := b.Policies(ctx, storage.PolicyFilter{OrganizationID: b.orgA, AgentIDs: []string{a.ID},
			Status: []storage.PolicyStatus{storage.PolicyDraft, storage.PolicyActive, storage.PolicyInactive}})
		noError(t, err)
		equal(t, page.Total, 0)
	}
}

// agentCredential returns a credential of an agent with a secret, not stored.
func agentCredential(of storage.Agent) storage.AgentCredential {
	return storage.AgentCredential{
		ID: newID(), OrganizationID: of.OrganizationID, AgentID: of.ID, Name: "Nightly", SecretHash: []byte("hash\x00"), CreatedAt: start,
	}
}

func testAgentCredentials(t *testing.T, b *bundle) {
	ctx := t.Context()
	agent, other, foreign := b.agent(t, b.orgA, "Agent"), b.agent(t, b.orgA, "Other"), b.agent(t, b.orgB, "Foreign")
	secret, keys := agentCredential(agent), agentCredential(agent)
	keys.SecretHash, keys.Keys, keys.Name, keys.CreatedAt = nil, `{"keys":[]}`, "", start.Add(time.Second)
	elsewhere, abroad := agentCredential(other), agentCredential(foreign)
	for _, c := range []storage.AgentCredential{secret, keys, elsewhere, abroad} {
		noError(t, b.CreateAgentCredential(ctx, c))
	}
	all, err := b.AgentCredentials(ctx, b.orgA, agent.ID)
	noError(t, err)
	equal(t, all, []storage.AgentCredential{keys, secret})
	if all[0].SecretHash != nil {
		t.Error("a credential with keys has a secret")
	}
	of, all, err := b.CredentialsOfClient(ctx, agent.ID)
	noError(t, err)
	equal(t, of, agent)
	equal(t, all, []storage.AgentCredential{keys, secret})
	of, all, err = b.CredentialsOfClient(ctx, foreign.ID) // before its organization is known
	noError(t, err)
	equal(t, of, foreign)
	equal(t, all, []storage.AgentCredential{abroad})
	holder, err := b.AgentCredential(ctx, b.orgA, keys.ID)
	noError(t, err)
	equal(t, holder, storage.AgentCredentialHolder{AgentCredential: keys, Agent: agent})

	missing := agentCredential(agent)
	missing.AgentID = b.unknown
	wantError(t, b.CreateAgentCredential(ctx, missing), storage.ErrNotFound)
	_, err = b.AgentCredentials(ctx, b.orgA, b.unknown)
	wantError(t, err, storage.ErrNotFound)
	bare := b.agent(t, b.orgA, "Bare")
	all, err = b.AgentCredentials(ctx, b.orgA, bare.ID)
	noError(t, err)
	equal(t, len(all), 0)
	_, _, err = b.CredentialsOfClient(ctx, bare.ID)
	wantError(t, err, storage.ErrNotFound)

	// Neither another agent's nor an unknown one is deleted.
	wantError(t, b.DeleteAgentCredential(ctx, b.orgA, other.ID, secret.ID), storage.ErrNotFound)
	wantError(t, b.DeleteAgentCredential(ctx, b.orgA, agent.ID, b.unknown), storage.ErrNotFound)
	noError(t, b.DeleteAgentCredential(ctx, b.orgA, agent.ID, secret.ID))
	_, err = b.AgentCredential(ctx, b.orgA, secret.ID)
	wantError(t, err, storage.ErrNotFound)
	_, all, err = b.CredentialsOfClient(ctx, agent.ID)
	noError(t, err)
	equal(t, all, []storage.AgentCredential{keys})

	// A deleted agent loses all.
	noError(t, b.DeleteAgent(ctx, b.orgA, agent.ID, "", start))
	_, err = b.AgentCredential(ctx, b.orgA, keys.ID)
	wantError(t, err, storage.ErrNotFound)
	_, _, err = b.CredentialsOfClient(ctx, agent.ID)
	wantError(t, err, storage.ErrNotFound)
	_, err = b.AgentCredential(ctx, b.orgA, elsewhere.ID)
	noError(t, err)
}

// testAgentCredentialsBounded makes more credentials at once than an agent may have.
func testAgentCredentialsBounded(t *testing.T, b *bundle) {
	agent := b.agent(t, b.orgA, "Agent")
	var wg sync.WaitGroup
	refused := make(chan error, 2*storage.MaxAgentCredentials)
	for i := range 2 * storage.MaxAgentCredentials {
		wg.Go(func() {
			c := agentCredential(agent)
			c.Name = strconv.Itoa(i)
			if err := b.CreateAgentCredential(t.Context(), c); err != nil {
				refused <- err
			}
		})
	}
	wg.Wait()
	close(refused)
	all, err := b.AgentCredentials(t.Context(), b.orgA, agent.ID)
	noError(t, err)
	equal(t, len(all), storage.MaxAgentCredentials)
	equal(t, len(refused), storage.MaxAgentCredentials)
	for err := range refused {
		wantConflict(t, err, "credentials")
	}
	noError(t, b.DeleteAgentCredential(t.Context(), b.orgA, agent.ID, all[0].ID))
	again := agentCredential(agent)
	again.CreatedAt = start.Add(time.Hour)
	noError(t, b.CreateAgentCredential(t.Context(), again))
	all, err = b.AgentCredentials(t.Context(), b.orgA, agent.ID)
	noError(t, err)
	equal(t, slices.IndexFunc(all, func(c storage.AgentCredential) bool { return c.ID == again.ID }), 0)
}

// setChannel changes an agent.
func setChannel(a *storage.Agent) error {
	a.ApprovalChannel = storage.ChannelInBand
	return nil
}

// testUpdateAgent checks what of an agent can be changed, and that a change is reported once.
func testUpdateAgent(t *testing.T, b *bundle) {
	ctx := t.Context()
	want := b.agent(t, b.orgA, "Former")
	change := func(a *storage.Agent) error {
		a.Application.Name, a.Application.Description, a.WriteConfirmationsRequired, a.ApprovalChannel = "Now", "New", false, ""
		a.ID, a.OrganizationID, a.LLMGatewayEnabled, a.CreatedAt = b.unknown, b.orgB, false, time.Time{}
		a.Application.ID, a.Application.ExternalID, a.Application.Issuer, a.Application.DCR = b.unknown, "stolen", otherIssuer, true
		return nil
	}
	var got storage.Agent
	var err error
	equal(t, b.changes(func() { got, err = b.UpdateAgent(ctx, b.orgA, want.ID, start.Add(time.Hour), change) }), 1)
	noError(t, err)
	want.Application.Name, want.Application.Description, want.WriteConfirmationsRequired, want.ApprovalChannel = "Now", "New", false, ""
	want.UpdatedAt, want.Application.UpdatedAt = start.Add(time.Hour), start.Add(time.Hour)
	equal(t, got, want)
	equal(t, b.changes(func() { got, err = b.UpdateAgent(ctx, b.orgA, want.ID, start.Add(2*time.Hour), change) }), 0)
	noError(t, err)
	equal(t, got, want)
	stored, err := b.Agent(ctx, b.orgA, want.ID)
	noError(t, err)
	equal(t, stored, want)
	page, err := b.Agents(ctx, storage.AgentFilter{OrganizationID: b.orgA, Search: "nEw"}) // in the new description
	noError(t, err)
	equal(t, page.Total, 1)

	// The application stays as it is when only the agent changes.
	_, err = b.UpdateAgent(ctx, b.orgA, want.ID, start.Add(3*time.Hour), setChannel)
	noError(t, err)
	want.ApprovalChannel, want.UpdatedAt = storage.ChannelInBand, start.Add(3*time.Hour)
	stored, err = b.Agent(ctx, b.orgA, want.ID)
	noError(t, err)
	equal(t, stored, want)

	refusal := errors.New("no")
	_, err = b.UpdateAgent(ctx, b.orgA, want.ID, start, func(a *storage.Agent) error { a.Application.Name = "x"; return refusal })
	wantError(t, err, refusal)
	for _, key := range [][2]string{{b.orgB, want.ID}, {b.orgA, b.unknown}} {
		_, err = b.UpdateAgent(ctx, key[0], key[1], start, func(*storage.Agent) error { t.Error("O01 edit was called"); return nil })
		wantError(t, err, storage.ErrNotFound)
	}
	stored, err = b.Agent(ctx, b.orgA, want.ID)
	noError(t, err)
	equal(t, stored, want)
}
