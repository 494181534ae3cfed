package approval

import "sync"

// Bell wakes calls of this process that wait for a decision. The zero value is ready.
type Bell struct {
	mu      sync.Mutex
	waiting map[string]map[chan struct{}]struct{}
}

// listen returns a channel that has something in it once the bell of that id has rung. ok is false when the maximum
// number of listeners is reached.
func (b *Bell) listen(id string) (rung <-chan struct{}, stop func(), ok bool) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.waiting[id]) == MaxPending {
		return nil, nil, false
	}
	if b.waiting == nil {
		b.waiting = make(map[string]map[chan struct{}]struct{})
	}
	if b.waiting[id] == nil {
		b.waiting[id] = make(map[chan struct{}]struct{})
	}
	b.waiting[id][c] = struct{}{}
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if delete(b.waiting[id], c); len(b.waiting[id]) == 0 {
			delete(b.waiting, id)
		}
	}, true
}

func (b *Bell) ring(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.waiting[id] {
		select {
		case c <- struct{}{}:
		default: // it has rung already
		}
	}
}
