package route

import (
	"sync"
	"time"
)

// Key names an organization's account with a provider: a provider that refuses one organization need not refuse
// another.
type Key struct{ Organization, Provider string }

// Result is the outcome of a call to a provider, as far as it says something about the provider.
type Result uint8

// Results of calls.
const (
	Unknown Result = iota // says nothing: the client went away, the provider was busy
	Works                 // it answered, even if the answer was that the request is wrong
	Fails                 // it could not be reached, was silent for too long, broke off or answered with its own fault
)

// Options are the figures of Breakers. A zero member takes its default.
type Options struct {
	// Failures is the number of failures in a row, each within Memory of the one before, after which a provider is
	// paused. Default: 5.
	Failures int
	// Memory is the time for which a failure counts. Default: 1 min.
	Memory time.Duration
	// Pause is the length of a provider's first pause. Each failed probe doubles it, up to MaxPause. Defaults: 5 s, 1
	// min.
	Pause, MaxPause time.Duration
	// Most bounds the number of failing providers that are remembered; others are assumed to work. Default: 10,000.
	Most int
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	or := func(d *time.Duration, standard time.Duration) {
		if *d <= 0 {
			*d = standard
		}
	}
	or(&o.Memory, time.Minute)
	or(&o.Pause, 5*time.Second)
	or(&o.MaxPause, time.Minute)
	if o.Failures <= 0 {
		o.Failures = 5
	}
	if o.Most <= 0 {
		o.Most = 10_000
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Breakers holds the circuit breakers of providers. After some failures in a row a provider is paused. The first call
// after the pause is a probe, and no other call passes until its outcome is known. Safe for concurrent use.
type Breakers struct {
	options Options

	mu      sync.Mutex
	failing map[Key]*failing // a working provider has no entry
}

type failing struct {
	failures int
	last     time.Time     // of a failure
	until    time.Time     // end of the pause; zero: calls pass
	pause    time.Duration // the present one
	probe    time.Time     // start of the probe under way; zero: none is
}

// NewBreakers makes the breakers of a process.
func NewBreakers(o Options) *Breakers {
	return &Breakers{options: o.withDefaults(), failing: make(map[Key]*failing)}
}

// Pass is a call that was let through. It must be ended with Done, once.
type Pass struct {
	breakers *Breakers
	key      Key
	probe    bool
}

// Paused reports whether a provider gets no calls at present, but for probes.
func (b *Breakers) Paused(k Key) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.failing[k]
	return f != nil && !f.until.IsZero()
}

// Enter lets a call through to a provider, or reports that the provider is paused.
func (b *Breakers) Enter(k Key) (Pass, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	pass := Pass{breakers: b, key: k}
	f := b.failing[k]
	if f == nil || f.until.IsZero() {
		return pass, true
	}
	now := b.options.Now()
	// A probe that was never ended does not keep a provider out for ever.
	if now.Before(f.until) || (!f.probe.IsZero() && now.Sub(f.probe) < probeFor) {
		return Pass{}, false
	}
	f.probe, pass.probe = now, true
	return pass, true
}

// probeFor is the time for which a probe is waited for. The answer of a model may take minutes to begin.
const probeFor = 10 * time.Minute

// Done records the outcome of the call.
func (p Pass) Done(result Result) {
	if p.breakers == nil {
		return
	}
	b := p.breakers
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.failing[p.key]
	switch {
	case p.probe:
		b.probed(p.key, f, result)
	case f != nil && !f.until.IsZero():
		// The call began before the pause, and says nothing about now.
	case result == Works && f != nil:
		delete(b.failing, p.key)
	case result == Fails:
		b.failed(p.key, f)
	}
}

func (b *Breakers) probed(k Key, f *failing, result Result) {
	if f == nil {
		return
	}
	f.probe = time.Time{}
	switch now := b.options.Now(); result {
	case Works:
		delete(b.failing, k)
	case Fails:
		f.pause = min(2*f.pause, b.options.MaxPause)
		f.until, f.last = now.Add(f.pause), now
	case Unknown: // the next call is the probe
	}
}

func (b *Breakers) failed(k Key, f *failing) {
	now := b.options.Now()
	if f == nil {
		if len(b.failing) >= b.options.Most {
			b.forget(now)
		}
		if len(b.failing) >= b.options.Most {
			return
		}
		f = new(failing)
		b.failing[k] = f
	}
	if now.Sub(f.last) > b.options.Memory {
		f.failures = 0
	}
	f.failures++
	f.last = now
	if f.failures >= b.options.Failures {
		f.pause = b.options.Pause
		f.until = now.Add(f.pause)
	}
}

// forget drops entries whose last failure is so old that nobody asks for them any more.
func (b *Breakers) forget(now time.Time) {
	for k, f := range b.failing {
		if now.Sub(f.last) > b.options.Memory+b.options.MaxPause {
			delete(b.failing, k)
		}
	}
}
