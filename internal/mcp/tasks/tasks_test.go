package tasks

import (
	"strconv"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/mcp/session"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func numbered(user, id int) entry {
	return entry{who: session.Binding{User: strconv.Itoa(user)}, digest: strconv.Itoa(user) + "/" + strconv.Itoa(id), created: start, expires: start.Add(time.Hour)}
}

// TestBounds fills the book. The least recently used tasks are dropped, those of the user with too many before those of
// others.
func TestBounds(t *testing.T) {
	var b book
	has := func(e entry) bool {
		_, known := b.find(e.who, e.digest, start)
		return known
	}
	neighbour := numbered(1, 0)
	b.add(neighbour)
	for i := range maxUser {
		e := numbered(0, i)
		e.who.Agent = strconv.Itoa(i % 7) // more agents make no more room
		b.add(e)
	}
	asked := numbered(0, 0)
	asked.who.Agent = "0"
	if !has(asked) {
		t.Error("a task is forgotten before there are too many")
	}
	b.add(numbered(0, maxUser))
	oldest := numbered(0, 1)
	oldest.who.Agent = "1"
	if !has(asked) || has(oldest) || !has(neighbour) || b.recent.Len() != maxUser+1 {
		t.Errorf("what was asked for is known: %v, the oldest: %v, the neighbour's: %v; %d tasks", has(asked), has(oldest), has(neighbour), b.recent.Len())
	}
	for i := range maxTasks {
		b.add(numbered(2+i, 0))
	}
	if has(neighbour) || !has(numbered(maxTasks+1, 0)) || b.recent.Len() != maxTasks || len(b.tasks) != maxTasks || len(b.users) != maxTasks {
		t.Errorf("%d tasks, %d by id, of %d users", b.recent.Len(), len(b.tasks), len(b.users))
	}
	b.sweep(start.Add(time.Hour))
	if b.recent.Len() != 0 || len(b.tasks) != 0 || len(b.users) != 0 {
		t.Errorf("%d tasks, %d by id, of %d users are left of those that are over", b.recent.Len(), len(b.tasks), len(b.users))
	}
}
