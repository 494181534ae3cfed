package storagetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

func (b *bundle) newTask(digest string) storage.Task {
	return storage.Task{
		TaskOwner: storage.TaskOwner{OrganizationID: b.orgA, ServerID: b.serverA.ID, UserID: b.userA1, Agent: "claude"},
		Digest:    digest, CreatedAt: start, ExpiresAt: start.Add(time.Hour),
	}
}

func testTasks(t *testing.T, b *bundle) {
	ctx := t.Context()
	want := b.newTask("first")
	noError(t, b.AddTask(ctx, want))
	noError(t, b.AddTask(ctx, want))
	second := b.newTask("second")
	second.CreatedAt = start.Add(time.Second)
	noError(t, b.AddTask(ctx, second))
	list := func(of storage.TaskOwner, now time.Time) []string {
		t.Helper()
		digests, err := b.Tasks(ctx, of, now)
		noError(t, err)
		return digests
	}
	equal(t, list(want.TaskOwner, want.ExpiresAt.Add(-time.Microsecond)), []string{"first", "second"})
	equal(t, list(want.TaskOwner, want.ExpiresAt), nil)
	for name, change := range map[string]func(*storage.TaskOwner){
		"organization": func(o *storage.TaskOwner) { o.OrganizationID = b.orgB },
		"server":       func(o *storage.TaskOwner) { o.ServerID = b.serverB.ID },
		"user":         func(o *storage.TaskOwner) { o.UserID = b.userA2 },
		"agent":        func(o *storage.TaskOwner) { o.Agent = "" },
	} {
		t.Run("O14 another "+name, func(t *testing.T) {
			other := want.TaskOwner
			change(&other)
			equal(t, list(other, start), nil)
		})
	}
	foreign := b.newTask("first")
	foreign.ServerID = b.serverB.ID
	wantError(t, b.AddTask(ctx, foreign), storage.ErrNotFound)

	// What is over makes room.
	later := b.newTask("third")
	later.CreatedAt, later.ExpiresAt = want.ExpiresAt, want.ExpiresAt.Add(time.Hour)
	noError(t, b.AddTask(ctx, later))
	equal(t, list(want.TaskOwner, start), []string{"third"})
	_, err := b.DeleteServer(ctx, b.orgA, b.serverA.ID, b.userA1, start)
	noError(t, err)
	equal(t, list(want.TaskOwner, start), nil)
}

// testTasksBounded: an owner who creates more and more fills nothing.
func testTasksBounded(t *testing.T, b *bundle) {
	ctx := t.Context()
	neighbour := b.newTask("neighbour")
	neighbour.UserID = b.userA2
	noError(t, b.AddTask(ctx, neighbour))
	for i := range storage.MaxTasks + 2 {
		task := b.newTask(fmt.Sprintf("%04d", i))
		task.CreatedAt = start.Add(time.Duration(i) * time.Millisecond)
		noError(t, b.AddTask(ctx, task))
	}
	digests, err := b.Tasks(ctx, neighbour.TaskOwner, start)
	noError(t, err)
	equal(t, digests, []string{"neighbour"})
	digests, err = b.Tasks(ctx, b.newTask("").TaskOwner, start)
	noError(t, err)
	equal(t, len(digests), storage.MaxTasks)
	equal(t, digests[0], "0002")
}
