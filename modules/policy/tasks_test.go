package policy

import (
	"context"
	"strconv"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/mcp/listfilter"
	"github.com/durward-gateway/durward/internal/mcp/tasks"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

// countedTasks is a store that counts its writes.
type countedTasks struct {
	writes int
	err    error
}

func (c *countedTasks) AddTask(context.Context, storage.Task) error {
	c.writes++
	return c.err
}

func (c *countedTasks) Tasks(context.Context, storage.TaskOwner, time.Time) ([]storage.Task, error) {
	return nil, c.err
}

func (c *countedTasks) ForgetTasks(context.Context, time.Time) error { return c.err }

// TestManyTasks lets a server announce more and more tasks in one answer, and checks that the number of writes is
// bounded.
func TestManyTasks(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want int
	}{"taken": {nil, storage.MaxTasks}, "while the store is away": {storage.ErrUnavailable, 1}} {
		t.Run(name, func(t *testing.T) {
			store := &countedTasks{err: tc.err}
			core := &app.Core{Tasks: &tasks.Owners{Store: store, Now: time.Now}}
			q := request{handler: &Handler{logger: zap.NewNop()}, call: &app.Call{Core: core, Caller: new(authn.Caller), Server: new(storage.Server)}}
			created := q.taskCreated(t.Context())
			for i := range 4 * storage.MaxTasks {
				created(listfilter.Task{ID: strconv.Itoa(i)})
			}
			if store.writes != tc.want {
				t.Errorf("%d writes, want %d", store.writes, tc.want)
			}
		})
	}
}
