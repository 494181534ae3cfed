package storagetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// newApproval returns a pending approval of user A1 for ten minutes, with every member set, not stored. It is valid
// for binding.
func (b *bundle) newApproval(binding string) storage.Approval {
	return storage.Approval{ID: newID(), OrganizationID: b.orgA, UserID: b.userA1, Client: "client", ServerID: b.serverA.ID, Tool: "delete_issue",
		Binding: []byte(binding + "\x00\xff"), ArgumentsDigest: "digest", SealedArguments: []byte("sealed\x00"), PolicyID: newID(),
		PolicyRevision: 3, Rule: "rule", Channel: storage.ChannelOutOfBand, Status: storage.ApprovalPending,
		ExpiresAt: start.Add(10 * time.Minute), CreatedAt: start}
}

// approval stores a pending approval.
func (b *bundle) approval(t *testing.T, binding string) storage.Approval {
	t.Helper()
	a, err := b.CreateApproval(t.Context(), b.newApproval(binding), storage.AskLimits{Pending: 1000})
	noError(t, err)
	return a
}

// word returns user A1's decision after a minute; an approval can then be used for ten more.
func (b *bundle) word(approve bool) storage.ApprovalDecision {
	return storage.ApprovalDecision{Approve: approve, UserID: b.userA1, Via: storage.ChannelOutOfBand, Client: "console",
		At: start.Add(time.Minute), ExpiresAt: start.Add(11 * time.Minute)}
}

// approved stores an approval that user A1 has approved.
func (b *bundle) approved(t *testing.T, binding string) storage.Approval {
	t.Helper()
	a, err := b.DecideApproval(t.Context(), b.orgA, b.approval(t, binding).ID, b.word(true))
	noError(t, err)
	return a
}

func (b *bundle) take(t *testing.T, a storage.Approval, now time.Time) (storage.Approval, error) {
	t.Helper()
	return b.TakeApproval(t.Context(), a.OrganizationID, a.UserID, a.ID, a.Binding, now)
}

func testApprovals(t *testing.T, b *bundle) {
	ctx := t.Context()
	agent := b.agent(t, b.orgA, "Agent")
	want := b.newApproval("life")
	want.AgentID = agent.ID
	asked := want
	asked.Status, asked.DecidedAt, asked.DecidedBy, asked.UsedAt = storage.ApprovalApproved, start, "nobody", start // there is no decision yet
	got, err := b.CreateApproval(ctx, asked, storage.AskLimits{Pending: 1})
	noError(t, err)
	equal(t, got, want)
	got, err = b.Approval(ctx, b.orgA, want.ID, want.ExpiresAt.Add(-time.Microsecond))
	noError(t, err)
	equal(t, got, want)
	_, err = b.take(t, want, start)
	wantError(t, err, storage.ErrNotFound) // not approved

	got, err = b.DecideApproval(ctx, b.orgA, want.ID, b.word(true))
	noError(t, err)
	want.Status, want.ExpiresAt, want.DecidedAt = storage.ApprovalApproved, start.Add(11*time.Minute), start.Add(time.Minute)
	want.DecidedVia, want.DecidedBy, want.DecidedClient = storage.ChannelOutOfBand, b.userA1, "console"
	equal(t, got, want)

	// It is valid for exactly its binding, user, organization and time.
	for name, wrong := range map[string]func(*storage.Approval){
		"binding":      func(a *storage.Approval) { a.Binding = []byte("life") },
		"nothing":      func(a *storage.Approval) { a.Binding = nil },
		"user":         func(a *storage.Approval) { a.UserID = b.userA2 },
		"organization": func(a *storage.Approval) { a.OrganizationID = b.orgB },
		"id":           func(a *storage.Approval) { a.ID = b.unknown },
	} {
		a := want
		wrong(&a)
		if _, err := b.take(t, a, start.Add(2*time.Minute)); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("wrong %s: %v", name, err)
		}
	}
	_, err = b.take(t, want, want.ExpiresAt)
	wantError(t, err, storage.ErrNotFound)

	used := start.Add(5*time.Minute + 7)
	got, err = b.TakeApproval(ctx, b.orgA, b.userA1, "", want.Binding, used)
	noError(t, err)
	want.Status, want.UsedAt, want.SealedArguments = storage.ApprovalUsed, start.Add(5*time.Minute), nil
	equal(t, got, want)
	for _, id := range []string{"", want.ID} {
		_, err = b.TakeApproval(ctx, b.orgA, b.userA1, id, want.Binding, used)
		wantError(t, err, storage.ErrNotFound)
	}
	got, err = b.Approval(ctx, b.orgA, want.ID, start.Add(time.Hour)) // used stays used
	noError(t, err)
	equal(t, got, want)
	_, err = b.Approval(ctx, b.orgA, b.unknown, start)
	wantError(t, err, storage.ErrNotFound)

	for _, change := range []func(*storage.Approval){
		func(a *storage.Approval) { a.ServerID = b.unknown },
		func(a *storage.Approval) { a.ServerID = b.serverB.ID },
		func(a *storage.Approval) { a.UserID = b.unknown },
		func(a *storage.Approval) { a.UserID = b.userB1 },
		func(a *storage.Approval) { a.AgentID = b.unknown },
	} {
		a := b.newApproval("gone")
		change(&a)
		_, err = b.CreateApproval(ctx, a, storage.AskLimits{Pending: 10})
		wantError(t, err, storage.ErrNotFound)
	}
}

