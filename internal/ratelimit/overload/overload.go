// Package overload detects when the process is short of memory, so that it accepts less work. New work is refused while
// there is still room to finish the running work.
package overload

import (
	"sync"
	"sync/atomic"
	"time"
)

// Level is the degree of memory shortage.
type Level int32

// Levels of memory shortage. Each comment says which work is refused at that level.
const (
	// Calm refuses nothing.
	Calm Level = iota
	// High, from 85 % of the limit, refuses work that would stay or take much memory.
	High
	// Critical, from 95 % of the limit, refuses all new work.
	Critical
)

func (l Level) String() string {
	return [...]string{Calm: "calm", High: "high", Critical: "critical"}[l]
}

const (
	highPercent     = 85
	criticalPercent = 95
	// sampleEvery is the time for which a sample is good.
	sampleEvery = 250 * time.Millisecond
	// collectEvery is the shortest time between two garbage collections before something is refused. They are needed
	// because little is allocated while work is refused, so that no other collection would find out that memory is free
	// again.
	collectEvery = time.Second
	// collectShare bounds the time for these collections to one part in so many. A collection of gigabytes takes
	// seconds.
	collectShare = 10
)

// Memory is the source of the figures.
type Memory struct {
	// Limit is in bytes; math.MaxInt64 means none.
	Limit int64
	// Used returns the memory in bytes that would remain after a collection.
	Used func() int64
	// Collect runs a garbage collection.
	Collect func()
}

// Meter samples the use of memory when it is asked, and has no goroutine. The nil Meter is always calm.
type Meter struct {
	memory Memory
	now    func() time.Time
	onStep func(from, to Level, used int64)

	level    atomic.Int32
	sampled  atomic.Pointer[time.Time]
	used     atomic.Int64 // at the time of the sample
	promised atomic.Int64 // to admitted bodies

	mu          sync.Mutex // held while sampling
	collectNext time.Time  // no collection before this time
}

// New makes a meter. onStep is called on every change of the level; it may be nil.
func New(memory Memory, now func() time.Time, onStep func(from, to Level, used int64)) *Meter {
	if onStep == nil {
		onStep = func(Level, Level, int64) {}
	}
	return &Meter{memory: memory, now: now, onStep: onStep}
}

// Level returns the level of memory shortage. It is at most a quarter of a second old. Callers that come while another
// one samples get the previous level.
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

// collect runs a garbage collection, unless one ran lately. It reports whether it ran one.
func (m *Meter) collect(now time.Time) bool {
	if now.Before(m.collectNext) {
		return false
	}
	m.memory.Collect()
	m.collectNext = now.Add(max(collectEvery, collectShare*m.now().Sub(now)))
	return true
}

// keep stores a sample.
func (m *Meter) keep(now time.Time, used int64) Level {
	level := m.of(used)
	if before := Level(m.level.Swap(int32(level))); before != level {
		m.onStep(before, level, used)
	}
	m.used.Store(used)
	m.sampled.Store(&now)
	return level
}

// Admit reports whether there is room for so many bytes, and reserves it until done is called. The reservation is
// needed because the figure is as old as the last collection: bodies that come at once, or slowly, would all find the
// room that is enough for only one of them.
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

// look collects and samples, and reports whether it did. It does neither where the reservations leave no room anyway.
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
