package storagetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

func testPolicyOverlap(t *testing.T, b *bundle) {
	ctx := t.Context()
	x, y, z := b.agent(t, b.orgA, "X").ID, b.agent(t, b.orgA, "Y").ID, b.agent(t, b.orgA, "Z").ID
	all := b.policy(t, "All", storage.PolicyActive)
	xy := b.policy(t, "XY", storage.PolicyActive, x, y) // one for all agents overlaps only another of that kind
	draft := b.policy(t, "Draft", storage.PolicyDraft, y, z, z)

	create := func(agents ...string) error {
		p := b.newPolicy(b.orgA, "New", agents...)
		p.Status = storage.PolicyActive
		_, err := b.CreatePolicy(ctx, p)
		return err
	}
	update := func(id string, edit func(*storage.Policy) error) error {
		_, err := b.UpdatePolicy(ctx, b.orgA, id, "", start, edit)
		return err
	}
	setAgents := func(agents ...string) func(*storage.Policy) error {
		return func(p *storage.Policy) error { p.ApplicationIDs = agents; return nil }
	}
	wantOverlap(t, create(), all)
	wantOverlap(t, create(z, y), xy)
	wantOverlap(t, update(draft.ID, setStatus(storage.PolicyActive)), xy)
	elsewhere := b.newPolicy(b.orgA, "Elsewhere", x)
	elsewhere.Status, elsewhere.ServerID = storage.PolicyActive, b.server(t, b.orgA, "Elsewhere").ID
	_, err := b.CreatePolicy(ctx, elsewhere)
	noError(t, err)

	noError(t, update(xy.ID, setAgents(x)))
	noError(t, update(draft.ID, setStatus(storage.PolicyActive))) // y is free; naming z twice is no overlap
	xy.Name = "renamed"
	noError(t, update(xy.ID, func(p *storage.Policy) error { p.Name = "renamed"; return nil })) // nor is the policy itself
	wantOverlap(t, update(xy.ID, setAgents(x, z)), draft)
	wantOverlap(t, update(xy.ID, setAgents()), all)
	for _, status := range []storage.PolicyStatus{storage.PolicyInactive, storage.PolicyArchived} {
		noError(t, update(draft.ID, setStatus(status)))
		noError(t, update(xy.ID, setAgents(x, z)))
		noError(t, update(xy.ID, setAgents(x)))
		if status == storage.PolicyInactive {
			noError(t, update(draft.ID, setStatus(storage.PolicyActive)))
		}
	}

	overlapping := func(exclude string, agents ...string) (names []string) {
		t.Helper()
		policies, err := b.OverlappingPolicies(ctx, b.orgA, b.serverA.ID, agents, exclude)
		noError(t, err)
		for _, p := range policies {
			names = append(names, p.Name)
		}
		return names
	}
	b.policy(t, "YZ", storage.PolicyActive, y, z)
	equal(t, overlapping(""), []string{"All"})
	equal(t, overlapping(all.ID), nil)
	equal(t, overlapping("", x, y, z), []string{"YZ", "renamed"})
	equal(t, overlapping(xy.ID, x, z, b.unknown), []string{"YZ"})
	equal(t, overlapping("", b.unknown), nil)
	policies, err := b.OverlappingPolicies(ctx, b.orgA, b.unknown, nil, "")
	noError(t, err)
	equal(t, len(policies), 0)
}

// testPolicyOverlapRace checks M23: of policies that become active at once for one agent, or for all, exactly one
// does.
func testPolicyOverlapRace(t *testing.T, b *bundle) {
	ctx := t.Context()
	for round := range 10 {
		var agents []string
		if round%2 == 0 {
			agents = []string{b.agent(t, b.orgA, fmt.Sprint("Agent ", round)).ID}
		}
		server := b.server(t, b.orgA, fmt.Sprint("Server ", round)).ID
		var drafts []string
		for i := range 4 {
			p := b.newPolicy(b.orgA, fmt.Sprint("Draft ", round, i), agents...)
			p.ServerID = server
			_, err := b.CreatePolicy(ctx, p)
			noError(t, err)
			drafts = append(drafts, p.ID)
		}
		var won, lost atomic.Int32
		count := func(err error) {
			var overlap *storage.OverlapError
			switch {
			case err == nil:
				won.Add(1)
			case errors.As(err, &overlap):
				lost.Add(1)
			default:
				t.Error(err)
			}
		}
		var all sync.WaitGroup
		for i, id := range drafts {
			all.Go(func() {
				_, err := b.UpdatePolicy(ctx, b.orgA, id, "", start, setStatus(storage.PolicyActive))
				count(err)
			})
			all.Go(func() {
				p := b.newPolicy(b.orgA, fmt.Sprint("New ", round, i), agents...)
				p.ServerID, p.Status = server, storage.PolicyActive
				_, err := b.CreatePolicy(ctx, p)
				count(err)
			})
		}
		all.Wait()
		equal(t, []int32{won.Load(), lost.Load()}, []int32{1, 7})
		active, err := b.Policies(ctx, storage.PolicyFilter{OrganizationID: b.orgA, ServerIDs: []string{server}, Status: []storage.PolicyStatus{storage.PolicyActive}})
		noError(t, err)
		equal(t, active.Total, 1)
	}
}

func testPolicyNameRace(t *testing.T, b *bundle) {
	var created, refused atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			switch _, err := b.CreatePolicy(t.Context(), b.newPolicy(b.orgA, "One name")); {
			case err == nil:
				created.Add(1)
			case errors.Is(err, storage.ErrConflict):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	equal(t, []int32{created.Load(), refused.Load()}, []int32{1, 15})
}