func testDecideApproval(t *testing.T, b *bundle) {
	ctx := t.Context()
	denied := b.approval(t, "denied")
	got, err := b.DecideApproval(ctx, b.orgA, denied.ID, b.word(false))
	noError(t, err)
	denied.Status, denied.DecidedAt, denied.DecidedVia = storage.ApprovalDenied, start.Add(time.Minute), storage.ChannelOutOfBand
	denied.DecidedBy, denied.DecidedClient, denied.SealedArguments = b.userA1, "console", nil
	equal(t, got, denied) // how long it could have been decided stays
	_, err = b.take(t, denied, start.Add(time.Minute))
	wantError(t, err, storage.ErrNotFound)

	approved := b.approved(t, "approved")
	used := b.approved(t, "used")
	_, err = b.take(t, used, start.Add(time.Minute))
	noError(t, err)
	late := b.approval(t, "late")
	word := b.word(true)
	for _, id := range []string{denied.ID, approved.ID, used.ID} {
		for _, approve := range []bool{true, false} {
			_, err = b.DecideApproval(ctx, b.orgA, id, b.word(approve))
			wantConflict(t, err, "status")
		}
	}
	word.At = late.ExpiresAt
	_, err = b.DecideApproval(ctx, b.orgA, late.ID, word)
	wantConflict(t, err, "status")

	// R04: the approval of another user, of this or another organization, is not found.
	pending := b.approval(t, "pending")
	for _, user := range []string{b.userA2, b.userB1, b.unknown, ""} {
		word := b.word(true)
		word.UserID = user
		for _, id := range []string{pending.ID, approved.ID} {
			_, err = b.DecideApproval(ctx, b.orgA, id, word)
			wantError(t, err, storage.ErrNotFound)
		}
	}
	_, err = b.DecideApproval(ctx, b.orgA, b.unknown, b.word(true))
	wantError(t, err, storage.ErrNotFound)
	got, err = b.Approval(ctx, b.orgA, pending.ID, start)
	noError(t, err)
	equal(t, got, pending)
}

