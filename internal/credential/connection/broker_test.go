package connection

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"testing/synctest"
	"time"
)

// TestNew checks what a broker cannot be made without, and its defaults.
func TestNew(t *testing.T) {
	b := setup(t)
	full := func() Config {
		return Config{
			Store: b.store, Keyring: b.keyring, OAuth: b.oauth, Memory: b.Memory, CheckURL: func(*url.URL) error { return nil },
			PublicURL: gatewayURL + "/",
		}
	}
	for name, change := range map[string]func(c *Config){
		"no store":        func(c *Config) { c.Store = nil },
		"no keyring":      func(c *Config) { c.Keyring = nil },
		"no protocol":     func(c *Config) { c.OAuth = nil },
		"no memory":       func(c *Config) { c.Memory = nil },
		"no check":        func(c *Config) { c.CheckURL = nil },
		"no public URL":   func(c *Config) { c.PublicURL = "" },
		"a bad list":      func(c *Config) { c.ReturnURLs = []string{"*"} },
		"no http address": func(c *Config) { c.PublicURL = "gate.example.test" },
	} {
		c := full()
		change(&c)
		if br, err := New(c); err == nil || br != nil {
			t.Errorf("%s: there is a broker", name)
		}
	}
	br, err := New(full())
	if err != nil {
		t.Fatal(err)
	}
	defer br.Close()
	if br.app.Name != "durward" || br.app.RedirectURI != gatewayURL+CallbackPath || br.now().IsZero() {
		t.Errorf("%+v at %v", br.app, br.now())
	}
	br.count(Broken)
	br.log.Info("nowhere")
	c := full()
	c.ClientName, c.Now = "a gateway", b.clock.now
	named, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	defer named.Close()
	if named.app.Name != "a gateway" || !named.now().Equal(b.clock.now()) {
		t.Errorf("%+v at %v", named.app, named.now())
	}
}

// TestCloseWaits checks that Close waits for work, but not for ever. It tells the work that is left that it is over.
func TestCloseWaits(t *testing.T) {
	for name, lasts := range map[string]time.Duration{"short work": closeDeadline - time.Second, "long work": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &Broker{ending: make(chan struct{})}
				b.ctx, b.cancel = context.WithCancel(t.Context())
				began := time.Now()
				var stopped bool
				if !b.background(func() {
					ctx, cancel := b.apart(t.Context(), 2*time.Hour)
					defer cancel()
					select {
					case <-time.After(lasts):
					case <-ctx.Done():
						stopped = true
					}
				}) {
					t.Fatal("it does not run")
				}
				b.Close()
				if took := time.Since(began); took != min(lasts, closeDeadline) || stopped != (lasts > closeDeadline) {
					t.Errorf("closed after %v; the work was stopped: %v", took, stopped)
				}
				b.Close()
				if b.background(func() { t.Error("work runs in a closed broker") }) || b.begin() || b.ctx.Err() == nil {
					t.Error("it is open")
				}
			})
		})
	}
}

// TestApart checks that work goes on without its request, and ends with its deadline or its broker.
func TestApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Broker{ending: make(chan struct{})}
		b.ctx, b.cancel = context.WithCancel(t.Context())
		request, leave := context.WithCancel(t.Context())
		long, endLong := b.apart(request, time.Hour)
		defer endLong()
		short, endShort := b.apart(request, time.Second)
		defer endShort()
		leave()
		synctest.Wait()
		if long.Err() != nil {
			t.Error("it ends with its request")
		}
		ended, end := b.apart(request, time.Hour)
		if end(); ended.Err() == nil {
			t.Error("it does not end when it is over")
		}
		time.Sleep(time.Second) // of the bubble's clock
		synctest.Wait()
		if !errors.Is(short.Err(), context.DeadlineExceeded) || long.Err() != nil {
			t.Errorf("after a second: %v, %v", short.Err(), long.Err())
		}
		b.cancel()
		synctest.Wait()
		if long.Err() == nil {
			t.Error("it outlives its broker")
		}
	})
}

// TestKeyedLock checks that one holds a key's lock at a time, that other keys are free, and that nothing is kept of
// locks that nobody uses.
func TestKeyedLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k keyedLock
		unlock, err := k.lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		other, err := k.lock(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		other()
		left := errors.New("left")
		ctx, leave := context.WithCancelCause(t.Context())
		waiting := make(chan error)
		go func() { _, err := k.lock(ctx, "a"); waiting <- err }()
		got := make(chan func())
		go func() {
			next, err := k.lock(t.Context(), "a")
			if err != nil {
				t.Error(err)
			}
			got <- next
		}()
		synctest.Wait()
		if k.locks["a"].users != 3 || len(k.locks) != 1 {
			t.Errorf("%d use it, of %d locks", k.locks["a"].users, len(k.locks))
		}
		leave(left)
		if err := <-waiting; !errors.Is(err, left) {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		select {
		case <-got:
			t.Error("two hold it")
		default:
		}
		unlock()
		next := <-got
		if len(k.locks) != 1 {
			t.Error("a lock that is held is forgotten")
		}
		if next(); len(k.locks) != 0 {
			t.Errorf("%d locks are kept", len(k.locks))
		}
	})
}
