package storehealth

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func away(reason string) error { return &storage.UnavailableError{Reason: reason} }

// store fails as a test says, and counts.
type store struct {
	mu    sync.Mutex
	err   error
	asked int
	slow  time.Duration
	told  []string
}

func (s *store) ping(ctx context.Context) error {
	s.mu.Lock()
	s.asked++
	err, slow := s.err, s.slow
	s.mu.Unlock()
	select {
	case <-time.After(slow):
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *store) tell(told Told) {
	s.told = append(s.told, fmt.Sprintf("%v %v %d", told.Err, told.Lasted, told.Refused))
}

// TestOneLook checks that the store is asked once in a second, for any number of callers, who need no token.
func TestOneLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{slow: 100 * time.Millisecond}
		w := New(s.ping, s.tell, time.Now)
		var asking sync.WaitGroup
		var refused atomic.Int64
		for range 400 {
			asking.Go(func() {
				for range 8 {
					if w.Look(t.Context()) != nil {
						refused.Add(1)
					}
					time.Sleep(LookEvery / 4) // of the bubble's clock
				}
			})
		}
		asking.Wait()
		if s.asked > 3 || refused.Load() > 0 {
			t.Errorf("asked %d times, %d were told that it fails", s.asked, refused.Load())
		}
		w.Close()
	})
}

// TestSilent checks that a silent store blocks no caller, and is not asked by each of them.
func TestSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{slow: time.Hour}
		w := New(s.ping, s.tell, time.Now)
		ctx, cancel := context.WithTimeout(t.Context(), lookTimeout/2)
		defer cancel()
		if err := w.Look(ctx); !errors.Is(err, storage.ErrUnavailable) {
			t.Error(err)
		}
		began := time.Now()
		if err := w.Look(t.Context()); err == nil || time.Since(began) > lookTimeout || s.asked != 1 {
			t.Errorf("%v after %v, asked %d times", err, time.Since(began), s.asked)
		}
		w.Close()
	})
}

// TestTold covers Z-F01: a failure is reported when it begins, when its cause changes, twice in a minute, and when it
// ends, however many requests are refused meanwhile.
func TestTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		w := New(s.ping, s.tell, time.Now)
		w.Start()
		time.Sleep(time.Minute)
		broken := away("the connection to the database broke")
		s.fail(away("the database cannot be reached"))
		for range 100 {
			w.Refused(broken)
		}
		time.Sleep(20*time.Second + LookEvery/2) // between two looks
		for silence := range 25 {                // the text has a count, and the cause is the same
			w.Refused(&storage.UnavailableError{Reason: fmt.Sprintf("not known for %ds", silence), Err: s.err})
			time.Sleep(time.Second)
		}
		s.fail(away("the database refuses the gateway's user or password"))
		time.Sleep(5 * time.Second)
		s.fail(nil)
		time.Sleep(time.Minute)
		w.Close()
		if diff := cmp.Diff([]string{
			broken.Error() + " 0s 0",
			"store unavailable: the database cannot be reached 1s 100",
			"store unavailable: the database cannot be reached 31s 11",
			"store unavailable: the database refuses the gateway's user or password 46s 14",
			"<nil> 50s 0",
		}, s.told); diff != "" {
			t.Error(diff)
		}
	})
}

// TestTwoWordsForIt checks that different error texts of reads and writes for one cause are not reported anew each
// time.
func TestTwoWordsForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		silent, unreachable := away("the database does not answer in time"), away("the database cannot be reached")
		s.fail(silent)
		w := New(s.ping, s.tell, time.Now)
		w.Start()
		for range 80 { // seconds
			w.Refused(silent)
			w.Refused(unreachable)
			time.Sleep(LookEvery)
		}
		s.fail(nil)
		time.Sleep(time.Minute)
		w.Close()
		if most := 2*3 + 1; len(s.told) > most { // each twice in a minute, and the end
			t.Errorf("told %d times: %q", len(s.told), s.told)
		}
	})
}

// TestFailsWhileItAnswers checks a store that fails requests and answers looks, as one with a full disk does. It must
// not be reported as working in between.
func TestFailsWhileItAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{}
		w := New(s.ping, s.tell, time.Now)
		w.Start()
		for range 20 {
			w.Refused(away("the database's disk is full"))
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		w.Close()
		if len(s.told) != 2 {
			t.Errorf("told %q", s.told)
		}
	})
}
