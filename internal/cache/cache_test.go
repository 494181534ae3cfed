package cache

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()) }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

func newCache(t testing.TB, opts Options[string]) (*Cache[string], *Epochs) {
	t.Helper()
	if opts.Entries == 0 {
		opts.Entries = 1000
	}
	epochs := &Epochs{}
	c, err := New(epochs, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, epochs
}

// get asks for key and reports the value and whether it had to be loaded.
func get(t *testing.T, c *Cache[string], key Key, value string) (got string, loaded bool) {
	t.Helper()
	got, err := c.Get(t.Context(), key, func(context.Context) (string, error) { loaded = true; return value, nil })
	if err != nil {
		t.Fatal(err)
	}
	c.values.Wait() // ristretto stores in the background
	return got, loaded
}

func TestGetKeepsUntilBump(t *testing.T) {
	c, epochs := newCache(t, Options[string]{})
	mine, other := NewKey("o1", "k"), NewKey("o2", "k")
	get(t, c, mine, "1")
	get(t, c, other, "2")
	if got, loaded := get(t, c, mine, "x"); got != "1" || loaded {
		t.Errorf("second Get = %q, loaded %v", got, loaded)
	}
	epochs.Bump("o1")
	if got, loaded := get(t, c, mine, "3"); got != "3" || !loaded {
		t.Errorf("after Bump: %q, loaded %v", got, loaded)
	}
	if got, loaded := get(t, c, other, "x"); got != "2" || loaded {
		t.Errorf("other organization after Bump: %q, loaded %v", got, loaded)
	}
	epochs.Bump("")
	if _, loaded := get(t, c, other, "4"); !loaded {
		t.Error("served from before a Bump of all")
	}
	if got, loaded := get(t, c, other, "x"); got != "4" || loaded {
		t.Errorf("replaced value: %q, loaded %v", got, loaded)
	}
}

func TestKeysDoNotRunTogether(t *testing.T) {
	keys := []Key{
		NewKey("o", "ab", "c"), NewKey("o", "a", "bc"), NewKey("o", "abc"), NewKey("oa", "bc"),
		NewKey("o", "abc", ""), NewKey("o"), NewKey("", "o"), NewKey("o", ""),
	}
	seen := map[string]int{}
	for i, k := range keys {
		if j, ok := seen[k.full]; ok {
			t.Errorf("keys %d and %d are the same", i, j)
		}
		seen[k.full] = i
	}
}

func TestCollisionIsAMiss(t *testing.T) {
	c, epochs := newCache(t, Options[string]{})
	victim := NewKey("o1", "k")
	// A collision of hashes has this effect: another key's entry is under this key.
	c.values.Set(victim.full, entry[string]{key: NewKey("o2", "k").full, epoch: epochs.Current("o1"), value: "theirs"}, 1)
	c.values.Wait()
	if got, loaded := get(t, c, victim, "mine"); got != "mine" || !loaded {
		t.Errorf("Get = %q, loaded %v", got, loaded)
	}
}

func TestExpiry(t *testing.T) {
	var clk clock
	clk.advance(time.Hour)
	end := clk.now().Add(30 * time.Second)
	c, _ := newCache(t, Options[string]{TTL: time.Minute, Now: clk.now, Expires: func(v string) time.Time {
		if v == "short" {
			return end
		}
		return time.Time{}
	}})
	short, long := NewKey("o", "short"), NewKey("o", "long")
	get(t, c, short, "short")
	get(t, c, long, "long")
	clk.advance(30*time.Second - 1)
	if _, loaded := get(t, c, short, "short"); loaded {
		t.Error("gone before it expired")
	}
	clk.advance(1)
	if _, loaded := get(t, c, short, "short"); !loaded {
		t.Error("served when it expired")
	}
	if _, loaded := get(t, c, short, "short"); !loaded {
		t.Error("an expired value was kept")
	}
	if _, loaded := get(t, c, long, "long"); loaded {
		t.Error("gone before its TTL")
	}
	clk.advance(30 * time.Second)
	if _, loaded := get(t, c, long, "long"); !loaded {
		t.Error("served after its TTL")
	}
}

func TestErrorsAreNotKept(t *testing.T) {
	c, _ := newCache(t, Options[string]{})
	boom := errors.New("boom")
	if _, err := c.Get(t.Context(), NewKey("o", "k"), func(context.Context) (string, error) { return "", boom }); !errors.Is(err, boom) {
		t.Fatal(err)
	}
	if got, loaded := get(t, c, NewKey("o", "k"), "v"); got != "v" || !loaded {
		t.Errorf("Get = %q, loaded %v", got, loaded)
	}
}

func TestOneLoadForAll(t *testing.T) {
	c, _ := newCache(t, Options[string]{})
	key := NewKey("o", "k")
	var loads atomic.Int32
	release := make(chan struct{})
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			v, err := c.Get(t.Context(), key, func(context.Context) (string, error) {
				loads.Add(1)
				<-release
				return "v", nil
			})
			if v != "v" || err != nil {
				t.Errorf("Get = %q, %v", v, err)
			}
		})
	}
	waitFor(t, func() bool { return waiting(c) == 100 })
	close(release)
	wg.Wait()
	if n := loads.Load(); n != 1 {
		t.Errorf("%d loads", n)
	}
}