// testDivertApproval checks W30: a client that cannot ask leaves the decision to the page, and nothing else changes.
func testDivertApproval(t *testing.T, b *bundle) {
	ctx := t.Context()
	asked := b.newApproval("divert")
	asked.Channel = storage.ChannelInBand
	asked, err := b.CreateApproval(ctx, asked, storage.AskLimits{Pending: 1000})
	noError(t, err)
	for _, user := range []string{b.userA2, b.userB1, b.unknown, ""} {
		_, err = b.DivertApproval(ctx, b.orgA, user, asked.ID, start)
		wantError(t, err, storage.ErrNotFound)
	}
	status, channel, err := b.ApprovalStatus(ctx, b.orgA, asked.ID, start)
	noError(t, err)
	equal(t, status, storage.ApprovalPending)
	equal(t, channel, storage.ChannelInBand)
	want := asked
	want.Channel = storage.ChannelOutOfBand
	for range 2 {
		got, err := b.DivertApproval(ctx, b.orgA, b.userA1, asked.ID, start)
		noError(t, err)
		equal(t, got, want)
	}
	_, channel, err = b.ApprovalStatus(ctx, b.orgA, asked.ID, start)
	noError(t, err)
	equal(t, channel, storage.ChannelOutOfBand)

	// A decided or expired approval stays as it was.
	approved := b.newApproval("decided")
	approved.Channel = storage.ChannelInBand
	_, err = b.CreateApproval(ctx, approved, storage.AskLimits{Pending: 1000})
	noError(t, err)
	approved, err = b.DecideApproval(ctx, b.orgA, approved.ID, b.word(true))
	noError(t, err)
	got, err := b.DivertApproval(ctx, b.orgA, b.userA1, approved.ID, start.Add(2*time.Minute))
	noError(t, err)
	equal(t, got, approved)
	late := b.newApproval("late to divert")
	late.Channel = storage.ChannelInBand
	_, err = b.CreateApproval(ctx, late, storage.AskLimits{Pending: 1000})
	noError(t, err)
	got, err = b.DivertApproval(ctx, b.orgA, b.userA1, late.ID, late.ExpiresAt)
	noError(t, err)
	equal(t, got.Status, storage.ApprovalExpired)
	equal(t, got.Channel, storage.ChannelInBand)
}

func testApprovalAgain(t *testing.T, b *bundle) {
	ctx := t.Context()
	again := func(now time.Time, change func(*storage.Approval)) (storage.Approval, error) {
		a := b.newApproval("same")
		a.CreatedAt, a.ExpiresAt = now, now.Add(10*time.Minute)
		change(&a)
		return b.CreateApproval(ctx, a, storage.AskLimits{Pending: 1})
	}
	same := func(*storage.Approval) {}
	pending := b.approval(t, "same")
	got, err := again(start.Add(time.Minute), same) // a repeated call does not ask again, whether or not the cap is reached
	noError(t, err)
	equal(t, got, pending)
	approved, err := b.DecideApproval(ctx, b.orgA, pending.ID, b.word(true))
	noError(t, err)
	got, err = again(start.Add(2*time.Minute), same)
	noError(t, err)
	equal(t, got, approved)

	// Another user has an approval of their own.
	theirs, err := again(start.Add(2*time.Minute), func(a *storage.Approval) { a.UserID = b.userA2 })
	noError(t, err)
	if theirs.ID == approved.ID {
		t.Error("one user got another's approval")
	}
	// A used, denied or expired approval is over: the call asks again.
	_, err = b.take(t, approved, start.Add(3*time.Minute))
	noError(t, err)
	second, err := again(start.Add(4*time.Minute), same)
	noError(t, err)
	equal(t, second.Status, storage.ApprovalPending)
	word := b.word(false)
	word.At = start.Add(5 * time.Minute)
	_, err = b.DecideApproval(ctx, b.orgA, second.ID, word)
	noError(t, err)
	third, err := again(start.Add(6*time.Minute), same)
	noError(t, err)
	fourth, err := again(third.ExpiresAt, same)
	noError(t, err)
	ids := map[string]bool{approved.ID: true, second.ID: true, third.ID: true, fourth.ID: true}
	equal(t, len(ids), 4)
}

