package policy

import (
	"context"
	"sync"

	"github.com/durward-gateway/durward/internal/listfilter"
	"github.com/durward-gateway/durward/internal/taskbook"
	"github.com/durward-gateway/durward/storage"
)

// taskCreated returns what notes tasks that the call creates. A client that has left may ask for its task later. Each is a write:
// a server that tells of more tasks in one answer than an owner may have, or of any after the store has failed, makes no more of them,
// and those tasks are nobody's.
func (q *request) taskCreated(ctx context.Context) func(listfilter.Task) {
	core, who, logger := q.call.Core, q.call.Binding(), q.handler.logger
	ctx = context.WithoutCancel(ctx)
	left := storage.MaxTasks
	return func(made listfilter.Task) {
		if left == 0 {
			return
		}
		left--
		if err := core.Tasks.Created(ctx, who, taskbook.Created{ID: made.ID, At: made.CreatedAt, TTL: made.TTL}); err != nil {
			left = 0
			core.LogFailure(logger, "a task is known at this node alone", err)
		}
	}
}

// ownTasks returns what tells which tasks of a list are the caller's. The store is asked once, when the first one is met: lists may
// be long. Where it cannot tell, those are that this process has seen.
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
