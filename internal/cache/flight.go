package cache

import (
	"context"
	"errors"
)

// flightKey contains the epoch, so that a caller after a write never waits for a load that began before it.
type flightKey struct {
	key   string
	epoch Epoch
}

// flight is one load under way, with its waiting callers.
type flight[V any] struct {
	waiters int // guarded by Cache.mu
	cancel  context.CancelCauseFunc

	done     chan struct{} // closed when the next fields are set
	value    V
	err      error
	panicked any
}

func (c *Cache[V]) fly(ctx context.Context, key Key, epoch Epoch, load func(context.Context) (V, error)) (V, error) {
	var zero V
	fk := flightKey{key.full, epoch}
	c.mu.Lock()
	f, ok := c.flights[fk]
	if !ok {
		var err error
		if f, err = c.start(ctx, key, fk, load); err != nil {
			c.mu.Unlock()
			return zero, err
		}
	}
	f.waiters++
	c.mu.Unlock()

	select {
	case <-f.done:
	case <-ctx.Done():
		c.leave(fk, f)
		return zero, context.Cause(ctx)
	}
	if f.panicked != nil {
		panic(f.panicked)
	}
	return f.value, f.err
}

// start begins a load. The caller holds c.mu.
func (c *Cache[V]) start(ctx context.Context, key Key, fk flightKey, load func(context.Context) (V, error)) (*flight[V], error) {
	c.closing.RLock()
	defer c.closing.RUnlock()
	if c.closed.Load() {
		return nil, ErrClosed
	}
	loadCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	f := &flight[V]{cancel: cancel, done: make(chan struct{}), err: errors.New("loading ended without an answer")}
	c.flights[fk] = f
	c.loading.Add(1)
	go func() {
		defer c.loading.Done()
		defer cancel(nil)
		defer func() {
			f.panicked = recover()
			c.mu.Lock()
			if c.flights[fk] == f {
				delete(c.flights, fk)
			}
			c.mu.Unlock()
			close(f.done)
		}()
		f.value, f.err = load(loadCtx)
		if f.err == nil {
			// The value is stored before the flight ends, so that the next caller finds one of the two.
			c.keep(key, fk.epoch, f.value)
		}
	}()
	return f, nil
}

// leave removes a waiting caller. After the last one, the load is no longer needed.
func (c *Cache[V]) leave(fk flightKey, f *flight[V]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiters--; f.waiters > 0 {
		return
	}
	if c.flights[fk] == f {
		delete(c.flights, fk)
	}
	f.cancel(context.Canceled)
}