func testApprovalCap(t *testing.T, b *bundle) {
	ctx := t.Context()
	const limit = 3
	create := func(now time.Time, change func(*storage.Approval)) error {
		a := b.newApproval(newID())
		a.CreatedAt, a.ExpiresAt = now, now.Add(10*time.Minute)
		change(&a)
		_, err := b.CreateApproval(ctx, a, storage.AskLimits{Pending: limit})
		return err
	}
	none := func(*storage.Approval) {}
	b.approved(t, "approved") // decided ones do not count
	var first storage.Approval
	for range limit {
		noError(t, create(start, func(a *storage.Approval) { first = *a }))
	}
	wantError(t, create(start, none), storage.ErrTooManyPending)
	noError(t, create(start, func(a *storage.Approval) { a.UserID = b.userA2 }))
	noError(t, create(start, func(a *storage.Approval) { a.Client = "another" }))
	_, err := b.DecideApproval(ctx, b.orgA, first.ID, b.word(false))
	noError(t, err)
	noError(t, create(start, none))
	wantError(t, create(start.Add(9*time.Minute), none), storage.ErrTooManyPending)
	noError(t, create(start.Add(10*time.Minute), none)) // the others' time is over

	// M16: decided ones count for the number of questions in a while.
	asked := func(now time.Time, change func(*storage.Approval)) error {
		a := b.newApproval(newID())
		a.Client, a.CreatedAt, a.ExpiresAt = "fast", now, now.Add(10*time.Minute)
		change(&a)
		_, err := b.CreateApproval(ctx, a, storage.AskLimits{Asked: limit, Since: now.Add(-5 * time.Minute)})
		if err == nil {
			word := b.word(false)
			word.UserID, word.At = a.UserID, now.Add(time.Microsecond)
			_, err = b.DecideApproval(ctx, b.orgA, a.ID, word)
			noError(t, err)
			unasked := b.newApproval(newID())
			unasked.UserID, unasked.Client, unasked.CreatedAt, unasked.ExpiresAt = a.UserID, a.Client, a.CreatedAt, a.ExpiresAt
			_, err = b.CreateApproval(ctx, unasked, storage.AskLimits{})
			noError(t, err)
			word.At = now
			_, err = b.DecideApproval(ctx, b.orgA, unasked.ID, word)
			noError(t, err)
		}
		return err
	}
	for i := range limit {
		noError(t, asked(start.Add(time.Duration(i)*time.Minute), none))
	}
	wantError(t, asked(start.Add(limit*time.Minute), none), storage.ErrTooManyAsked)
	noError(t, asked(start.Add(limit*time.Minute), func(a *storage.Approval) { a.UserID = b.userA2 }))
	noError(t, asked(start.Add(limit*time.Minute), func(a *storage.Approval) { a.Client = "faster" }))
	wantError(t, asked(start.Add(5*time.Minute-1000), none), storage.ErrTooManyAsked)
	noError(t, asked(start.Add(5*time.Minute), none))
	unbounded := b.newApproval(newID())
	unbounded.Client = "fast"
	_, err = b.CreateApproval(ctx, unbounded, storage.AskLimits{})
	noError(t, err)

	// M16: the limit holds when all come at once.
	var made atomic.Int32
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			switch err := create(start, func(a *storage.Approval) { a.Client = "race" }); {
			case err == nil:
				made.Add(1)
			case !errors.Is(err, storage.ErrTooManyPending):
				t.Error(err)
			}
		})
	}
	all.Wait()
	equal(t, made.Load(), limit)
}

