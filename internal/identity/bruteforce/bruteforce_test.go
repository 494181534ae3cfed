package bruteforce

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()) }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

func attempt(remote, prefix, credential string) Attempt {
	return Attempt{From: Address(remote), Prefix: prefix, Credential: sha256.Sum256([]byte(credential))}
}

// fail presents a wrong credential, as a caller does, and reports whether it was told that it is wrong.
func fail(g *Guesses, a Attempt) bool { return g.Wait(a) == 0 && g.Failed(a) == 0 }

func failures(g *Guesses, n int, remote string, prefix func(i int) string) (told int) {
	for i := range n {
		if fail(g, attempt(remote, prefix(i), fmt.Sprint(remote, i))) {
			told++
		}
	}
	return told
}

func each(i int) string { return fmt.Sprintf("dw-%05d", i) }
func token(int) string  { return "" }
func one(int) string    { return "dw-AAAAA" }
func peer(i int) string { return fmt.Sprintf("192.0.%d.%d:1", i/256, i%256) }

func TestAddress(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:1234": "192.0.2.1", "[::ffff:192.0.2.1]:1": "192.0.2.1", "[2001:db8:1:2:3:4:5:6]:1": "2001:db8:1:2::",
		"[2001:db8:1:2::]:2": "2001:db8:1:2::", "[2001:db8:1:3::1]:1": "2001:db8:1:3::", "[fe80::1%eth0]:1": "fe80::",
	} {
		if got := Address(remote); got != netip.MustParseAddr(want) {
			t.Errorf("T04 %s is counted as %s", remote, got)
		}
	}
	for _, remote := range []string{"", "@", "192.0.2.1", "/run/sock", "example.com:1"} {
		if got := Address(remote); got.IsValid() {
			t.Errorf("%q is %s", remote, got)
		}
	}
	g := New(nil)
	if g.Mark(Address("192.0.2.1:1")) != g.Mark(Address("192.0.2.1:2")) || g.Mark(Address("192.0.2.1:1")) == g.Mark(Address("192.0.2.2:1")) || g.Mark(netip.Addr{}) == 0 {
		t.Error("marks")
	}
}

func TestT12AnAddressGuessesSoOften(t *testing.T) {
	for name, prefix := range map[string]func(int) string{"keys": each, "tokens": token} {
		var clk clock
		g := New(clk.now)
		if told := failures(g, 1000, "192.0.2.1:1", prefix); told != PerAddress {
			t.Errorf("%s: %d guesses", name, told)
		}
		if told := failures(g, 10, "[2001:db8::1]:1", prefix); told != 10 {
			t.Errorf("%s: another address is told %d", name, told)
		}
		if told := failures(g, 1000, "[2001:db8::2]:1", prefix); told != PerAddress-10 {
			t.Errorf("T04 %s: another address of the same /64 is told %d", name, told)
		}
		last := attempt("192.0.2.1:1", prefix(5000), "last")
		wait := g.Wait(last)
		if wait <= 0 || wait > 61*time.Second {
			t.Errorf("%s: wait %s", name, wait)
		}
		clk.advance(wait)
		if !fail(g, last) {
			t.Errorf("%s: refused after the wait", name)
		}
	}
}

func TestT12ARepeatedCredentialIsOneGuess(t *testing.T) {
	g := New(new(clock).now)
	told := 0
	for range 1000 { // a client that repeats its mistake
		if fail(g, attempt("192.0.2.1:1", "dw-AAAAA", "revoked")) {
			told++
		}
	}
	if told != PerCredential {
		t.Errorf("told %d times", told)
	}
	if told := failures(g, 1000, "192.0.2.1:1", each); told != PerAddress-1 {
		t.Errorf("%d more guesses", told)
	}
}

// TestT12NobodyIsLockedOutByOthers checks that knowing the beginning of a key is not enough to keep its holder out.
func TestT12NobodyIsLockedOutByOthers(t *testing.T) {
	g := New(new(clock).now)
	if told := failures(g, 1000, "192.0.2.1:1", one); told != PerPrefix {
		t.Errorf("%d guesses", told)
	}
	holder := attempt("198.51.100.1:1", one(0), "the key")
	if wait := g.Wait(holder); wait != 0 {
		t.Errorf("the key's holder waits %s", wait)
	}
	told := 0
	for i := range 500 { // each address has one guess that does not count against it
		told += failures(g, 10, peer(i), one)
	}
	if told != 500 {
		t.Errorf("500 addresses guessed %d times", told)
	}
	if wait := g.Wait(holder); wait != 0 {
		t.Errorf("the key's holder waits %s", wait)
	}
	if fail(g, attempt("198.51.100.1:1", one(0), "a typo")); g.Wait(holder) == 0 {
		t.Error("the beginning does not count against an address that guessed")
	}
}

func TestT12ConcurrentGuesses(t *testing.T) {
	g := New(new(clock).now)
	var told atomic.Int64
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 250 {
				if g.Failed(attempt("192.0.2.1:1", each(i), fmt.Sprint(worker, "/", i))) == 0 {
					told.Add(1)
				}
			}
		})
	}
	all.Wait()
	if told.Load() != PerAddress {
		t.Errorf("%d guesses", told.Load())
	}
}

func TestMemoryIsBounded(t *testing.T) {
	var clk clock
	g := New(clk.now)
	flood := func() {
		for i := range 2 * maxCounters {
			g.Failed(attempt(fmt.Sprintf("[2001:db8:%x:%x::1]:1", i>>16, i&0xffff), each(i), fmt.Sprint(i)))
		}
	}
	flood()
	if n := g.counters.Len(); n > maxCounters {
		t.Errorf("%d counters", n)
	}
	if wait := g.Wait(attempt("192.0.2.1:1", each(1), "good")); wait != 0 {
		t.Errorf("a newcomer waits %s", wait)
	}
	clk.advance(3 * time.Minute)
	if told := failures(g, 1000, "192.0.2.1:1", each); told != PerAddress {
		t.Errorf("after the flood: %d guesses", told)
	}
	if n := g.counters.Len(); n > 4*PerAddress {
		t.Errorf("%d counters are kept", n)
	}
}

// BenchmarkWait measures a credential that is new here, while there are no failures, and while there are some.
func BenchmarkWait(b *testing.B) {
	a := attempt("192.0.2.1:1", "dw-AAAAA", "x")
	for _, name := range []string{"quiet", "under attack"} {
		g := New(nil)
		if name != "quiet" {
			failures(g, 1000, "192.0.2.9:1", each)
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if g.Wait(a) != 0 {
					b.Fatal("waits")
				}
			}
		})
	}
}

func BenchmarkAddress(b *testing.B) {
	g := New(nil)
	for b.Loop() {
		g.Mark(Address("[2001:db8:1:2:3:4:5:6]:1234"))
	}
}
