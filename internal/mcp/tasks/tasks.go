// Package tasks remembers who created which task at an upstream. A task continues only for the caller that created
// it (attack O14). Task ids are the upstream's own and pass unchanged. When an upstream uses an id again, the id
// belongs to the newest task. The memory is bounded, and a task that is not remembered belongs to nobody.
package tasks

import (
	"container/list"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/mcp/session"
)

// Bounds of the book.
const (
	maxID    = 512     // bytes of an id; longer ones are not remembered
	maxUser  = 1024    // tasks of one user in memory, over all agents and servers
	maxTasks = 100_000 // in memory
)

// book remembers the tasks that this process has seen. An id belongs to its newest creation. When there is no room, the
// least recently used task is dropped. It is safe for concurrent use. The zero value is ready.
type book struct {
	mu     sync.Mutex
	tasks  map[place]*task
	users  map[person]*list.List // of *task
	recent list.List             // of *task, the most recently used first
}

// place identifies a task: its server gives an id to only one task at a time.
type place struct{ organization, server, digest string }

type person struct{ organization, user string }

type task struct {
	entry
	ofAll, ofUser *list.Element
}

// entry holds the known facts of a task.
type entry struct {
	who    session.Binding
	digest string
	// created comes from the server's clock where the server sends it.
	created, expires time.Time
	// stored is the last time when the store was seen to have the task; zero: never, and other nodes do not know the
	// task.
	stored time.Time
}

func (e *entry) place() place { return place{e.who.Organization, e.who.Server, e.digest} }

func (e *entry) person() person { return person{e.who.Organization, e.who.User} }

// add records a task in place of an earlier one of its server with the same id. It reports false when the recorded one
// is newer.
func (b *book) add(e entry) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.put(e)
}

// told records which tasks of who the store has. The store was asked at the time asked. Tasks that it had before and
// has no longer now belong to somebody else, or are over.
func (b *book) told(who session.Binding, asked time.Time, has []entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range has {
		b.put(e)
	}
	b.removeIf(b.users[person{who.Organization, who.User}], func(t *task) bool {
		return t.who == who && !t.stored.IsZero() && t.stored.Before(asked)
	})
}

// find returns a task of who that is not over.
func (b *book) find(who session.Binding, digest string, now time.Time) (entry, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tasks[place{who.Organization, who.Server, digest}]
	if t == nil || t.who != who || !t.expires.After(now) {
		return entry{}, false
	}
	b.recent.MoveToFront(t.ofAll)
	b.users[t.person()].MoveToFront(t.ofUser)
	return t.entry, true
}

// forget drops a task, unless its id already belongs to another creation.
func (b *book) forget(e *entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.tasks[e.place()]; t != nil && t.who == e.who && t.created.Equal(e.created) {
		b.remove(t)
	}
}

// forgetUser drops all tasks of a user.
func (b *book) forgetUser(who person) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.removeIf(b.users[who], func(*task) bool { return true })
}

// sweep drops tasks that are over.
func (b *book) sweep(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.removeIf(&b.recent, func(t *task) bool { return !t.expires.After(now) })
}

// put does the same as add. The caller holds the lock.
func (b *book) put(e entry) bool {
	if former := b.tasks[e.place()]; former != nil {
		if former.created.After(e.created) {
			return false
		}
		b.remove(former)
	}
	if b.tasks == nil {
		b.tasks, b.users = make(map[place]*task), make(map[person]*list.List)
	}
	user := b.users[e.person()]
	if user == nil {
		user = list.New()
		b.users[e.person()] = user
	}
	t := &task{entry: e}
	t.ofAll, t.ofUser = b.recent.PushFront(t), user.PushFront(t)
	b.tasks[e.place()] = t
	if user.Len() > maxUser {
		b.remove(user.Back().Value.(*task))
	}
	if b.recent.Len() > maxTasks {
		b.remove(b.recent.Back().Value.(*task))
	}
	return true
}

// remove removes a task. The caller holds the lock.
func (b *book) remove(t *task) {
	delete(b.tasks, t.place())
	b.recent.Remove(t.ofAll)
	user := b.users[t.person()]
	if user.Remove(t.ofUser); user.Len() == 0 {
		delete(b.users, t.person())
	}
}

// removeIf removes the tasks for which over reports true. The caller holds the lock. A nil list is empty.
func (b *book) removeIf(of *list.List, over func(*task) bool) {
	if of == nil {
		return
	}
	for e := of.Front(); e != nil; {
		t := e.Value.(*task)
		e = e.Next()
		if over(t) {
			b.remove(t)
		}
	}
}