// testApprovalArguments checks M16: arguments that can no longer be decided on or used are not kept.
func testApprovalArguments(t *testing.T, b *bundle) {
	ctx := t.Context()
	kept := func(a storage.Approval) bool {
		t.Helper()
		got, err := b.Approval(ctx, b.orgA, a.ID, start)
		noError(t, err)
		return got.SealedArguments != nil
	}
	pending, approved, denied, used := b.approval(t, "pending"), b.approved(t, "approved"), b.approval(t, "denied"), b.approved(t, "used")
	_, err := b.DecideApproval(ctx, b.orgA, denied.ID, b.word(false))
	noError(t, err)
	_, err = b.take(t, used, start.Add(time.Minute))
	noError(t, err)
	equal(t, []bool{kept(pending), kept(approved), kept(denied), kept(used)}, []bool{true, true, false, false})
	theirs := b.newApproval("theirs")
	theirs.UserID = b.userA2
	_, err = b.CreateApproval(ctx, theirs, storage.AskLimits{})
	noError(t, err)

	next := func(binding string, now time.Time) {
		t.Helper()
		a := b.newApproval(binding)
		a.CreatedAt, a.ExpiresAt = now, now.Add(10*time.Minute)
		_, err := b.CreateApproval(ctx, a, storage.AskLimits{})
		noError(t, err)
	}
	next("meanwhile", pending.ExpiresAt.Add(-1000))
	equal(t, []bool{kept(pending), kept(approved)}, []bool{true, true})
	next("then", pending.ExpiresAt)
	equal(t, []bool{kept(pending), kept(approved)}, []bool{false, true})
	next("and then", approved.ExpiresAt)
	equal(t, []bool{kept(pending), kept(approved)}, []bool{false, false})
	equal(t, kept(theirs), true) // until they ask again, or it is deleted
}

func testApprovalLists(t *testing.T, b *bundle) {
	ctx := t.Context()
	now := start.Add(10 * time.Minute) // the end of pending ones that were asked at start
	ids := make(map[storage.ApprovalStatus]string)
	var order []string
	for i, status := range []storage.ApprovalStatus{storage.ApprovalPending, storage.ApprovalApproved, storage.ApprovalDenied, storage.ApprovalExpired, storage.ApprovalUsed} {
		a := b.newApproval(string(status))
		a.CreatedAt = start.Add(time.Duration(i/2) * time.Second)
		if status == storage.ApprovalPending {
			a.ExpiresAt = now.Add(1000)
		}
		_, err := b.CreateApproval(ctx, a, storage.AskLimits{Pending: 100})
		noError(t, err)
		if status == storage.ApprovalApproved || status == storage.ApprovalUsed || status == storage.ApprovalDenied {
			_, err = b.DecideApproval(ctx, b.orgA, a.ID, b.word(status != storage.ApprovalDenied))
			noError(t, err)
		}
		if status == storage.ApprovalUsed {
			_, err = b.take(t, a, start.Add(2*time.Minute))
			noError(t, err)
		}
		ids[status] = a.ID
		order = append([]string{a.ID}, order...)
	}
	theirs := b.newApproval("theirs")
	theirs.UserID, theirs.CreatedAt = b.userA2, start.Add(-time.Second)
	_, err := b.CreateApproval(ctx, theirs, storage.AskLimits{Pending: 100})
	noError(t, err)

	list := func(f storage.ApprovalFilter) (found []string, total int) {
		t.Helper()
		f.OrganizationID, f.Now = b.orgA, now
		page, err := b.Approvals(ctx, f)
		noError(t, err)
		for _, a := range page.Items {
			found = append(found, a.ID)
			if id, ok := ids[a.Status]; a.UserID == b.userA1 && (!ok || id != a.ID) {
				t.Errorf("an approval is shown as %s", a.Status)
			}
			one, err := b.Approval(ctx, b.orgA, a.ID, now)
			noError(t, err)
			equal(t, a, one)
			status, _, err := b.ApprovalStatus(ctx, b.orgA, a.ID, now)
			noError(t, err)
			equal(t, status, one.Status)
		}
		return found, page.Total
	}
	found, total := list(storage.ApprovalFilter{UserID: b.userA1})
	equal(t, found, order)
	equal(t, total, 5)
	found, total = list(storage.ApprovalFilter{})
	equal(t, found, append(order, theirs.ID))
	equal(t, total, 6)
	for status, id := range ids {
		found, total = list(storage.ApprovalFilter{UserID: b.userA1, Status: []storage.ApprovalStatus{status, "unheard-of"}})
		equal(t, found, []string{id})
		equal(t, total, 1)
	}
	found, _ = list(storage.ApprovalFilter{UserID: b.userA1, Status: []storage.ApprovalStatus{storage.ApprovalUsed, storage.ApprovalPending}})
	equal(t, found, []string{ids[storage.ApprovalUsed], ids[storage.ApprovalPending]})
	found, total = list(storage.ApprovalFilter{Status: []storage.ApprovalStatus{"unheard-of", ""}})
	equal(t, found, nil)
	equal(t, total, 0)
	found, total = list(storage.ApprovalFilter{UserID: b.userA1, Page: storage.PageRequest{Number: 2, Limit: 2}})
	equal(t, found, order[2:4])
	equal(t, total, 5)
}

