package overload

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// clock is a time that moves only when a test moves it.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func TestLevels(t *testing.T) {
	for _, test := range []struct {
		used, limit int64
		want        Level
	}{
		{0, 1000, Calm}, {849, 1000, Calm}, {850, 1000, High}, {949, 1000, High}, {950, 1000, Critical}, {5000, 1000, Critical},
		{1 << 60, math.MaxInt64, Calm}, {950 << 40, 1000 << 40, Critical}, {math.MaxInt64 / 2, 1000 << 40, Critical},
	} {
		m := New(Memory{Limit: test.limit, Used: func() int64 { return test.used }, Collect: func() {}}, time.Now, nil)
		if got := m.Level(); got != test.want {
			t.Errorf("%d of %d: %v, want %v", test.used, test.limit, got, test.want)
		}
	}
	if got := (*Meter)(nil).Level(); got != Calm {
		t.Errorf("without a meter: %v", got)
	}
}

// TestSamples checks that figures are read at most four times a second and that changes are reported once. Garbage is
// collected, at most once a second, before anything is refused.
func TestSamples(t *testing.T) {
	c := &clock{t: time.Unix(1_800_000_000, 0)}
	var used int64
	garbage := true
	samples, collections := 0, 0
	var steps []string
	m := New(Memory{Limit: 100, Used: func() int64 { samples++; return used }, Collect: func() {
		collections++
		if garbage {
			used = 10
		}
	}}, c.now, func(from, to Level, _ int64) { steps = append(steps, from.String()+" to "+to.String()) })
	want := func(level Level, reads, collected int) {
		t.Helper()
		if got := m.Level(); got != level || samples != reads || collections != collected {
			t.Fatalf("%v after %d samples and %d collections, want %v, %d, %d", got, samples, collections, level, reads, collected)
		}
	}
	want(Calm, 1, 0)
	used = 90
	c.move(sampleEvery - 1)
	want(Calm, 1, 0)
	c.move(1)
	want(Calm, 3, 1) // the memory was garbage
	used, garbage = 90, false
	c.move(sampleEvery)
	want(High, 4, 1)
	used = 99
	c.move(sampleEvery)
	want(Critical, 5, 1)
	garbage = true
	c.move(collectEvery)
	want(Calm, 7, 2)
	if diff := cmp.Diff([]string{"calm to high", "high to critical", "critical to calm"}, steps); diff != "" {
		t.Errorf("steps (-want +got)\n%s", diff)
	}
}

// TestAdmit checks that bodies count from their admission until done is called, whatever memory is in use by then.
func TestAdmit(t *testing.T) {
	c := &clock{t: time.Unix(1_800_000_000, 0)}
	used := int64(50)
	m := New(Memory{Limit: 100, Used: func() int64 { return used }, Collect: func() {}}, c.now, nil)
	admit := func(size int64, want bool) func() {
		t.Helper()
		done, ok := m.Admit(size)
		if ok != want {
			t.Fatalf("%d: %v", size, ok)
		}
		return done
	}
	first := admit(20, true)
	admit(15, false) // would be 85 %
	second := admit(14, true)
	admit(1, false)
	if m.Level() != Calm {
		t.Error("what was promised is no shortage yet")
	}
	first()
	first() // a second call has no effect
	third := admit(20, true)
	used = 86
	c.move(sampleEvery)
	second()
	third()
	admit(1, false) // there is a shortage, whatever was reserved
	used = 10
	c.move(sampleEvery)
	admit(74, true)
	if _, ok := (*Meter)(nil).Admit(1 << 60); !ok {
		t.Error("refused without a meter")
	}
}

