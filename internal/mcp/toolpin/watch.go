package toolpin

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/mcp/param"
)

// Bounds on the writes of a server's pins, whatever its upstream does.
const (
	// burst is the number of writes that may follow one another: a list comes in pages, and each page is recorded
	// separately.
	burst = 60
	// refill is the time after which one more write is allowed.
	refill = 5 * time.Second
	// cooling is the time for which a change stays recorded although the pinned definition is listed again. Otherwise
	// an upstream that describes a tool differently to each of its users would cause a write with every list.
	cooling = 5 * time.Minute
)

// Watch holds this process's knowledge of a server's tools beyond the store: definitions that were seen and could not
// be written, or are not written yet. The zero value is ready. It is safe for concurrent use.
type Watch struct {
	// Writing is held by a goroutine that writes, so that a change in several concurrent lists is recorded once.
	Writing sync.Mutex

	mu sync.Mutex
	// latest holds the last seen definitions that differ from the store's.
	latest map[string]latest
	// full is the time at which the bucket of writes will be full again.
	full time.Time

	queue   map[string]Noted // to be written by the background worker
	queued  int              // bytes of the definitions in queue
	working bool
}

// latest holds the parts of a definition that are kept.
type latest struct {
	hash     string
	mirrors  *param.Tool
	readOnly bool
}

// see records the last seen version of a tool that differs from the store's. The caller holds the lock.
func (w *Watch) see(p *Pins, name string, seen latest) {
	if _, noted := w.latest[name]; !noted && len(w.latest) >= MaxPins && !w.makeRoom(p, name) {
		return
	}
	if w.latest == nil {
		w.latest = make(map[string]latest)
	}
	w.latest[name] = seen
}

// makeRoom forgets a tool that is not pinned in favor of one that is, and reports whether it did. A change of a pinned
// tool must be known, whatever else the upstream lists. Tools without a pin are withheld while there is no room.
func (w *Watch) makeRoom(p *Pins, name string) bool {
	if _, pinned := p.byName[name]; !pinned {
		return false
	}
	for other := range w.latest {
		if _, pinned := p.byName[other]; !pinned {
			delete(w.latest, other)
			return true
		}
	}
	return false
}

// Definition returns the hash of the last seen version of a tool, "" when none was seen.
func (w *Watch) Definition(p *Pins, name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if seen, noted := w.latest[name]; noted {
		return seen.hash
	}
	return p.byName[name].seen
}

// Mirrors returns which arguments of a tool travel in headers, by its last seen version.
func (w *Watch) Mirrors(p *Pins, name string) param.Tool {
	w.mu.Lock()
	defer w.mu.Unlock()
	tool := p.byName[name].mirrors
	if seen, noted := w.latest[name]; noted {
		tool = seen.mirrors
	}
	if tool == nil {
		return param.Tool{}
	}
	return *tool
}

// ReadOnly reports whether a tool says of itself that it changes nothing: by its pin, and by its last seen version. A tool
// that was never seen says nothing.
func (w *Watch) ReadOnly(p *Pins, name string) bool {
	stored, known := p.byName[name]
	w.mu.Lock()
	defer w.mu.Unlock()
	last, noted := w.latest[name]
	return (known || noted) && (!known || stored.readOnly) && (!noted || last.readOnly)
}

// Withheld reports whether a tool is known to differ from its pin. A tool that was never listed is not withheld, unless
// there is no room to pin it.
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

// MayWrite reports whether one write is allowed, and counts it.
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

// Written records that the store has these tools.
func (w *Watch) Written(tools []Noted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range tools {
		if w.latest[t.Name].hash == t.Hash {
			delete(w.latest, t.Name)
		}
	}
}

// Enqueue queues tools to be written later. It reports whether there is no worker, so that the caller has to start one.
// Tools beyond the bounds of the queue are left out: the next list shows them again.
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

// Next returns the next tools to write. nil: there are none, and the worker is done.
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

// Stop ends the work of a worker that cannot continue: queued tools are dropped.
func (w *Watch) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue, w.queued, w.working = nil, 0, false
}

// Idle reports whether the watch can be dropped without loss.
func (w *Watch) Idle(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.working && len(w.latest) == 0 && !w.full.After(now)
}
