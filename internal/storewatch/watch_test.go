package storewatch

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

// store fails as it is told to, and counts.
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

// TestOneLook: however many ask, without a token, the store is asked once in a second.
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

// TestSilent: a store that does not answer keeps nobody, and is not asked by everybody.
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

// TestTold: Z-F01, a failure is told when it begins, when its cause is another, twice in a minute, and when it ends, however
// many requests are refused meanwhile.
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
		for silence := range 25 {                // counts, and is the same cause
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

// TestTwoWordsForIt: reads and writes that fail for one reason say so in words of their own, which is no news each time.
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

// TestFailsWhileItAnswers: a store that fails requests and answers looks, as one whose disk is full, is not called well in between.
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
