// Package taskbook remembers who created which task at an upstream: a task goes on for whoever made the call, and for
// nobody else (attack O14). Task ids are the upstream's own and pass unchanged; an id that it gives again is the newest
// creation's. What is remembered is bounded, and a task that is not remembered belongs to nobody.
package taskbook

import (
	"container/list"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/mcpsession"
)

// Bounds of the book.
const (
	maxID    = 512     // bytes of an id; longer ones are not remembered
	maxUser  = 1024    // tasks of one user in memory, with all their agents and servers
	maxTasks = 100_000 // in memory
)

// book remembers the tasks that this process has seen, each as its newest creation's. Where there is no room, the task goes that was
// asked for longest ago. It is safe for concurrent use. The zero value is ready.
type book struct {
	mu     sync.Mutex
	tasks  map[place]*task
	users  map[person]*list.List // of *task
	recent list.List             // of *task, the one asked for last first
}

// place is where a task is: its server gives an id to one task at a time.
type place struct{ organization, server, digest string }

type person struct{ organization, user string }

type task struct {
	entry
	ofAll, ofUser *list.Element
}

// entry is what is known of a task.
type entry struct {
	who    mcpsession.Binding
	digest string
	// created is by the server's clock where it says it.
	created, expires time.Time
	// stored is when the store was seen to have it last; zero: it never was, and other nodes do not know the task.
	stored time.Time
}

func (e *entry) place() place { return place{e.who.Organization, e.who.Server, e.digest} }

func (e *entry) person() person { return person{e.who.Organization, e.who.User} }

// add notes a task in the place of what its server created before under its id. It reports false when that is newer.
func (b *book) add(e entry) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.put(e)
}

// told notes which tasks the store has of who's, who was asked for at a time. Those that it had before are somebody else's by now, or
// over.
func (b *book) told(who mcpsession.Binding, asked time.Time, has []entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range has {
		b.put(e)
	}
	b.removeIf(b.users[person{who.Organization, who.User}], func(t *task) bool {
		return t.who == who && !t.stored.IsZero() && t.stored.Before(asked)
	})
}

// find returns what is known of a task of who's that is not over.
func (b *book) find(who mcpsession.Binding, digest string, now time.Time) (entry, bool) {
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

// forget forgets a task, unless its id is another creation's by now.
func (b *book) forget(e *entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.tasks[e.place()]; t != nil && t.who == e.who && t.created.Equal(e.created) {
		b.remove(t)
	}
}

// sweep forgets what is over.
func (b *book) sweep(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.removeIf(&b.recent, func(t *task) bool { return !t.expires.After(now) })
}

// put is add with the lock held.
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

// remove is called with the lock held.
func (b *book) remove(t *task) {
	delete(b.tasks, t.place())
	b.recent.Remove(t.ofAll)
	user := b.users[t.person()]
	if user.Remove(t.ofUser); user.Len() == 0 {
		delete(b.users, t.person())
	}
}

// removeIf is called with the lock held. A nil list has nothing in it.
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
