package streams

import (
	"context"
	"sync"
	"time"
)

// Rejudger checks the right of an organization's open streams after a write in the organization: a stream that policies
// no longer grant ends within a second. It works in the background, because a write must not wait for it.
type Rejudger struct {
	Streams *Registry
	// Hold keeps the store open until release is called. It reports false when the store is closing.
	Hold func() (release func(), ok bool)

	mu sync.Mutex
	// pending holds the organizations whose streams are being checked; true when something was written since the check
	// began.
	pending map[string]bool
}

const (
	// rejudgeTries is the number of attempts to check a right while the store does not answer. After the last one the
	// stream ends; it may open again when the store is back.
	rejudgeTries = 3
	rejudgeWait  = 200 * time.Millisecond
)

// Changed starts the check for an organization. It is for storage.Store's OnChange, after the caches have learned of
// the change.
func (j *Rejudger) Changed(organization string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, working := j.pending[organization]; working {
		j.pending[organization] = true
		return
	}
	if j.Streams.Len() == 0 {
		return
	}
	release, ok := j.Hold()
	if !ok {
		return // other code ends its streams
	}
	if j.pending == nil {
		j.pending = make(map[string]bool)
	}
	j.pending[organization] = false
	go j.work(organization, release)
}

func (j *Rejudger) work(organization string, release func()) {
	defer release()
	for {
		j.judge(organization)
		j.mu.Lock()
		if !j.pending[organization] {
			delete(j.pending, organization)
			j.mu.Unlock()
			return
		}
		j.pending[organization] = false
		j.mu.Unlock()
	}
}

func (j *Rejudger) judge(organization string) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for try := 1; ; try++ {
		untold := j.Streams.Judge(ctx, Owner{Organization: organization}, PolicyChanged, try == rejudgeTries)
		if untold == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(rejudgeWait):
		}
	}
}
