// Package listeners keeps functions that are told of events.
package listeners

import (
	"slices"
	"sync"
)

// List holds functions, such as those registered with OnChange or OnClock. They are called in the order of their registration. The
// zero value is ready.
type List[T any] struct {
	mu  sync.Mutex
	all []*func(T)
}

// Add registers f until cancel is called.
func (l *List[T]) Add(f func(T)) (cancel func()) {
	entry := &f
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, entry) // the slice that Notify has read stays as it is
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = slices.DeleteFunc(slices.Clone(l.all), func(e *func(T)) bool { return e == entry })
	}
}

// Notify calls every function.
func (l *List[T]) Notify(told T) {
	l.mu.Lock()
	all := l.all
	l.mu.Unlock()
	for _, f := range all {
		(*f)(told)
	}
}
