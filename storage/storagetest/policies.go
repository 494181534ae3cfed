package storagetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// newPolicy returns a draft with every member set for the organization's server, not stored.
func (b *bundle) newPolicy(organization, name string, agents ...string) storage.Policy {
	p := storage.Policy{
		ID: newID(), OrganizationID: organization, Name: name, Description: "About " + name, SupportContact: "help@example.com",
		Tags: []string{"one", "<two>"}, Status: storage.PolicyDraft, ServerID: b.serverA.ID, ApplicationIDs: agents,
		Rules: []storage.Rule{
			{Name: "first", Description: "what <it> does", Active: true, Authorized: true, Actions: []string{"tools/call:a:approve"},
				RolesGroups: []string{"role:dev"}, Approval: storage.RuleApproval{Channel: storage.ChannelOutOfBand, By: []string{"group:<leads>", "role:é"}},
				Condition: json.RawMessage("{\"match\" :\n {\"expr\": \"R.attr.n < 9007199254740993 && 'é' != '\\u00e9'\"}}")},
			{Name: "second"},
		},
		Shadow: true, Revision: 1, CreatedAt: start, UpdatedAt: start, CreatedBy: b.userA1, UpdatedBy: b.userA1,
	}
	if organization == b.orgB {
		p.ServerID, p.CreatedBy, p.UpdatedBy = b.serverB.ID, b.userB1, b.userB1
	}
	return p
}

// policy stores a policy of organization A.
func (b *bundle) policy(t *testing.T, name string, status storage.PolicyStatus, agents ...string) storage.Policy {
	t.Helper()
	p := b.newPolicy(b.orgA, name, agents...)
	p.Status = status
	v, err := b.CreatePolicy(t.Context(), p)
	noError(t, err)
	return v.Policy
}

// setStatus returns an edit that sets the status.
func setStatus(status storage.PolicyStatus) func(*storage.Policy) error {
	return func(p *storage.Policy) error { p.Status = status; return nil }
}

func wantOverlap(t *testing.T, err error, holder storage.Policy) {
	t.Helper()
	var overlap *storage.OverlapError
	if !errors.As(err, &overlap) || !errors.Is(err, storage.ErrConflict) || overlap.PolicyID != holder.ID || overlap.PolicyName != holder.Name {
		t.Fatalf("got error %v, want an overlap with %s", err, holder.Name)
	}
}

func wantReferences(t *testing.T, err error, server bool, applications ...int) {
	t.Helper()
	var missing *storage.ReferenceError
	if !errors.As(err, &missing) {
		t.Fatalf("got error %v, want missing references", err)
	}
	equal(t, *missing, storage.ReferenceError{Server: server, Applications: applications})
}

