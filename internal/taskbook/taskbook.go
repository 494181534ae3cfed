// Package taskbook remembers who created which task at an upstream: a task goes on for whoever made the call, and for
// nobody else (attack O14). Task ids are the upstream's own and pass unchanged. What is remembered is bounded, and a task
// that is not remembered belongs to nobody.
package taskbook

import (
	"container/list"
	"slices"
	"sync"

	"github.com/durward-gateway/durward/internal/mcpsession"
	"github.com/durward-gateway/durward/storage"
)

// Bounds of the book.
const (
	maxID    = 512              // bytes of an id; longer ones are not remembered
	maxOwned = storage.MaxTasks // tasks of one owner; the oldest is forgotten first
	maxTasks = 100_000          // in memory; the owner who was seen last longest ago is forgotten first
)

// book remembers the tasks that this process has seen. It is safe for concurrent use. The zero value is ready.
type book struct {
	mu     sync.Mutex
	owners map[mcpsession.Binding]*list.Element
	recent list.List // of *owner, the last seen first
	count  int
}

type owner struct {
	who   mcpsession.Binding
	tasks []task // oldest first
}

type task struct {
	id     string
	stored bool // other nodes can know it
}

// add notes that a task is who's, or, when it is known, that it is stored.
func (b *book) add(who mcpsession.Binding, id string, stored bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.find(who)
	if o == nil {
		if b.owners == nil {
			b.owners = make(map[mcpsession.Binding]*list.Element)
		}
		o = &owner{who: who}
		b.owners[who] = b.recent.PushFront(o)
	}
	if known := o.task(id); known != nil {
		known.stored = known.stored || stored
		return
	}
	if len(o.tasks) == maxOwned {
		o.tasks = slices.Delete(o.tasks, 0, 1)
		b.count--
	}
	o.tasks = append(o.tasks, task{id, stored})
	for b.count++; b.count > maxTasks; {
		oldest := b.recent.Remove(b.recent.Back()).(*owner)
		delete(b.owners, oldest.who)
		b.count -= len(oldest.tasks)
	}
}

// has reports whether a task is known to be who's, and whether it is stored.
func (b *book) has(who mcpsession.Binding, id string) (known, stored bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if o := b.find(who); o != nil {
		if t := o.task(id); t != nil {
			return true, t.stored
		}
	}
	return false, false
}

// task returns nil for one that is not the owner's. The book's lock is held.
func (o *owner) task(id string) *task {
	if i := slices.IndexFunc(o.tasks, func(t task) bool { return t.id == id }); i >= 0 {
		return &o.tasks[i]
	}
	return nil
}

// find is called with the lock held.
func (b *book) find(who mcpsession.Binding) *owner {
	e := b.owners[who]
	if e == nil {
		return nil
	}
	b.recent.MoveToFront(e)
	return e.Value.(*owner)
}
