// Package overload tells when the process is short of memory, so that it takes on less: new work is refused while there
// is room to finish what runs.
package overload

import (
	"sync"
	"sync/atomic"
	"time"
)

// Level is how short memory is.
type Level int32

// Levels, each with what is refused at it.
const (
	// Calm: nothing.
	Calm Level = iota
	// High, from 85 % of the limit: what would stay or weigh much.
	High
	// Critical, from 95 % of the limit: all new work.
	Critical
)

func (l Level) String() string {
	return [...]string{Calm: "calm", High: "high", Critical: "critical"}[l]
}

const (
	highPercent     = 85
	criticalPercent = 95
	// sampleEvery is how long a figure is good for.
	sampleEvery = 250 * time.Millisecond
	// collectEvery is how often garbage is collected at most before something is refused: while it is, little is allocated, and
	// no collection would find out that memory is free again.
	collectEvery = time.Second
	// collectShare: of so many parts of the time one at most goes into that. A collection of gigabytes takes seconds.
	collectShare = 10
)

// Memory is where the figures come from.
type Memory struct {
	// Limit is in bytes; math.MaxInt64 is none.
	Limit int64
	// Used is how much memory would be left after a collection, in bytes.
	Used func() int64
	// Collect collects garbage.
	Collect func()
}

// Meter samples the use of memory when it is asked, and has no goroutine. The nil Meter is always calm.
type Meter struct {
	memory Memory
	now    func() time.Time
	onStep func(from, to Level, used int64)

	level    atomic.Int32
	sampled  atomic.Pointer[time.Time]
	used     atomic.Int64 // when it was sampled
	promised atomic.Int64 // to bodies that were admitted

	mu          sync.Mutex // held while sampling
	collectNext time.Time  // not before
}

// New makes a meter. onStep is told of every change of the level; it may be nil.
func New(memory Memory, now func() time.Time, onStep func(from, to Level, used int64)) *Meter {
	if onStep == nil {
		onStep = func(Level, Level, int64) {}
	}
	return &Meter{memory: memory, now: now, onStep: onStep}
}

// Level is how short memory is, as of a quarter of a second ago at most. Callers that come while one of them samples get
// the level of before.
func (m *Meter) Level() Level {
	if m == nil {
		return Calm
	}
	now := m.now()
	if at := m.sampled.Load(); at != nil && now.Sub(*at) < sampleEvery || !m.mu.TryLock() {
		return Level(m.level.Load())
	}
	defer m.mu.Unlock()
	used := m.memory.Used()
	if m.of(used) != Calm && m.collect(now) {
		used = m.memory.Used()
	}
	return m.keep(now, used)
}

// collect collects garbage, unless that was done lately, which it reports.
func (m *Meter) collect(now time.Time) bool {
	if now.Before(m.collectNext) {
		return false
	}
	m.memory.Collect()
	m.collectNext = now.Add(max(collectEvery, collectShare*m.now().Sub(now)))
	return true
}

// keep keeps a sample.
func (m *Meter) keep(now time.Time, used int64) Level {
	level := m.of(used)
	if before := Level(m.level.Swap(int32(level))); before != level {
		m.onStep(before, level, used)
	}
	m.used.Store(used)
	m.sampled.Store(&now)
	return level
}

// Admit reports whether there is room for so many bytes, and keeps it until done is called. What is used is known as of the
// last collection: bodies that come at once, or slowly, would all find the room that only one of them has.
func (m *Meter) Admit(size int64) (done func(), ok bool) {
	if m == nil {
		return func() {}, true
	}
	if m.Level() != Calm {
		return nil, false
	}
	if !m.promise(size) && (!m.look(size) || !m.promise(size)) {
		return nil, false
	}
	return sync.OnceFunc(func() { m.promised.Add(-size) }), true
}

func (m *Meter) promise(size int64) bool {
	if m.of(m.promised.Add(size)+m.used.Load()) == Calm {
		return true
	}
	m.promised.Add(-size)
	return false
}

// look collects and samples, and reports whether it did. It does not where what was promised leaves no room anyway.
func (m *Meter) look(size int64) bool {
	if m.of(m.promised.Load()+size) != Calm || !m.mu.TryLock() {
		return false
	}
	defer m.mu.Unlock()
	now := m.now()
	if !m.collect(now) {
		return false
	}
	m.keep(now, m.memory.Used())
	return true
}

func (m *Meter) of(used int64) Level {
	switch percent := float64(used) / float64(m.memory.Limit) * 100; {
	case percent >= criticalPercent:
		return Critical
	case percent >= highPercent:
		return High
	}
	return Calm
}
