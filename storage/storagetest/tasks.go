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
	list := func(of storage.TaskOwner, now time.Time) []storage.Task {
		t.Helper()
		tasks, err := b.Tasks(ctx, of, now)
		noError(t, err)
		return tasks
	}
	equal(t, list(want.TaskOwner, want.ExpiresAt.Add(-time.Microsecond)), []storage.Task{want, second})
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

	// Expired tasks of all organizations are deleted.
	foreign.OrganizationID, foreign.ExpiresAt = b.orgB, start.Add(2*time.Hour)
	noError(t, b.AddTask(ctx, foreign))
	later := b.newTask("third")
	later.ExpiresAt = start.Add(3 * time.Hour)
	noError(t, b.AddTask(ctx, later))
	noError(t, b.ForgetTasks(ctx, want.ExpiresAt))
	equal(t, list(want.TaskOwner, start), []storage.Task{later})
	equal(t, list(foreign.TaskOwner, start), []storage.Task{foreign})
	noError(t, b.ForgetTasks(ctx, foreign.ExpiresAt))
	equal(t, list(foreign.TaskOwner, start), nil)
	_, err := b.DeleteServer(ctx, b.orgA, b.serverA.ID, b.userA1, start)
	noError(t, err)
	equal(t, list(want.TaskOwner, start), nil)
}

// testTaskGivenAgain has a server create a task under an id that it gave before: it belongs only to the owner of the
// newest creation.
func testTaskGivenAgain(t *testing.T, b *bundle) {
	ctx := t.Context()
	digests := func(of storage.Task) (found []string) {
		t.Helper()
		tasks, err := b.Tasks(ctx, of.TaskOwner, start)
		noError(t, err)
		for _, task := range tasks {
			found = append(found, task.Digest)
		}
		return found
	}
	first, again, stale := b.newTask("id"), b.newTask("id"), b.newTask("id")
	again.UserID, again.CreatedAt = b.userA2, start.Add(time.Second)
	stale.Agent, stale.CreatedAt = "", start.Add(-time.Second)
	noError(t, b.AddTask(ctx, first))
	noError(t, b.AddTask(ctx, b.newTask("other")))
	noError(t, b.AddTask(ctx, again))
	equal(t, digests(first), []string{"other"})
	equal(t, digests(again), []string{"id"})
	for _, older := range []storage.Task{first, stale} { // that come late
		wantError(t, b.AddTask(ctx, older), storage.ErrConflict)
	}
	equal(t, digests(first), []string{"other"})
	equal(t, digests(again), []string{"id"})
	first.CreatedAt = again.CreatedAt // the last one wins
	noError(t, b.AddTask(ctx, first))
	equal(t, digests(first), []string{"other", "id"})
	equal(t, digests(again), nil)
}

// testTasksBounded checks that an owner who creates more and more tasks does not fill the store.
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
	late := b.newTask("late") // by its server's clock the oldest
	late.CreatedAt = start.Add(-time.Hour)
	noError(t, b.AddTask(ctx, late))
	tasks, err := b.Tasks(ctx, neighbour.TaskOwner, start)
	noError(t, err)
	equal(t, tasks, []storage.Task{neighbour})
	tasks, err = b.Tasks(ctx, late.TaskOwner, start)
	noError(t, err)
	equal(t, len(tasks), storage.MaxTasks)
	equal(t, []string{tasks[0].Digest, tasks[1].Digest}, []string{"late", "0003"})
}
