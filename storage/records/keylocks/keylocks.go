// Package keylocks lets one holder in the process work on a connection at a time.
package keylocks

import (
	"context"
	"slices"
	"sync"

	"github.com/durward-gateway/durward/storage"
)

// Locks provides mutual exclusion by connection. Waiters get their turn in the order of their arrival; an unlocked
// key takes no memory. The zero value is ready.
type Locks struct {
	mu   sync.Mutex
	held map[storage.ConnectionKey][]chan struct{} // a locked key, and its waiters
}

// Acquire waits until the key is free or ctx ends. release must be called exactly once.
func (l *Locks) Acquire(ctx context.Context, key storage.ConnectionKey) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	waiters, held := l.held[key]
	if !held {
		if l.held == nil {
			l.held = make(map[storage.ConnectionKey][]chan struct{})
		}
		l.held[key] = nil
		l.mu.Unlock()
		return func() { l.release(key) }, nil
	}
	turn := make(chan struct{})
	l.held[key] = append(waiters, turn)
	l.mu.Unlock()

	select {
	case <-turn:
		return func() { l.release(key) }, nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	i := slices.Index(l.held[key], turn)
	if i >= 0 {
		l.held[key] = slices.Delete(l.held[key], i, i+1)
	}
	l.mu.Unlock()
	if i < 0 { // our turn came at the same moment: pass it on
		l.release(key)
	}
	return nil, ctx.Err()
}

func (l *Locks) release(key storage.ConnectionKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiters := l.held[key]
	if len(waiters) == 0 {
		delete(l.held, key)
		return
	}
	l.held[key] = waiters[1:]
	close(waiters[0])
}