func testPolicies(t *testing.T, b *bundle) {
	ctx := t.Context()
	ada, err := b.ResolveUser(ctx, storage.UserClaim{OrganizationID: b.orgA, Issuer: issuer, Subject: "ada", DerivedID: newID(), Kind: storage.UserPerson, Name: "Ada"}, start)
	noError(t, err)
	agents := []storage.Agent{b.agent(t, b.orgA, "Zed"), b.agent(t, b.orgA, "Amy")}
	p := b.newPolicy(b.orgA, "Full", agents[0].ID, agents[1].ID)
	p.CreatedBy, p.UpdatedBy, p.Revision = ada.ID, b.userA2, 77 // the store counts
	want := storage.PolicyView{Policy: p, ServerName: b.serverA.Name, ApplicationNames: []string{"Zed", "Amy"}, CreatedByName: "Ada"}
	want.Revision = 1
	got, err := b.CreatePolicy(ctx, p)
	noError(t, err)
	equal(t, got, want)
	equal(t, string(got.Rules[0].Condition), string(p.Rules[0].Condition)) // as it was written
	if got.Rules[1].Condition != nil {
		t.Errorf("no condition became %q", got.Rules[1].Condition)
	}
	got, err = b.Policy(ctx, b.orgA, p.ID)
	noError(t, err)
	equal(t, got, want)
	got, err = b.PolicyByName(ctx, b.orgA, "Full")
	noError(t, err)
	equal(t, got, want)

	// The first revision has every member, from nothing.
	revisions, err := b.PolicyRevisions(ctx, b.orgA, p.ID, storage.PageRequest{})
	noError(t, err)
	equal(t, revisions.Total, 1)
	first := revisions.Items[0]
	equal(t, first.Policy, want.Policy)
	equal(t, string(first.Policy.Rules[0].Condition), string(p.Rules[0].Condition))
	var fields []string
	for _, c := range first.Changes {
		fields = append(fields, c.Field)
		equal(t, string(c.Before), "null")
	}
	equal(t, fields, []string{"name", "description", "support_contact", "tags", "status", "mcp_server_id", "application_ids", "rules", "shadow"})
	equal(t, string(first.Changes[3].After), `["one","<two>"]`)
	first.Changes, first.Policy = nil, storage.Policy{}
	equal(t, first, storage.PolicyRevision{OrganizationID: b.orgA, PolicyID: p.ID, Number: 1, At: start, UserID: ada.ID, UserName: "Ada"})

	bare := storage.Policy{ID: newID(), OrganizationID: b.orgA, Name: "Bare", Status: storage.PolicyActive, ServerID: b.serverA.ID}
	got, err = b.CreatePolicy(ctx, bare)
	noError(t, err)
	bare.Revision = 1
	equal(t, got, storage.PolicyView{Policy: bare, ServerName: b.serverA.Name})

	for _, id := range []string{b.unknown, ""} {
		_, err = b.Policy(ctx, b.orgA, id)
		wantError(t, err, storage.ErrNotFound)
		_, err = b.PolicyByName(ctx, b.orgA, id)
		wantError(t, err, storage.ErrNotFound)
		_, err = b.PolicyRevisions(ctx, b.orgA, id, storage.PageRequest{})
		wantError(t, err, storage.ErrNotFound)
	}

	// Names of deleted objects are empty.
	noError(t, b.DeleteAgent(ctx, b.orgA, agents[0].ID, "", start))
	noError(t, b.DeleteAgent(ctx, b.orgA, agents[1].ID, "", start))
	got, err = b.Policy(ctx, b.orgA, p.ID)
	noError(t, err)
	equal(t, got.Status, storage.PolicyArchived)
	equal(t, got.ApplicationIDs, []string{agents[1].ID}) // the last one's
	equal(t, got.ApplicationNames, []string{""})

	// Text that JSON would replace is refused as a whole.
	broken := b.newPolicy(b.orgA, "Broken")
	broken.Rules[0].Condition = json.RawMessage(`{"match":`)
	if _, err := b.CreatePolicy(ctx, broken); err == nil {
		t.Error("a condition that is no JSON was stored")
	}
	broken = b.newPolicy(b.orgA, "Broken")
	broken.Tags = []string{"\xff"}
	if _, err := b.CreatePolicy(ctx, broken); err == nil {
		t.Error("a tag that is not UTF-8 was stored")
	}
	_, err = b.PolicyByName(ctx, b.orgA, "Broken")
	wantError(t, err, storage.ErrNotFound)
}

