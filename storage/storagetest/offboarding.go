package storagetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// belongings gives userA1 two of everything that ends with a user, and userA2 one of each.
func (b *bundle) belongings(t *testing.T) (own, others []storage.APIKey) {
	t.Helper()
	ctx := t.Context()
	second := b.server(t, b.orgA, "Second")
	for _, key := range []storage.ConnectionKey{
		b.connectionA1, {OrganizationID: b.orgA, UserID: b.userA1, ServerID: second.ID}, {OrganizationID: b.orgA, UserID: b.userA2, ServerID: second.ID}, b.connectionB1,
	} {
		b.connect(t, key)
	}
	b.login(t, nil)
	b.login(t, nil)
	b.login(t, func(l *storage.Login) { l.UserID = b.userA2 })
	noError(t, b.CreateLogin(ctx, b.newLogin())) // it waits for its user, and is none that anybody sees
	b.approval(t, "pending")
	b.approved(t, "approved")
	other := b.newApproval("other")
	other.UserID = b.userA2
	_, err := b.CreateApproval(ctx, other, storage.AskLimits{Pending: 10})
	noError(t, err)
	for _, digest := range []string{"first", "second"} {
		noError(t, b.AddTask(ctx, b.newTask(digest)))
	}
	task := b.newTask("third")
	task.UserID = b.userA2
	noError(t, b.AddTask(ctx, task))
	over := b.newTask("over")
	over.ExpiresAt = start
	noError(t, b.AddTask(ctx, over))
	noError(t, b.CreateConversation(ctx, b.newConversation("conversation")))
	own = []storage.APIKey{b.apiKey(t, b.orgA, b.userA1), b.apiKey(t, b.orgA, b.userA1)}
	others = []storage.APIKey{b.apiKey(t, b.orgA, b.userA2), b.apiKey(t, b.orgA, ""), b.apiKey(t, b.orgB, b.userB1)}
	return own, others
}

// telling returns a context in which credentials may end; told counts them.
func telling(ctx context.Context) (_ context.Context, told *int) {
	told = new(int)
	return storage.WithEnding(ctx, func(context.Context, storage.Ended) ([]storage.Revocation, error) {
		*told++
		return nil, nil
	}), told
}

