package tasks

import (
	"context"
	"sync"
	"time"
)

// Times between two tries of a store that is away.
const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
)

// pause spaces out the tries of a store that is away. It is safe for concurrent use. The zero value is ready.
type pause struct {
	mu    sync.Mutex
	until time.Time
	long  time.Duration // 0: the store is there
}

// mayTry reports whether the store may be tried. While it is away one caller may at the end of each pause, and the next
// pause is longer.
func (p *pause) mayTry(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.long == 0 {
		return true
	}
	if now.Before(p.until) {
		return false
	}
	p.long = min(2*p.long, lastPause)
	p.until = now.Add(p.long)
	return true
}

// failed begins the first pause. A client that has gone says nothing about the store.
func (p *pause) failed(ctx context.Context, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.long == 0 && ctx.Err() == nil {
		p.long, p.until = firstPause, now.Add(firstPause)
	}
}

// over records that the store has answered.
func (p *pause) over() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.long = 0
}
