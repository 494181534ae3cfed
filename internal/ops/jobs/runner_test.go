package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// kept is a store of jobs in memory, which several runners share.
type kept struct {
	mu      sync.Mutex
	jobs    map[string]storage.Job
	err     error
	revoked time.Time
}

func (k *kept) change(f func() error) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err != nil {
		return k.err
	}
	return f()
}

func (k *kept) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.err = err
}

func (k *kept) User(context.Context, string, string) (storage.User, error) {
	return storage.User{RevokedAt: k.revoked}, nil
}

func (k *kept) AddJob(_ context.Context, j storage.Job, _ int) error {
	return k.change(func() error { k.jobs[j.ID] = j; return nil })
}

func (k *kept) Job(_ context.Context, _, id string) (j storage.Job, err error) {
	err = k.change(func() error { j = k.jobs[id]; return nil })
	return j, err
}

func (k *kept) Jobs(context.Context, storage.JobFilter) ([]storage.Job, error) { return nil, nil }

func due(j *storage.Job, now time.Time) bool {
	return j.State == storage.JobQueued || j.State == storage.JobRunning && !j.LeaseUntil.After(now)
}

func (k *kept) DueJobs(_ context.Context, now time.Time, _, _ int) (found []storage.Job, err error) {
	err = k.change(func() error {
		for _, id := range slices.Sorted(maps.Keys(k.jobs)) {
			if j := k.jobs[id]; due(&j, now) {
				found = append(found, j)
			}
		}
		return nil
	})
	return found, err
}

func (k *kept) ClaimJob(_ context.Context, _, id, node string, running int, now, until time.Time) (j storage.Job, err error) {
	err = k.change(func() error {
		n := 0
		for _, other := range k.jobs {
			if other.State == storage.JobRunning && other.LeaseUntil.After(now) {
				n++
			}
		}
		j = k.jobs[id]
		switch {
		case !due(&j, now):
			return storage.ErrNotFound
		case n >= running:
			return storage.ErrTooManyJobs
		}
		j.State, j.Node, j.StartedAt, j.LeaseUntil = storage.JobRunning, node, now, until
		j.Attempts++
		k.jobs[id] = j
		return nil
	})
	return j, err
}

func (k *kept) present(j *storage.Job, f func(now *storage.Job)) error {
	return k.change(func() error {
		now := k.jobs[j.ID]
		if now.State != storage.JobRunning || now.Attempts != j.Attempts {
			return storage.ErrNotFound
		}
		f(&now)
		k.jobs[j.ID] = now
		return nil
	})
}

func (k *kept) BeatJob(_ context.Context, j storage.Job) error {
	return k.present(&j, func(now *storage.Job) { now.Done, now.Total, now.LeaseUntil = j.Done, j.Total, j.LeaseUntil })
}

func (k *kept) EndJob(_ context.Context, j storage.Job) error {
	return k.present(&j, func(now *storage.Job) {
		now.State, now.Done, now.Total, now.Result, now.Problem, now.EndedAt = j.State, j.Done, j.Total, j.Result, j.Problem, j.EndedAt
	})
}

func (k *kept) CancelJob(_ context.Context, _, id string, now time.Time) (j storage.Job, err error) {
	err = k.change(func() error {
		if j = k.jobs[id]; j.State.Over() {
			return storage.ErrConflict
		}
		j.State, j.EndedAt = storage.JobCancelled, now
		k.jobs[id] = j
		return nil
	})
	return j, err
}

func (k *kept) ForgetJobs(_ context.Context, over time.Time) error {
	return k.change(func() error {
		maps.DeleteFunc(k.jobs, func(_ string, j storage.Job) bool { return j.State.Over() && !j.EndedAt.After(over) })
		return nil
	})
}

// open is a vault without a lock.
type open struct{}

func (open) Seal(text []byte, _ seal.AD) ([]byte, error) {
	return append([]byte("sealed "), text...), nil
}

func (open) Open(sealed []byte, _ seal.AD) ([]byte, error) {
	text, ok := strings.CutPrefix(string(sealed), "sealed ")
	if !ok {
		return nil, errors.New("not sealed")
	}
	return []byte(text), nil
}

func (k *kept) runner(node string, work Work) *Runner {
	return New(Options{Store: k, Vault: open{}, Node: node, Now: time.Now, Log: slog.New(slog.DiscardHandler), Work: map[storage.JobKind]Work{storage.JobReplay: work}})
}

func (k *kept) wants(t *testing.T, id string, state storage.JobState) storage.Job {
	t.Helper()
	synctest.Wait()
	j, _ := k.Job(t.Context(), "o", id)
	if j.State != state {
		t.Fatalf("the job is %s, want %s: %+v", j.State, state, j)
	}
	return j
}

