package counters

import (
	"context"
	"sync"
)

// batch gathers the questions of many goroutines while an exchange runs, and asks them in the next one. So steps wait
// for at most one exchange before their own, however many there are.
type batch[T any] struct {
	most int // in one exchange
	do   func(all []*asked[T])

	mu      sync.Mutex
	waiting []*asked[T]
	running int
	limit   int // exchanges at a time
	done    sync.WaitGroup
}

// asked is one question.
type asked[T any] struct {
	of     T
	err    error
	ctx    context.Context
	answer chan struct{}
}

// ask asks and waits for the answer, which is stored where of points. When ctx ends first, a question that was not
// sent yet is not sent.
func (b *batch[T]) ask(ctx context.Context, of T) error {
	q := &asked[T]{of: of, ctx: ctx, answer: make(chan struct{})}
	b.mu.Lock()
	b.waiting = append(b.waiting, q)
	if b.running < b.limit {
		b.running++
		b.done.Go(b.run)
	}
	b.mu.Unlock()
	select {
	case <-q.answer:
		return q.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run asks until no question waits.
func (b *batch[T]) run() {
	for {
		next := b.next()
		if len(next) == 0 {
			return
		}
		b.do(next)
		for _, q := range next {
			close(q.answer)
		}
	}
}

// next takes the questions of the next exchange. When there are none, the run has ended.
func (b *batch[T]) next() []*asked[T] {
	b.mu.Lock()
	defer b.mu.Unlock()
	var next []*asked[T]
	taken := 0
	for _, q := range b.waiting {
		if len(next) == b.most {
			break
		}
		taken++
		if q.ctx.Err() == nil {
			next = append(next, q)
		}
	}
	b.waiting = append(b.waiting[:0], b.waiting[taken:]...)
	clear(b.waiting[len(b.waiting):cap(b.waiting)])
	if len(next) == 0 {
		b.running--
	}
	return next
}