// testOffboardUser checks that everything of a user ends in one write, which counts what a look beforehand counted, and
// that nothing of anybody else's does.
func testOffboardUser(t *testing.T, b *bundle) {
	ctx, told := telling(t.Context())
	own, others := b.belongings(t)
	begun := attempt(b.connectionA1)
	noError(t, b.CreateAttempt(ctx, begun))
	at := start.Add(time.Second)
	want := storage.Offboarding{Sessions: 2, APIKeys: 2, Connections: 2, Approvals: 2, Tasks: 2}
	numbers := func(o storage.Offboarding) storage.Offboarding {
		return storage.Offboarding{Sessions: o.Sessions, APIKeys: o.APIKeys, Connections: o.Connections, Approvals: o.Approvals, Tasks: o.Tasks}
	}
	before, err := b.Offboarding(ctx, b.orgA, b.userA2, at)
	noError(t, err)
	foreseen, err := b.Offboarding(ctx, b.orgA, b.userA1, at)
	noError(t, err)
	equal(t, numbers(foreseen), want)
	equal(t, foreseen.User.RevokedAt.IsZero(), true)

	var heard storage.Offboarding
	var done storage.Offboarding
	request := storage.OffboardRequest{OrganizationID: b.orgA, UserID: b.userA1, At: at.Add(7), Tell: func(o *storage.Offboarding) { heard = *o }}
	equal(t, b.changes(func() { done, err = b.OffboardUser(ctx, request) }), 1)
	noError(t, err)
	equal(t, numbers(done), want)
	equal(t, heard, done)
	equal(t, *told, 2)
	equal(t, len(done.Ended), 2)
	u, err := b.User(ctx, b.orgA, b.userA1)
	noError(t, err)
	equal(t, done.User, u)
	equal(t, u.RevokedAt, at)
	equal(t, u.LoggedOutAt, at)

	none := storage.Offboarding{}
	left, err := b.Offboarding(ctx, b.orgA, b.userA1, start)
	noError(t, err)
	equal(t, numbers(left), none)
	_, err = b.Conversation(ctx, b.orgA, b.userA1, "conversation", start)
	wantError(t, err, storage.ErrNotFound)
	_, err = b.TakeAttempt(ctx, begun.StateHash, start)
	wantError(t, err, storage.ErrNotFound)
	_, err = b.Connection(ctx, b.connectionA1)
	wantError(t, err, storage.ErrNotFound)
	for _, k := range own {
		got, err := b.APIKey(ctx, b.orgA, k.ID)
		noError(t, err)
		equal(t, got.RevokedAt, at)
	}
	for _, k := range others {
		got, err := b.APIKey(ctx, k.OrganizationID, k.ID)
		noError(t, err)
		equal(t, got, k)
	}
	after, err := b.Offboarding(ctx, b.orgA, b.userA2, at)
	noError(t, err)
	equal(t, after, before)
	_, err = b.Connection(ctx, b.connectionB1)
	noError(t, err)

	// Repeating it counts what has come since.
	b.apiKeyAt(t, b.userA1, at.Add(time.Minute))
	request.At = at.Add(time.Hour)
	done, err = b.OffboardUser(ctx, request)
	noError(t, err)
	equal(t, numbers(done), storage.Offboarding{APIKeys: 1})
	equal(t, done.User.RevokedAt, at.Add(time.Hour))
	for _, id := range []string{b.unknown, b.userB1, ""} {
		request.UserID = id
		_, err = b.OffboardUser(ctx, request)
		wantError(t, err, storage.ErrNotFound)
		_, err = b.Offboarding(ctx, b.orgA, id, at)
		wantError(t, err, storage.ErrNotFound)
	}
}

// apiKeyAt stores an API key that was made at a time.
func (b *bundle) apiKeyAt(t *testing.T, user string, at time.Time) {
	t.Helper()
	k := newAPIKey(b.orgA, user)
	k.CreatedAt = at
	noError(t, b.CreateAPIKey(t.Context(), k))
}

// testOffboardAtomic checks that nothing ends when one of the user's credentials cannot, and that the one record of it has
// what was told in the transaction.
func testOffboardAtomic(t *testing.T, b *bundle) {
	b.belongings(t)
	at := start.Add(time.Second)
	before, err := b.Offboarding(t.Context(), b.orgA, b.userA1, at)
	noError(t, err)
	request := storage.OffboardRequest{OrganizationID: b.orgA, UserID: b.userA1, At: at}
	refused := errors.New("no")
	asked := 0
	refusing := storage.WithEnding(t.Context(), func(context.Context, storage.Ended) ([]storage.Revocation, error) {
		if asked++; asked == 2 {
			return nil, refused
		}
		return nil, nil
	})
	_, err = b.OffboardUser(refusing, request)
	wantError(t, err, refused)
	_, err = b.OffboardUser(t.Context(), request)
	wantError(t, err, storage.ErrNoEnding)
	after, err := b.Offboarding(t.Context(), b.orgA, b.userA1, at)
	noError(t, err)
	equal(t, after, before)

	audited, entry := b.audited(t, b.orgA, "user.offboard")
	request.Tell = func(o *storage.Offboarding) { entry.Entries[0].Tool = "told"; asked = o.Sessions }
	ctx, _ := telling(audited)
	_, err = b.OffboardUser(ctx, request)
	noError(t, err)
	equal(t, asked, 2)
	records, err := b.AuditRecords(t.Context(), storage.AuditFilter{OrganizationID: b.orgA})
	noError(t, err)
	found := 0
	for _, r := range records {
		if text := string(r.Text); strings.Contains(text, `"event":"user.offboard"`) && strings.Contains(text, `"tool":"told"`) {
			found++
		}
	}
	equal(t, found, 1)
}