func testUpdatePolicy(t *testing.T, b *bundle) {
	ctx := t.Context()
	agent := b.agent(t, b.orgA, "Agent")
	want := b.policy(t, "Before", storage.PolicyDraft)
	var told atomic.Int32
	defer b.OnChange(func(string) { told.Add(1) })()
	now := start.Add(time.Hour + 7)
	updated, err := b.UpdatePolicy(ctx, b.orgA, want.ID, b.userA2, now, func(p *storage.Policy) error {
		equal(t, *p, want)
		p.Name, p.Description, p.SupportContact, p.Tags, p.Shadow = "After", "", "", nil, false
		p.ApplicationIDs, p.Status = []string{agent.ID}, storage.PolicyActive
		p.Rules[0].Actions[0] = "*" // in place
		p.ID, p.OrganizationID, p.ServerID, p.CreatedBy, p.CreatedAt, p.Revision = newID(), b.orgB, b.serverB.ID, newID(), now, 99
		p.UpdatedAt, p.UpdatedBy = start, "nobody"
		return nil
	})
	noError(t, err)
	former := want
	want.Name, want.Description, want.SupportContact, want.Tags, want.Shadow = "After", "", "", nil, false
	want.ApplicationIDs, want.Status = []string{agent.ID}, storage.PolicyActive
	want.Rules = append([]storage.Rule(nil), want.Rules...)
	want.Rules[0].Actions = []string{"*"}
	want.Revision, want.UpdatedAt, want.UpdatedBy = 2, start.Add(time.Hour), b.userA2
	equal(t, updated, storage.PolicyView{Policy: want, ServerName: b.serverA.Name, ApplicationNames: []string{"Agent"}})
	got, err := b.Policy(ctx, b.orgA, want.ID)
	noError(t, err)
	equal(t, got, updated)
	_, err = b.PolicyByName(ctx, b.orgA, "Before")
	wantError(t, err, storage.ErrNotFound)
	equal(t, told.Load(), 1)

	revisions, err := b.PolicyRevisions(ctx, b.orgA, want.ID, storage.PageRequest{})
	noError(t, err)
	equal(t, revisions.Total, 2)
	equal(t, revisions.Items[1].Policy, former)
	second := revisions.Items[0]
	equal(t, second.Policy, want)
	equal(t, []any{second.Number, second.At, second.UserID}, []any{2, start.Add(time.Hour), b.userA2})
	rules := func(p storage.Policy) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`[{"name":"first","description":"what <it> does","active":true,"authorized":true,"actions":[%q],`+
			`"roles_groups":["role:dev"],"condition":{"match":{"expr":"R.attr.n < 9007199254740993 && 'é' != '\u00e9'"}},"approval":{"by":["group:<leads>","role:é"],"channel":"out_of_band"}},`+
			`{"name":"second","active":false,"authorized":false,"actions":[],"roles_groups":[]}]`, p.Rules[0].Actions[0]))
	}
	equal(t, second.Changes, []storage.FieldChange{
		{Field: "name", Before: json.RawMessage(`"Before"`), After: json.RawMessage(`"After"`)},
		{Field: "description", Before: json.RawMessage(`"About Before"`), After: json.RawMessage(`""`)},
		{Field: "support_contact", Before: json.RawMessage(`"help@example.com"`), After: json.RawMessage(`""`)},
		{Field: "tags", Before: json.RawMessage(`["one","<two>"]`), After: json.RawMessage(`[]`)},
		{Field: "status", Before: json.RawMessage(`"DRAFT"`), After: json.RawMessage(`"ACTIVE"`)},
		{Field: "application_ids", Before: json.RawMessage(`[]`), After: json.RawMessage(fmt.Sprintf("[%q]", agent.ID))},
		{Field: "rules", Before: rules(former), After: rules(want)},
		{Field: "shadow", Before: json.RawMessage(`true`), After: json.RawMessage(`false`)},
	})

	// A write that changes nothing writes no revision: blanks in a condition, and lists that are missing instead of
	// empty.
	same, err := b.UpdatePolicy(ctx, b.orgA, want.ID, b.userA1, now.Add(time.Hour), func(p *storage.Policy) error {
		p.Tags = []string{}
		p.Rules[0].Condition = json.RawMessage(`{"match":{"expr":"R.attr.n < 9007199254740993 && 'é' != '\u00e9'"}}`)
		p.Rules[1].Actions, p.Rules[1].RolesGroups = []string{}, nil
		p.UpdatedAt, p.UpdatedBy = now, b.userA1
		return nil
	})
	noError(t, err)
	equal(t, same, updated)

	refusal := errors.New("refused")
	_, err = b.UpdatePolicy(ctx, b.orgA, want.ID, "", now, func(p *storage.Policy) error { p.Name = "never"; return refusal })
	if err != refusal {
		t.Errorf("got %v, want the edit's own error", err)
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = b.UpdatePolicy(ctx, b.orgA, want.ID, "", now, func(p *storage.Policy) error { p.Name = "never"; panic("edit") })
	}()
	_, err = b.UpdatePolicy(ctx, b.orgA, b.unknown, "", now, func(*storage.Policy) error { t.Error("edit was called"); return nil })
	wantError(t, err, storage.ErrNotFound)
	_, err = b.UpdatePolicy(ctx, b.orgA, want.ID, "", now, setStatus(storage.PolicyDraft))
	if err == nil {
		t.Error("an active policy became a draft")
	}
	got, err = b.Policy(ctx, b.orgA, want.ID)
	noError(t, err)
	equal(t, got, updated)
	revisions, err = b.PolicyRevisions(ctx, b.orgA, want.ID, storage.PageRequest{})
	noError(t, err)
	equal(t, revisions.Total, 2)
	equal(t, told.Load(), 1)

	// Concurrent edits each see the one before, and each has a revision.
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if _, err := b.UpdatePolicy(ctx, b.orgA, want.ID, "", now, func(p *storage.Policy) error { p.Description += "x"; return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, err = b.Policy(ctx, b.orgA, want.ID)
	noError(t, err)
	equal(t, []any{got.Description, got.Revision}, []any{"xxxxxxxxxxxxxxxx", 18})
}

func testUpdatePolicies(t *testing.T, b *bundle) {
	ctx := t.Context()
	var ids []string
	for i := range 3 {
		ids = append(ids, b.policy(t, fmt.Sprint(i), storage.PolicyDraft, b.agent(t, b.orgA, fmt.Sprint(i)).ID).ID)
	}
	var seen []string
	noError(t, b.UpdatePolicies(ctx, b.orgA, ids, b.userA2, start, func(p *storage.Policy) error {
		seen = append(seen, p.ID)
		p.Status = storage.PolicyActive
		return nil
	}))
	equal(t, seen, ids)
	noError(t, b.UpdatePolicies(ctx, b.orgA, nil, b.userA2, start, func(*storage.Policy) error { t.Error("edit was called"); return nil }))

	// The call stores all or nothing: an unknown id, another organization's, an edit's refusal, an overlap among
	// themselves.
	foreign, err := b.CreatePolicy(ctx, b.newPolicy(b.orgB, "Foreign"))
	noError(t, err)
	refusal := errors.New("refused")
	statuses := func(want storage.PolicyStatus) {
		t.Helper()
		for _, id := range ids {
			p, err := b.Policy(ctx, b.orgA, id)
			noError(t, err)
			equal(t, p.Status, want)
		}
	}
	for _, bad := range []string{b.unknown, foreign.ID} { // O03
		err = b.UpdatePolicies(ctx, b.orgA, append(ids[:3:3], bad), "", start, setStatus(storage.PolicyInactive))
		wantError(t, err, storage.ErrNotFound)
		statuses(storage.PolicyActive)
	}
	err = b.UpdatePolicies(ctx, b.orgA, ids, "", start, func(p *storage.Policy) error {
		p.Status = storage.PolicyInactive
		if p.ID == ids[2] {
			return refusal
		}
		return nil
	})
	if err != refusal {
		t.Errorf("got %v, want the edit's own error", err)
	}
	statuses(storage.PolicyActive)
	noError(t, b.UpdatePolicies(ctx, b.orgA, ids, "", start, setStatus(storage.PolicyInactive)))
	statuses(storage.PolicyInactive)
	twin, err := b.UpdatePolicy(ctx, b.orgA, ids[1], "", start, func(p *storage.Policy) error { p.ApplicationIDs = nil; return nil })
	noError(t, err)
	_, err = b.UpdatePolicy(ctx, b.orgA, ids[2], "", start, func(p *storage.Policy) error { p.ApplicationIDs = nil; return nil })
	noError(t, err)
	wantOverlap(t, b.UpdatePolicies(ctx, b.orgA, ids, "", start, setStatus(storage.PolicyActive)), twin.Policy)
	statuses(storage.PolicyInactive)
}

func testPolicyNames(t *testing.T, b *bundle) {
	ctx := t.Context()
	first := b.policy(t, "Name", storage.PolicyDraft)
	for _, name := range []string{"name", "Name ", "N\u0061\u0300me", "N\u00e0me"} { // names are compared exactly
		b.policy(t, name, storage.PolicyDraft)
	}
	_, err := b.CreatePolicy(ctx, b.newPolicy(b.orgA, "Name"))
	wantConflict(t, err, "name")
	_, err = b.CreatePolicy(ctx, b.newPolicy(b.orgB, "Name"))
	noError(t, err)
	other := b.policy(t, "Other", storage.PolicyActive)
	rename := func(p *storage.Policy) error { p.Name = "Name"; return nil }
	_, err = b.UpdatePolicy(ctx, b.orgA, other.ID, "", start, rename)
	wantConflict(t, err, "name")

	// An archived policy's name is free, and its own state stays readable.
	_, err = b.UpdatePolicy(ctx, b.orgA, first.ID, "", start, setStatus(storage.PolicyArchived))
	noError(t, err)
	_, err = b.PolicyByName(ctx, b.orgA, "Name")
	wantError(t, err, storage.ErrNotFound)
	_, err = b.UpdatePolicy(ctx, b.orgA, other.ID, "", start, rename)
	noError(t, err)
	named, err := b.PolicyByName(ctx, b.orgA, "Name")
	noError(t, err)
	equal(t, named.ID, other.ID)
	_, err = b.UpdatePolicy(ctx, b.orgA, other.ID, "", start, setStatus(storage.PolicyArchived))
	noError(t, err) // two archived ones of one name
	for _, id := range []string{first.ID, other.ID} {
		p, err := b.Policy(ctx, b.orgA, id)
		noError(t, err)
		equal(t, p.Name, "Name")
		for _, status := range []storage.PolicyStatus{storage.PolicyDraft, storage.PolicyActive, storage.PolicyInactive} {
			if _, err := b.UpdatePolicy(ctx, b.orgA, id, "", start, setStatus(status)); err == nil {
				t.Errorf("an archived policy became %s", status)
			}
		}
	}
	_, err = b.CreatePolicy(ctx, func() storage.Policy { p := b.newPolicy(b.orgA, "Same id"); p.ID = first.ID; return p }())
	wantConflict(t, err, "id")
}

func testPolicyReferences(t *testing.T, b *bundle) {
	ctx := t.Context()
	mine, theirs := b.agent(t, b.orgA, "Mine"), b.agent(t, b.orgB, "Theirs")
	gone := b.agent(t, b.orgA, "Gone")
	noError(t, b.DeleteAgent(ctx, b.orgA, gone.ID, "", start))

	// O02: foreign and random ids look the same to the caller.
	for _, server := range []string{b.serverB.ID, b.unknown, ""} {
		p := b.newPolicy(b.orgA, "Policy", mine.ID, theirs.ID, b.unknown, mine.ID, gone.ID, gone.Application.ID)
		p.ServerID = server
		_, err := b.CreatePolicy(ctx, p)
		wantReferences(t, err, true, 1, 2, 4, 5)
	}
	_, err := b.CreatePolicy(ctx, b.newPolicy(b.unknown, "Policy"))
	wantReferences(t, err, true)
	page, err := b.Policies(ctx, storage.PolicyFilter{OrganizationID: b.orgA})
	noError(t, err)
	equal(t, page.Total, 0)

	p := b.policy(t, "Policy", storage.PolicyDraft, mine.ID)
	_, err = b.UpdatePolicy(ctx, b.orgA, p.ID, "", start, func(p *storage.Policy) error { p.ApplicationIDs = []string{theirs.ID, mine.ID}; return nil })
	wantReferences(t, err, false, 0)

	// An archived policy whose server and agents are gone can still be described.
	noError(t, b.DeleteAgent(ctx, b.orgA, mine.ID, "", start))
	_, err = b.DeleteServer(ctx, b.orgA, b.serverA.ID, "", start)
	noError(t, err)
	_, err = b.UpdatePolicy(ctx, b.orgA, p.ID, "", start, func(p *storage.Policy) error { p.Description = "of old"; return nil })
	noError(t, err)
}

func testDeleteServerPolicies(t *testing.T, b *bundle) {
	ctx := t.Context()
	agent := b.agent(t, b.orgA, "Agent")
	now := start.Add(time.Hour)
	var ids []string
	for _, status := range []storage.PolicyStatus{storage.PolicyDraft, storage.PolicyActive, storage.PolicyInactive} {
		ids = append(ids, b.policy(t, string(status), status, agent.ID).ID)
	}
	archived := b.policy(t, "archived", storage.PolicyArchived)
	elsewhere := b.newPolicy(b.orgA, "elsewhere")
	elsewhere.ServerID = b.server(t, b.orgA, "Elsewhere").ID
	bystander, err := b.CreatePolicy(ctx, elsewhere)
	noError(t, err)

	_, err = b.DeleteServer(ctx, b.orgA, b.serverA.ID, b.userA2, now)
	noError(t, err)
	for _, id := range ids {
		p, err := b.Policy(ctx, b.orgA, id)
		noError(t, err)
		equal(t, []any{p.Status, p.Revision, p.UpdatedAt, p.UpdatedBy, p.ServerName}, []any{storage.PolicyArchived, 2, now, b.userA2, ""})
		revisions, err := b.PolicyRevisions(ctx, b.orgA, id, storage.PageRequest{Number: 1, Limit: 1})
		noError(t, err)
		equal(t, len(revisions.Items[0].Changes), 1)
		equal(t, revisions.Items[0].Changes[0].Field, "status")
	}
	left, err := b.Policy(ctx, b.orgA, archived.ID)
	noError(t, err)
	equal(t, left.Policy, archived)
	left, err = b.Policy(ctx, b.orgA, bystander.ID)
	noError(t, err)
	equal(t, left, bystander)

	// O15: none of them governs a server of the same id and slug.
	noError(t, b.CreateServer(ctx, b.serverA))
	policies, err := b.ServerPolicies(ctx, b.orgA, b.serverA.ID)
	noError(t, err)
	equal(t, len(policies), 0)
	b.policy(t, "ACTIVE", storage.PolicyActive, agent.ID) // name and place are free
}