// waiting counts all callers that wait for a load.
func waiting(c *Cache[string]) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, f := range c.flights {
		n += f.waiters
	}
	return n
}

func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !cond(); {
		if time.Now().After(deadline) {
			t.Fatal("did not come about")
		}
		runtime.Gosched()
	}
}

func TestWaiterLeaves(t *testing.T) {
	c, _ := newCache(t, Options[string]{})
	key := NewKey("o", "k")
	release := make(chan struct{})
	load := func(ctx context.Context) (string, error) {
		select {
		case <-release:
			return "v", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	// The first caller, whose request began the load, leaves; the second must still get its answer.
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := c.Get(ctx, key, load); !errors.Is(err, context.Canceled) {
			t.Errorf("first: %v", err)
		}
	})
	waitFor(t, func() bool { return waiting(c) == 1 })
	wg.Go(func() {
		if v, err := c.Get(t.Context(), key, load); v != "v" || err != nil {
			t.Errorf("second: %q, %v", v, err)
		}
	})
	waitFor(t, func() bool { return waiting(c) == 2 })
	cancel()
	waitFor(t, func() bool { return waiting(c) == 1 })
	close(release)
	wg.Wait()
}

func TestLastWaiterEndsTheLoad(t *testing.T) {
	c, _ := newCache(t, Options[string]{})
	ctx, cancel := context.WithCancel(t.Context())
	started, ended := make(chan struct{}), make(chan struct{})
	go func() { <-started; cancel() }()
	_, err := c.Get(ctx, NewKey("o", "k"), func(ctx context.Context) (string, error) {
		close(started)
		<-ctx.Done()
		close(ended)
		return "", ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	<-ended
	if got, loaded := get(t, c, NewKey("o", "k"), "v"); got != "v" || !loaded {
		t.Errorf("a newcomer joined the ended load: %q, %v", got, loaded)
	}
}

func TestBumpDuringLoad(t *testing.T) {
	c, epochs := newCache(t, Options[string]{})
	key := NewKey("o", "k")
	started, release := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		v, err := c.Get(t.Context(), key, func(context.Context) (string, error) {
			close(started)
			<-release
			return "old", nil
		})
		if v != "old" || err != nil {
			t.Errorf("early caller: %q, %v", v, err)
		}
	})
	<-started
	epochs.Bump("o")
	// The old load is still under way; a new caller must not wait for it.
	if got, loaded := get(t, c, key, "new"); got != "new" || !loaded {
		t.Errorf("late caller: %q, loaded %v", got, loaded)
	}
	close(release)
	wg.Wait()
	c.values.Wait()
	if got, loaded := get(t, c, key, "newer"); got != "new" || loaded {
		t.Errorf("the late answer of an old load replaced a newer one: %q, loaded %v", got, loaded)
	}
}

func TestPanicReachesTheCaller(t *testing.T) {
	c, _ := newCache(t, Options[string]{})
	func() {
		defer func() {
			if r := recover(); r != "boom" {
				t.Errorf("recovered %v", r)
			}
		}()
		_, _ = c.Get(t.Context(), NewKey("o", "k"), func(context.Context) (string, error) { panic("boom") })
	}()
	if got, _ := get(t, c, NewKey("o", "k"), "v"); got != "v" {
		t.Errorf("Get = %q", got)
	}
}

