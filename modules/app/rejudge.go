package app

import (
	"context"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/mcp/streams"
)

// rejudge checks the right of an organization's open streams after a write in the organization: a stream that policies
// no longer grant ends within a second. It works in the background, because a write must not wait for it.
type rejudge struct {
	resources *resources
	streams   *streams.Registry

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

// changed starts the check for an organization. It is for storage.Store's OnChange, after the caches have learned of
// the change.
func (j *rejudge) changed(organization string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, working := j.pending[organization]; working {
		j.pending[organization] = true
		return
	}
	if j.streams.Len() == 0 || !j.resources.pin() {
		return // nothing is open, or the store is closing and other code ends its streams
	}
	if j.pending == nil {
		j.pending = make(map[string]bool)
	}
	j.pending[organization] = false
	go j.work(organization)
}

func (j *rejudge) work(organization string) {
	defer j.resources.unpin()
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

func (j *rejudge) judge(organization string) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for try := 1; ; try++ {
		untold := j.streams.Judge(ctx, streams.Owner{Organization: organization}, streams.PolicyChanged, try == rejudgeTries)
		if untold == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(rejudgeWait):
		}
	}
}
