package policy

import (
	"context"
	"sync"

	"github.com/durward-gateway/durward/internal/mcp/listfilter"
	"github.com/durward-gateway/durward/internal/mcp/tasks"
	"github.com/durward-gateway/durward/storage"
)

// taskCreated returns a function that notes tasks that the call creates. A client that has left may ask for its task
// later. Each note is a write. No more are written when a server announces more tasks in one answer than an owner may
// have, or after the store has failed. Those tasks then have no owner.
func (q *request) taskCreated(ctx context.Context) func(listfilter.Task) {
	core, who, logger := q.call.Core, q.call.Binding(), q.handler.logger
	ctx = context.WithoutCancel(ctx)
	left := storage.MaxTasks
	return func(made listfilter.Task) {
		if left == 0 {
			return
		}
		left--
		if err := core.Tasks.Created(ctx, who, tasks.Created{ID: made.ID, At: made.CreatedAt, TTL: made.TTL}); err != nil {
			left = 0
			core.LogFailure(logger, "a task is known at this node alone", err)
		}
	}
}

// ownTasks returns a function that reports whether a task of a list is the caller's. The store is asked once, at the
// first task: lists may be long. When the store does not answer, the caller's tasks are those that this process has
// seen.
func (q *request) ownTasks(ctx context.Context) func(id string) bool {
	core, who, logger := q.call.Core, q.call.Binding(), q.handler.logger
	of := sync.OnceValue(func() func(string) bool {
		owns, err := core.Tasks.Of(ctx, who)
		if err != nil {
			core.LogFailure(logger, "finding out whose tasks are", err)
		}
		return owns
	})
	return func(id string) bool { return of()(id) }
}