func TestCostBound(t *testing.T) {
	c, _ := newCache(t, Options[string]{Entries: 100, MaxCost: 1000, Cost: func(s string) int64 { return int64(len(s)) }})
	value := string(make([]byte, 100))
	for i := range 200 {
		get(t, c, NewKey("o", strconv.Itoa(i)), value)
	}
	keptNow := 0
	for i := range 200 {
		if _, ok, _ := c.kept(NewKey("o", strconv.Itoa(i)), c.epochs.Current("o"), false); ok {
			keptNow++
		}
	}
	if keptNow > 10 || keptNow == 0 {
		t.Errorf("%d values of cost 100 kept in 1000", keptNow)
	}
}

func TestClose(t *testing.T) {
	c, _ := newCache(t, Options[string]{})
	started := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := c.Get(t.Context(), NewKey("o", "k"), func(ctx context.Context) (string, error) {
			close(started)
			<-ctx.Done()
			return "", context.Cause(ctx)
		})
		if !errors.Is(err, ErrClosed) {
			t.Errorf("Get = %v", err)
		}
	})
	<-started
	for range 8 {
		wg.Go(func() {
			for i := range 1000 {
				_, err := c.Get(t.Context(), NewKey("o", strconv.Itoa(i)), func(context.Context) (string, error) { return "v", nil })
				if err != nil && !errors.Is(err, ErrClosed) {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(c.Close)
	c.Close()
	wg.Wait()
	if _, err := c.Get(t.Context(), NewKey("o", "k"), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestNeverOlderThanTheLastWrite checks for any interleaving that a caller never sees a value older than the last write
// that was over before it asked.
func TestNeverOlderThanTheLastWrite(t *testing.T) {
	c, epochs := newCache(t, Options[string]{})
	key := NewKey("o", "k")
	var fact, answered atomic.Int64
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(done)
		for i := int64(1); i <= 5000; i++ {
			fact.Store(i)
			epochs.Bump("o")
			answered.Store(i)
		}
	})
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				floor := answered.Load()
				v, err := c.Get(t.Context(), key, func(context.Context) (string, error) { return strconv.FormatInt(fact.Load(), 10), nil })
				if err != nil {
					t.Error(err)
					return
				}
				if got, _ := strconv.ParseInt(v, 10, 64); got < floor {
					t.Errorf("got %d, written before: %d", got, floor)
					return
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkHit(b *testing.B) {
	c, _ := newCache(b, Options[string]{})
	load := func(context.Context) (string, error) { return "v", nil }
	_, _ = c.Get(b.Context(), NewKey("o", "k"), load)
	c.values.Wait()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = c.Get(b.Context(), NewKey("018f3c2e-0000-7000-8000-000000000001", "018f3c2e-0000-7000-8000-000000000002", "k"), load)
	}
}

// BenchmarkRecent does the same as BenchmarkHit without a key in memory.
func BenchmarkRecent(b *testing.B) {
	c, _ := newCache(b, Options[string]{})
	const organization, user = "018f3c2e-0000-7000-8000-000000000001", "018f3c2e-0000-7000-8000-000000000002"
	fields := []string{user, "k"}
	_, _ = c.Get(b.Context(), NewKey(organization, fields...), func(context.Context) (string, error) { return "v", nil })
	c.values.Wait()
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = c.Recent(now, organization, fields[0], fields[1])
	}
}

// TestGetAlone checks that a value loaded on the caller's goroutine, under its context, is cached like others, and that
// an error is not.
func TestGetAlone(t *testing.T) {
	c, epochs := newCache(t, Options[string]{})
	key, wrong := NewKey("o", "k"), errors.New("wrong")
	type mark struct{}
	ctx := context.WithValue(t.Context(), mark{}, true)
	if v, err := c.GetAlone(ctx, key, func(context.Context) (string, error) { return "half", wrong }); v != "" || !errors.Is(err, wrong) {
		t.Errorf("%q, %v", v, err)
	}
	for _, want := range []string{"1", "2"} {
		v, err := c.GetAlone(ctx, key, func(ctx context.Context) (string, error) {
			if ctx.Value(mark{}) == nil {
				t.Error("another context")
			}
			return want, nil
		})
		if v != want || err != nil {
			t.Errorf("%q, %v instead of %q", v, err, want)
		}
		c.values.Wait()
		if got, loaded := get(t, c, key, "x"); got != want || loaded {
			t.Errorf("not kept: %q", got)
		}
		epochs.Bump("o")
	}
	c.Close()
	if _, err := c.GetAlone(ctx, key, func(context.Context) (string, error) { return "3", nil }); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// TestRecent checks that a value requested often enough to be found without ristretto ends like every other value.
func TestRecent(t *testing.T) {
	var clk clock
	clk.advance(time.Hour)
	c, epochs := newCache(t, Options[string]{TTL: time.Minute, Now: clk.now})
	key := NewKey("o", "k")
	warm := func(value string) {
		t.Helper()
		if got, loaded := get(t, c, key, value); got != value || !loaded {
			t.Fatalf("%q, loaded %v", got, loaded)
		}
		for range 50 * rareness {
			if got, loaded := get(t, c, key, "x"); got != value || loaded {
				t.Fatalf("%q, loaded %v", got, loaded)
			}
		}
	}
	warm("1")
	epochs.Bump("o")
	warm("2")
	clk.advance(time.Minute)
	warm("3")
	// The entry of another key in this place must not be used.
	theirs := entry[string]{key: NewKey("o2", "k").full, epoch: epochs.Current("o"), value: "theirs"}
	for i := range c.recent {
		c.recent[i].Store(&theirs)
	}
	if got, loaded := get(t, c, key, "x"); got != "3" || loaded {
		t.Errorf("%q, loaded %v", got, loaded)
	}
}

// TestRecentWithoutKey checks that Recent returns the value of Get or nothing, and never an ended value.
func TestRecentWithoutKey(t *testing.T) {
	var clk clock
	clk.advance(time.Hour)
	c, epochs := newCache(t, Options[string]{TTL: time.Minute, Now: clk.now})
	long := strings.Repeat("x", 2*roomForKeys)
	for _, fields := range [][]string{{"k"}, {"k", ""}, {"", "k"}, {long}} {
		key := NewKey("o", fields...)
		found := func(organization string, fields ...string) (value string, ok bool) {
			for range 50 * rareness { // two keys may share a place
				if value, ok = c.Recent(clk.now(), organization, fields...); ok {
					return value, ok
				}
			}
			return "", false
		}
		warm := func(value string) {
			t.Helper()
			if got, loaded := get(t, c, key, value); got != value || !loaded {
				t.Fatalf("%q, loaded %v", got, loaded)
			}
			c.values.Wait()
			if got, ok := found("o", fields...); got != value || !ok {
				t.Errorf("%q: %q, %v", fields, got, ok)
			}
		}
		if got, ok := found("o", fields...); ok {
			t.Errorf("%q: %q of nothing", fields, got)
		}
		warm("1")
		if got, ok := found("o2", fields...); ok {
			t.Errorf("another organization gets %q", got)
		}
		if got, ok := found("o", append(fields, "more")...); ok {
			t.Errorf("another key gets %q", got)
		}
		epochs.Bump("o")
		if got, ok := found("o", fields...); ok {
			t.Errorf("%q is of another epoch", got)
		}
		warm("2")
		epochs.Bump("")
		if got, ok := found("o", fields...); ok {
			t.Errorf("%q is of another epoch of all", got)
		}
		warm("3")
		clk.advance(time.Minute)
		if got, ok := found("o", fields...); ok {
			t.Errorf("%q is over", got)
		}
		warm("4")
	}
	c.Close()
	if _, ok := c.Recent(clk.now(), "o", long); ok {
		t.Error("found in a closed cache")
	}
}

// TestRecentAllocatesNothing checks that Recent does not allocate, except in the rare look-ups.
func TestRecentAllocatesNothing(t *testing.T) {
	c, _ := newCache(t, Options[string]{})
	organization, fields := "018f3c2e-0000-7000-8000-000000000001", []string{"018f3c2e-0000-7000-8000-000000000002", "018f3c2e-0000-7000-8000-000000000003"}
	get(t, c, NewKey(organization, fields...), "v")
	c.values.Wait()
	now := time.Now()
	if n := testing.AllocsPerRun(1000, func() { c.Recent(now, organization, fields[0], fields[1]) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestHistory checks that an organization's history changes with its own epochs, and with those of all.
func TestHistory(t *testing.T) {
	var e Epochs
	h := e.Of("o")
	for _, bumped := range []string{"o", "", "o2"} {
		before := h.Current()
		e.Bump(bumped)
		if h.Current() != e.Current("o") || (h.Current() == before) != (bumped == "o2") {
			t.Errorf("after a bump of %q: %v, was %v", bumped, h.Current(), before)
		}
	}
}