// TestAdmitCollects checks that finished bodies make room as soon as a caller needs it, without a collection by the
// process itself.
func TestAdmitCollects(t *testing.T) {
	c := &clock{t: time.Unix(1_800_000_000, 0)}
	used, collections := int64(80), 0
	m := New(Memory{Limit: 100, Used: func() int64 { return used }, Collect: func() { collections++; used = 10 }}, c.now, nil)
	if _, ok := m.Admit(90); ok || collections > 0 {
		t.Errorf("more than there is at all: %v after %d collections", ok, collections)
	}
	if _, ok := m.Admit(20); !ok || collections != 1 {
		t.Errorf("beside garbage: %v after %d collections", ok, collections)
	}
	used = 80
	c.move(sampleEvery)
	if _, ok := m.Admit(20); ok || collections != 1 {
		t.Errorf("again: %v after %d collections", ok, collections)
	}
	c.move(collectEvery)
	if _, ok := m.Admit(20); !ok || collections != 2 {
		t.Errorf("later: %v after %d collections", ok, collections)
	}
}

// TestCollectsInProportion checks that after a long collection, the next one waits ten times as long.
func TestCollectsInProportion(t *testing.T) {
	c := &clock{t: time.Unix(1_800_000_000, 0)}
	collections := 0
	m := New(Memory{Limit: 100, Used: func() int64 { return 90 }, Collect: func() { collections++; c.move(2 * time.Second) }}, c.now, nil)
	m.Level()
	c.move(collectShare*2*time.Second - 2*time.Second - 1)
	if m.Level(); collections != 1 {
		t.Errorf("%d collections, want 1", collections)
	}
	c.move(sampleEvery)
	if m.Level(); collections != 2 {
		t.Errorf("%d collections, want 2", collections)
	}
}

// TestOneSamples checks that requests do not wait for the one that reads the figures.
func TestOneSamples(t *testing.T) {
	c := &clock{t: time.Unix(1_800_000_000, 0)}
	reading, release := make(chan struct{}), make(chan struct{})
	begun := sync.OnceFunc(func() { close(reading) })
	m := New(Memory{Limit: 100, Collect: func() {}, Used: func() int64 {
		begun()
		<-release
		return 90
	}}, c.now, nil)
	first := make(chan Level)
	go func() { first <- m.Level() }()
	<-reading
	if got := m.Level(); got != Calm {
		t.Errorf("meanwhile: %v", got)
	}
	close(release)
	if got := <-first; got != High {
		t.Errorf("the one that sampled: %v", got)
	}
	if got := m.Level(); got != High {
		t.Errorf("afterwards: %v", got)
	}
}

// TestProcess checks that live memory counts, that garbage does not, and that the collector has the same limit.
func TestProcess(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	if got := Process(0).Limit; got != before {
		t.Errorf("limit %d by default, want %d", got, before)
	}
	const limit, size = 4 << 30, 64 << 20
	memory := Process(limit)
	if memory.Limit != limit || debug.SetMemoryLimit(-1) != before {
		t.Fatal("a limit that nobody works under holds")
	}
	memory.Collect()
	empty := memory.Used()
	if got := debug.SetMemoryLimit(-1); got != limit {
		t.Errorf("the collector's limit is %d", got)
	}
	if empty <= 0 || empty > 1<<30 {
		t.Errorf("a test uses %d bytes", empty)
	}
	block := make([]byte, size)
	memory.Collect()
	if got := memory.Used() - empty; got < size*9/10 || got > size*11/10 {
		t.Errorf("%d bytes more with a block of %d", got, size)
	}
	runtime.KeepAlive(block)
	memory.Collect()
	if got := memory.Used() - empty; got > size/10 {
		t.Errorf("%d bytes more with garbage", got)
	}
	Process(0).Used()
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("the collector's limit is %d afterwards", got)
	}
}

func BenchmarkLevel(b *testing.B) {
	m := New(Process(1<<50), time.Now, nil)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	b.ReportAllocs()
	for b.Loop() {
		if m.Level() != Calm {
			b.Fatal("short of memory")
		}
	}
}

func BenchmarkUsed(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		used()
	}
}