// testTakeApprovalRace checks M15: of a thousand calls that one approval would let pass exactly one passes.
func testTakeApprovalRace(t *testing.T, b *bundle) {
	a := b.approved(t, "race")
	var taken atomic.Int32
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			id := a.ID
			if i%2 == 0 {
				id = ""
			}
			switch _, err := b.TakeApproval(t.Context(), b.orgA, b.userA1, id, a.Binding, start.Add(2*time.Minute)); {
			case err == nil:
				taken.Add(1)
			case !errors.Is(err, storage.ErrNotFound):
				t.Error(err)
			}
		})
	}
	all.Wait()
	equal(t, taken.Load(), 1)
}

func testDecideApprovalRace(t *testing.T, b *bundle) {
	for round := range 10 {
		a := b.approval(t, fmt.Sprint(round))
		var decided atomic.Int32
		var word atomic.Bool
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				switch _, err := b.DecideApproval(t.Context(), b.orgA, a.ID, b.word(i%2 == 0)); {
				case err == nil:
					decided.Add(1)
					word.Store(i%2 == 0)
				case !errors.Is(err, storage.ErrConflict):
					t.Error(err)
				}
			})
		}
		all.Wait()
		equal(t, decided.Load(), 1)
		got, err := b.Approval(t.Context(), b.orgA, a.ID, start)
		noError(t, err)
		equal(t, got.Status == storage.ApprovalApproved, word.Load())
	}
}

func testApprovalsForgotten(t *testing.T, b *bundle) {
	ctx := t.Context()
	old := b.approved(t, "old")
	var kept []storage.Approval
	for i, now := range []time.Time{old.ExpiresAt.Add(24*time.Hour - time.Microsecond), old.ExpiresAt.Add(24 * time.Hour)} {
		a := b.newApproval(fmt.Sprint("next ", i))
		a.CreatedAt, a.ExpiresAt = now, now.Add(10*time.Minute)
		_, err := b.CreateApproval(ctx, a, storage.AskLimits{Pending: 10})
		noError(t, err)
		kept = append(kept, a)
		_, err = b.Approval(ctx, b.orgA, old.ID, now)
		if gone := i == 1; gone != errors.Is(err, storage.ErrNotFound) {
			t.Errorf("after %v: %v", now.Sub(old.ExpiresAt), err)
		}
	}
	for _, a := range kept {
		_, err := b.Approval(ctx, b.orgA, a.ID, start)
		noError(t, err)
	}
}

// testApprovalsEnd checks O15: the object of an approval is gone, and its successor does not inherit the approval.
func testApprovalsEnd(t *testing.T, b *bundle) {
	ctx := t.Context()
	agent := b.agent(t, b.orgA, "Agent")
	bystander := b.newApproval("bystander")
	bystander.UserID, bystander.ServerID = b.userA2, b.server(t, b.orgA, "Other").ID
	_, err := b.CreateApproval(ctx, bystander, storage.AskLimits{Pending: 10})
	noError(t, err)
	for _, c := range []struct {
		name string
		end  func() error
	}{
		{"server", func() error {
			if _, err := b.DeleteServer(ctx, b.orgA, b.serverA.ID, "", start); err != nil {
				return err
			}
			return b.CreateServer(ctx, b.serverA)
		}},
		{"agent", func() error {
			if err := b.DeleteAgent(ctx, b.orgA, agent.ID, "", start); err != nil {
				return err
			}
			_, err := b.AdoptApplication(ctx, agent)
			return err
		}},
		{"user", func() error {
			_, err := b.RevokeUser(ctx, b.orgA, b.userA1, start)
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			approved, pending := b.newApproval("approved"), b.newApproval("pending")
			for _, a := range []*storage.Approval{&approved, &pending} {
				a.AgentID = agent.ID
				_, err := b.CreateApproval(ctx, *a, storage.AskLimits{Pending: 10})
				noError(t, err)
			}
			_, err := b.DecideApproval(ctx, b.orgA, approved.ID, b.word(true))
			noError(t, err)
			noError(t, c.end())
			_, err = b.take(t, approved, start.Add(2*time.Minute))
			wantError(t, err, storage.ErrNotFound)
			_, err = b.DecideApproval(ctx, b.orgA, pending.ID, b.word(true))
			wantError(t, err, storage.ErrNotFound)
		})
	}
	got, err := b.Approval(ctx, b.orgA, bystander.ID, start)
	noError(t, err)
	equal(t, got, bystander)
}