func add(t *testing.T, r *Runner) storage.Job {
	t.Helper()
	j, err := r.Add(t.Context(), storage.Job{OrganizationID: "o", UserID: "u", Kind: storage.JobReplay, Subject: "s"}, map[string]int{"n": 1})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// forever works until it is ended, and says how often it began.
func forever(begun *atomic.Int64) Work {
	return func(ctx context.Context, _ *storage.Job, _ []byte, tell func(done, total int64)) (any, error) {
		begun.Add(1)
		tell(1, 2)
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			work    Work
			state   storage.JobState
			problem string
		}{
			"done": {func(_ context.Context, j *storage.Job, input []byte, tell func(done, total int64)) (any, error) {
				tell(7, 7)
				return fmt.Sprint(string(input), j.Subject, j.Attempts), nil
			}, storage.JobDone, ""},
			"a problem": {func(context.Context, *storage.Job, []byte, func(done, total int64)) (any, error) {
				return nil, fmt.Errorf("x: %w", &Problem{"So it is."})
			}, storage.JobFailed, "So it is."},
			"a fault": {func(context.Context, *storage.Job, []byte, func(done, total int64)) (any, error) {
				return nil, errors.New("secret cause")
			}, storage.JobFailed, "The gateway failed at it; its log says why."},
			"too long": {func(context.Context, *storage.Job, []byte, func(done, total int64)) (any, error) {
				return strings.Repeat("x", MaxResult), nil
			}, storage.JobFailed, "Its result is longer than can be kept: ask for less at once."},
			"unknown": {nil, storage.JobFailed, "This version of the gateway does not know such jobs."},
		} {
			k := &kept{jobs: make(map[string]storage.Job)}
			r := k.runner("one", c.work)
			r.Start()
			r.Start()
			id := add(t, r).ID
			j := k.wants(t, id, c.state)
			if j.Problem != c.problem || c.state == storage.JobDone && (string(j.Result) != `"{\"n\":1}s1"` || j.Done != 7) || j.EndedAt.IsZero() {
				t.Errorf("%s: %+v", name, j)
			}
			time.Sleep(Kept + 2*sweepEvery)
			synctest.Wait()
			if len(k.jobs) != 0 {
				t.Errorf("%s: it stays for ever", name)
			}
			r.Close()
		}
	})
}

// TestTakenOver checks that a job goes on elsewhere when its node ends, orderly or not.
func TestTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kept{jobs: make(map[string]storage.Job)}
		var here, there atomic.Int64
		first := k.runner("one", forever(&here))
		first.Start()
		id := add(t, first).ID
		time.Sleep(2 * lease) // it beats
		if j := k.wants(t, id, storage.JobRunning); j.Node != "one" || j.Done != 1 || j.Attempts != 1 {
			t.Errorf("%+v", j)
		}
		first.Close()
		k.wants(t, id, storage.JobQueued)

		second := k.runner("two", forever(&there))
		second.Start()
		if j := k.wants(t, id, storage.JobRunning); j.Node != "two" || j.Attempts != 2 {
			t.Errorf("%+v", j)
		}
		// The second loses the store: it stops before another could begin.
		k.fail(storage.ErrUnavailable)
		time.Sleep(lease)
		synctest.Wait()
		if second.running() != 0 {
			t.Error("it goes on without a lease")
		}
		second.Close()
		k.fail(nil)
		j := k.wants(t, id, storage.JobRunning)
		third := k.runner("three", func(context.Context, *storage.Job, []byte, func(done, total int64)) (any, error) { return 1, nil })
		third.Start()
		defer third.Close()
		time.Sleep(time.Until(j.LeaseUntil) + lookEvery)
		if j := k.wants(t, id, storage.JobDone); j.Node != "three" || here.Load() != 1 || there.Load() != 1 {
			t.Errorf("%+v, begun %d and %d times", j, here.Load(), there.Load())
		}
	})
}

// TestPoison checks that a job that ends its node each time is given up.
func TestPoison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kept{jobs: make(map[string]storage.Job)}
		var begun atomic.Int64
		id := ""
		for i := 0; ; i++ {
			r := k.runner("one", forever(&begun))
			if i == 0 {
				id = add(t, r).ID
			}
			r.Start()
			synctest.Wait()
			r.Close()
			if j, _ := k.Job(t.Context(), "o", id); j.State == storage.JobFailed {
				if begun.Load() != maxAttempts || !strings.Contains(j.Problem, "begun 5 times") {
					t.Errorf("begun %d times: %s", begun.Load(), j.Problem)
				}
				return
			}
			if i > 2*maxAttempts {
				t.Fatal("it is begun for ever")
			}
		}
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kept{jobs: make(map[string]storage.Job)}
		var begun atomic.Int64
		runner, other := k.runner("one", forever(&begun)), k.runner("two", nil)
		runner.Start()
		defer runner.Close()
		var ids []string
		for range MaxRunning + 2 {
			ids = append(ids, add(t, runner).ID)
		}
		synctest.Wait()
		if begun.Load() != MaxRunning {
			t.Errorf("%d run at a time", begun.Load())
		}
		cancel := func(r *Runner, id string) {
			t.Helper()
			if j, err := r.Cancel(t.Context(), "o", id); err != nil || j.State != storage.JobCancelled {
				t.Errorf("%+v, %v", j, err)
			}
		}
		cancel(runner, ids[3]) // it waits
		cancel(runner, ids[0])
		synctest.Wait()
		if begun.Load() != MaxRunning+1 {
			t.Errorf("%d were begun: there is room at once", begun.Load())
		}
		cancel(other, ids[1]) // at another node
		time.Sleep(beatEvery)
		synctest.Wait()
		if n := runner.running(); n != 1 {
			t.Errorf("%d run", n)
		}
		if _, err := runner.Cancel(t.Context(), "o", ids[1]); !errors.Is(err, storage.ErrConflict) {
			t.Error(err)
		}
		for _, id := range []string{ids[0], ids[1], ids[3]} {
			k.wants(t, id, storage.JobCancelled)
		}
		k.wants(t, ids[2], storage.JobRunning)
	})
}

// TestRevoked checks that nothing is done any more for whoever has lost their rights since.
func TestRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kept{jobs: make(map[string]storage.Job)}
		var begun atomic.Int64
		r := k.runner("one", forever(&begun))
		id := add(t, r).ID
		k.revoked = time.Now().Add(time.Second)
		r.Start()
		defer r.Close()
		if j := k.wants(t, id, storage.JobFailed); begun.Load() != 0 || !strings.Contains(j.Problem, "revoked") {
			t.Errorf("%+v", j)
		}
	})
}
