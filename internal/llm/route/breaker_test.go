package route

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newClock() *clock { return &clock{time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

var k = Key{"org", "provider"}

func TestBreaker(t *testing.T) {
	c := newClock()
	b := NewBreakers(Options{Failures: 3, Pause: 10 * time.Second, MaxPause: 30 * time.Second, Now: c.now})
	enter := func(want bool) Pass {
		t.Helper()
		p, ok := b.Enter(k)
		if ok != want {
			t.Fatalf("let through: %v, want %v", ok, want)
		}
		return p
	}
	fail := func() { t.Helper(); enter(true).Done(Fails) }

	fail()
	fail()
	enter(true).Done(Works) // not in a row
	fail()
	fail()
	c.at = c.at.Add(2 * time.Minute) // forgotten
	fail()
	fail()
	enter(true).Done(Unknown)
	late := enter(true)
	fail()
	enter(false)
	late.Done(Works) // it began before
	enter(false)
	if _, ok := b.Enter(Key{"other", "provider"}); !ok {
		t.Error("another organization's account is left alone too")
	}

	// Half open lets one probe through at a time. Its failure doubles the pause, up to the largest.
	for _, pause := range []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second, 30 * time.Second} {
		c.at = c.at.Add(pause - 1)
		enter(false)
		c.at = c.at.Add(1)
		probe := enter(true)
		enter(false)
		probe.Done(Unknown)
		probe = enter(true)
		probe.Done(Fails)
		enter(false)
	}
	c.at = c.at.Add(30 * time.Second)
	lost := enter(true)
	enter(false)
	c.at = c.at.Add(probeFor)
	enter(true).Done(Works)
	lost.Done(Fails) // the result of an expired probe
	enter(true).Done(Works)
	if len(b.failing) != 0 {
		t.Errorf("%d are remembered as failing", len(b.failing))
	}
	(Pass{}).Done(Fails)
}

func TestBreakersAreBounded(t *testing.T) {
	c := newClock()
	b := NewBreakers(Options{Most: 10, Failures: 1, Now: c.now})
	for i := range 100 {
		p, _ := b.Enter(Key{"org", fmt.Sprint(i)})
		p.Done(Fails)
	}
	if len(b.failing) != 10 {
		t.Errorf("%d are remembered", len(b.failing))
	}
	c.at = c.at.Add(time.Hour)
	p, _ := b.Enter(k)
	p.Done(Fails)
	if _, ok := b.Enter(k); ok || len(b.failing) != 1 {
		t.Errorf("let through: %v, %d are remembered", ok, len(b.failing))
	}
}

// TestBreakerNeverStaysShut checks that some time after any events a call gets through, and that a working one closes
// the breaker for all.
func TestBreakerNeverStaysShut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		b := NewBreakers(Options{Now: c.now})
		var open []Pass
		for _, step := range rapid.SliceOf(rapid.IntRange(0, 5)).Draw(t, "steps") {
			switch {
			case step < 2:
				if p, ok := b.Enter(k); ok {
					open = append(open, p)
				}
			case step < 5 && len(open) > 0:
				open[0].Done(Result(step - 2))
				open = open[1:]
			default:
				c.at = c.at.Add(7 * time.Second)
			}
		}
		c.at = c.at.Add(time.Hour)
		p, ok := b.Enter(k)
		if !ok {
			t.Fatal("shut")
		}
		p.Done(Works)
		for range 3 {
			if _, ok := b.Enter(k); !ok {
				t.Fatal("shut after it worked")
			}
		}
	})
}

func BenchmarkEnter(b *testing.B) {
	breakers := NewBreakers(Options{})
	for b.Loop() {
		p, _ := breakers.Enter(k)
		p.Done(Works)
	}
}