func testLogOutUser(t *testing.T, b *bundle) {
	ctx := t.Context()
	claim := storage.UserClaim{OrganizationID: b.orgA, Issuer: issuer, Subject: "ada", DerivedID: newID(), Kind: storage.UserPerson, Name: "Ada"}
	want, err := b.ResolveUser(ctx, claim, start)
	noError(t, err)
	equal(t, want.LoggedOutAt.IsZero(), true)
	for _, begun := range []time.Time{start.Add(time.Hour + 7), start} { // it never moves back
		noError(t, b.LogOutUser(ctx, b.orgA, want.ID, begun))
		want.LoggedOutAt = start.Add(time.Hour)
		got, err := b.User(ctx, b.orgA, want.ID)
		noError(t, err)
		equal(t, got, want)
	}
	claim.Name = "Ada L." // it stays when the user is written for another reason
	want.Name = claim.Name
	got, err := b.ResolveUser(ctx, claim, start)
	noError(t, err)
	equal(t, got, want)
	for _, id := range []string{b.unknown, b.userB1, ""} {
		wantError(t, b.LogOutUser(ctx, b.orgA, id, start), storage.ErrNotFound)
	}
}

func testRevokeUser(t *testing.T, b *bundle) {
	ctx := t.Context()
	claim := storage.UserClaim{OrganizationID: b.orgA, Issuer: issuer, Subject: "ada", DerivedID: newID(), Kind: storage.UserPerson, Name: "Ada"}
	want, err := b.ResolveUser(ctx, claim, start)
	noError(t, err)
	equal(t, want.RevokedAt.IsZero(), true)
	claim.OrganizationID = b.orgB // the same person elsewhere
	elsewhere, err := b.ResolveUser(ctx, claim, start)
	noError(t, err)
	claim.OrganizationID = b.orgA

	revoked, err := b.RevokeUser(ctx, b.orgA, want.ID, start.Add(time.Hour+7))
	noError(t, err)
	want.RevokedAt = start.Add(time.Hour)
	equal(t, revoked, want)
	revoked, err = b.RevokeUser(ctx, b.orgA, want.ID, start) // it never moves back
	noError(t, err)
	equal(t, revoked, want)
	got, err := b.User(ctx, b.orgA, want.ID)
	noError(t, err)
	equal(t, got, want)
	got, err = b.ResolveUser(ctx, claim, start)
	noError(t, err)
	equal(t, got, want)

	// It stays when the user is written for another reason.
	claim.Name = "Ada L."
	_, err = b.ResolveUser(ctx, claim, start.Add(2*time.Hour))
	noError(t, err)
	want.Name, want.SeenAt = "Ada L.", start.Add(2*time.Hour)
	got, err = b.User(ctx, b.orgA, want.ID)
	noError(t, err)
	equal(t, got, want)

	got, err = b.User(ctx, b.orgB, elsewhere.ID)
	noError(t, err)
	equal(t, got, elsewhere)
	for _, id := range []string{b.unknown, b.userB1, ""} {
		_, err = b.RevokeUser(ctx, b.orgA, id, start)
		wantError(t, err, storage.ErrNotFound)
	}
}
