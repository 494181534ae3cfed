package toolpin

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/mcpparam"
)

// How often a server's pins are written, whatever its upstream does.
const (
	// burst writes may follow one another: a list comes in pages, and each is noted by itself.
	burst = 60
	// refill is when one more write may be made.
	refill = 5 * time.Second
	// cooling is how long a change stays noted although the pinned definition is listed again. An upstream that describes
	// a tool to each of its users in another way would have it written with every list.
	cooling = 5 * time.Minute
)

// Watch is what this process knows of a server's tools beyond the store: what was seen and could not be written, or is
// not yet. The zero value is ready. It is safe for concurrent use.
type Watch struct {
	// Writing is held by who writes: what several lists show at a time is noted once.
	Writing sync.Mutex

	mu sync.Mutex
	// latest are the definitions that were last seen, where the store has others.
	latest map[string]latest
	// full is when the bucket of writes will be full again.
	full time.Time

	queue   map[string]Noted // to be written by who works
	queued  int              // bytes of the queue's definitions
	working bool
}

// latest holds the parts of a definition that are kept.
type latest struct {
	hash    string
	mirrors *mcpparam.Tool
}

// see keeps what was last seen of a tool that the store has otherwise. It is called with the lock held.
func (w *Watch) see(name string, seen latest) {
	if _, known := w.latest[name]; !known && len(w.latest) >= MaxPins {
		return
	}
	if w.latest == nil {
		w.latest = make(map[string]latest)
	}
	w.latest[name] = seen
}

// Definition is the hash of what was last seen of a tool, "" when nothing was.
func (w *Watch) Definition(p *Pins, name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if seen, noted := w.latest[name]; noted {
		return seen.hash
	}
	return p.byName[name].seen
}

// Mirrors is which arguments of a tool travel in headers, by what was last seen of it.
func (w *Watch) Mirrors(p *Pins, name string) mcpparam.Tool {
	w.mu.Lock()
	defer w.mu.Unlock()
	tool := p.byName[name].mirrors
	if seen, noted := w.latest[name]; noted {
		tool = seen.mirrors
	}
	if tool == nil {
		return mcpparam.Tool{}
	}
	return *tool
}

// Withheld reports whether a tool is not what is pinned, as far as is known. One that was never listed is not withheld,
// unless there is no room to pin it.
func (w *Watch) Withheld(p *Pins, name string) bool {
	stored, known := p.byName[name]
	w.mu.Lock()
	defer w.mu.Unlock()
	last, noted := w.latest[name]
	switch {
	case !isPinnable(name):
		return true
	case !known:
		return noted || len(p.byName) >= MaxPins || len(w.latest) >= MaxPins
	}
	return stored.seen != stored.hash || noted && last.hash != stored.hash
}

// MayWrite takes the right to one write.
func (w *Watch) MayWrite(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	from := w.full
	if from.Before(now) {
		from = now
	}
	if from.Sub(now) > (burst-1)*refill {
		return false
	}
	w.full = from.Add(refill)
	return true
}

// Written tells that the store has what was seen.
func (w *Watch) Written(tools []Noted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range tools {
		if w.latest[t.Name].hash == t.Hash {
			delete(w.latest, t.Name)
		}
	}
}

// Enqueue leaves tools to be written later. It reports whether nobody is working, so that the caller has to begin with it.
// What exceeds the bounds of the queue is left out: the next list shows it again.
func (w *Watch) Enqueue(tools []Noted) (begin bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		w.queue = make(map[string]Noted)
	}
	for _, t := range tools {
		size := len(t.Definition) - len(w.queue[t.Name].Definition)
		if len(w.queue) >= MaxPins || w.queued+size > maxKept {
			continue
		}
		w.queued += size
		w.queue[t.Name] = t
	}
	begin = !w.working && len(w.queue) > 0
	w.working = w.working || begin
	return begin
}

// Next is what has to be written next. nil: nothing, and the work is over.
func (w *Watch) Next() []Noted {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		w.working = false
		return nil
	}
	due := slices.Collect(maps.Values(w.queue))
	w.queue, w.queued = nil, 0
	return due
}

// Stop is for who cannot work on: what is queued is given up.
func (w *Watch) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue, w.queued, w.working = nil, 0, false
}

// Idle reports whether nothing would be lost with the watch.
func (w *Watch) Idle(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.working && len(w.latest) == 0 && !w.full.After(now)
}
