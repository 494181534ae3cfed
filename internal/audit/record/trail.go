package record

import (
	"sync"
	"sync/atomic"

	"github.com/durward-gateway/durward/internal/audit"
)

// Trail is the audit log of one store. It outlives configurations. It is opened for the first record, at the latest when
// a configuration starts: a configuration that is only validated must not touch the journal of the running one.
type Trail struct {
	watch, forget func(*audit.Trail)

	opened atomic.Pointer[audit.Trail]
	mu     sync.Mutex
	closed bool
}

// NewTrail returns a trail that is not open. watch is called when it opens, and forget after it has closed.
func NewTrail(watch, forget func(*audit.Trail)) *Trail { return &Trail{watch: watch, forget: forget} }

func (t *Trail) open(make func() (*audit.Trail, error)) (*audit.Trail, error) {
	if opened := t.opened.Load(); opened != nil {
		return opened, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if opened := t.opened.Load(); opened != nil {
		return opened, nil
	}
	if t.closed {
		return nil, audit.ErrUnavailable
	}
	opened, err := make()
	if err != nil {
		return nil, err
	}
	t.watch(opened)
	t.opened.Store(opened)
	return opened, nil
}

// Close ends the trail. It must happen before its store is closed.
func (t *Trail) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	opened := t.opened.Load()
	if opened == nil {
		return nil
	}
	err := opened.Close()
	t.forget(opened) // with the losses of the end
	return err
}
