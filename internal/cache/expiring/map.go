// Package expiring remembers values for a while, such as the failure of a server that should be left alone. It holds no
// clock: callers pass the time.
package expiring

import (
	"container/list"
	"sync"
	"time"
)

// Map keeps values, each until its time. Setting a value drops values whose time is over, so that a map holds about as
// many as are set in a lifetime. No operation looks at more values than it drops: with a look at all of them, many
// users whose provider is away would slow down everybody. The zero value is ready, without a bound. Map is safe for
// concurrent use.
type Map[K comparable, V any] struct {
	// Most bounds the number of values. The one that was set first makes room. Default: no bound.
	Most int

	mu      sync.Mutex
	entries map[K]*list.Element
	order   list.List // of entry[K, V]; the one that was set last is at the back
}

type entry[K comparable, V any] struct {
	key   K
	value V
	until time.Time
}

// Get returns the value of a key. It reports false when there is none, and from its time on.
func (m *Map[K, V]) Get(key K, now time.Time) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.get(key, now)
}

func (m *Map[K, V]) get(key K, now time.Time) (value V, ok bool) {
	element, ok := m.entries[key]
	if !ok {
		return value, false
	}
	e := element.Value.(entry[K, V])
	if !now.Before(e.until) {
		return value, false
	}
	return e.value, true
}

// Set keeps a value until a time. A value with a longer lifetime than those set after it delays their removal, until its
// own time.
func (m *Map[K, V]) Set(key K, value V, until, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(key, value, until, now)
}

func (m *Map[K, V]) set(key K, value V, until, now time.Time) {
	m.remove(key)
	for first := m.order.Front(); first != nil; first = m.order.Front() {
		e := first.Value.(entry[K, V])
		if now.Before(e.until) && (m.Most == 0 || m.order.Len() < m.Most) {
			break
		}
		m.remove(e.key)
	}
	if m.entries == nil {
		m.entries = make(map[K]*list.Element)
	}
	m.entries[key] = m.order.PushBack(entry[K, V]{key, value, until})
}

// Add sets a value unless the key has one, and reports whether it did.
func (m *Map[K, V]) Add(key K, value V, until, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.get(key, now); ok {
		return false
	}
	m.set(key, value, until, now)
	return true
}

// Delete forgets the value of a key.
func (m *Map[K, V]) Delete(key K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.remove(key)
}

func (m *Map[K, V]) remove(key K) {
	if element, ok := m.entries[key]; ok {
		m.order.Remove(element)
		delete(m.entries, key)
	}
}

// Len returns the number of values that are kept.
func (m *Map[K, V]) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.order.Len()
}
