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

// book is what this process has seen. It is safe for concurrent use. The zero value is ready.
type book struct {
	mu     sync.Mutex
	owners map[mcpsession.Binding]*list.Element
	recent list.List // of *owner, the last seen first
	count  int
}

type owner struct {
	who mcpsession.Binding
	ids []string // oldest first
}

// add notes that a task is who's.
func (b *book) add(who mcpsession.Binding, id string) {
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
	if slices.Contains(o.ids, id) {
		return
	}
	if len(o.ids) == maxOwned {
		o.ids = slices.Delete(o.ids, 0, 1)
		b.count--
	}
	o.ids = append(o.ids, id)
	for b.count++; b.count > maxTasks; {
		oldest := b.recent.Remove(b.recent.Back()).(*owner)
		delete(b.owners, oldest.who)
		b.count -= len(oldest.ids)
	}
}

// has reports whether a task is known to be who's.
func (b *book) has(who mcpsession.Binding, id string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	o := b.find(who)
	return o != nil && slices.Contains(o.ids, id)
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
