package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// Bounds of jobs.
const (
	// MaxWaiting and MaxRunning are the numbers of jobs of one organization that wait and that run.
	MaxWaiting = 20
	MaxRunning = 2
	// MaxResult is the length of a result, in bytes.
	MaxResult = 1 << 20
	// Kept is the time for which a job that is over can be read.
	Kept = 7 * 24 * time.Hour

	maxHere     = 2 // jobs that one node runs: calls come first
	maxAttempts = 5 // at a job: one that ends its process each time must not go on for ever
	lease       = 30 * time.Second
	beatEvery   = 5 * time.Second
	lookEvery   = 5 * time.Second
	sweepEvery  = 10 * time.Minute
	endTimeout  = 10 * time.Second
)

// Vault seals and opens the stored inputs; *seal.Keyring is one.
type Vault interface {
	Seal(plaintext []byte, ad seal.AD) ([]byte, error)
	Open(sealed []byte, ad seal.AD) ([]byte, error)
}

// Work does a job. It tells how many of its steps are done, and returns the result, which must be encodable as JSON. An error
// is shown to people when it is a *Problem. Work ends soon after ctx does.
type Work func(ctx context.Context, j *storage.Job, input []byte, tell func(done, total int64)) (result any, err error)

// Problem is the reason why a job failed, for people.
type Problem struct{ Text string }

func (p *Problem) Error() string { return p.Text }

// Store keeps jobs, and knows the users who ask for them.
type Store interface {
	storage.Jobs
	User(ctx context.Context, organization, id string) (storage.User, error)
}

// Options holds the dependencies of a Runner. All are required.
type Options struct {
	Store Store
	Vault Vault
	Work  map[storage.JobKind]Work
	Node  string // name of this node, for people
	Now   func() time.Time
	Log   *slog.Logger
}

// Runner runs the jobs that its node gets. It is safe for concurrent use.
type Runner struct {
	options Options
	bell    chan struct{}
	stop    context.CancelFunc
	work    sync.WaitGroup

	mu   sync.Mutex
	here map[string]context.CancelFunc // of the jobs that run here, by id
}

// New makes a runner, which takes jobs from Start on.
func New(o Options) *Runner {
	return &Runner{options: o, bell: make(chan struct{}, 1), here: make(map[string]context.CancelFunc)}
}

// Start begins to run jobs, until Close. It does nothing the second time.
func (r *Runner) Start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	r.work.Go(func() { r.run(ctx) })
}

// Close stops all work, and leaves the jobs that it had begun to the next runner.
func (r *Runner) Close() {
	r.mu.Lock()
	stop := r.stop
	r.mu.Unlock()
	if stop != nil {
		stop()
	}
	r.work.Wait()
}

// Add stores a job, and has it begun when it is its turn. It returns storage.ErrTooManyJobs when too many wait.
func (r *Runner) Add(ctx context.Context, j storage.Job, input any) (storage.Job, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return storage.Job{}, fmt.Errorf("making an id: %w", err)
	}
	text, err := json.Marshal(input)
	if err != nil {
		return storage.Job{}, fmt.Errorf("encoding the input of a job: %w", err)
	}
	j.ID, j.State, j.CreatedAt = id.String(), storage.JobQueued, r.options.Now().UTC().Truncate(time.Microsecond)
	if j.SealedInput, err = r.options.Vault.Seal(text, seal.JobPlace(j.OrganizationID, j.UserID, j.ID)); err != nil {
		return storage.Job{}, fmt.Errorf("sealing the input of a job: %w", err)
	}
	if err := r.options.Store.AddJob(ctx, j, MaxWaiting); err != nil {
		return storage.Job{}, err
	}
	r.look()
	return j, nil
}

// look makes the runner look for jobs.
func (r *Runner) look() {
	select {
	case r.bell <- struct{}{}:
	default: // it looks anyway
	}
}

// Cancel ends a job. Where another node runs it, its work ends with that node's next beat.
func (r *Runner) Cancel(ctx context.Context, organization, id string) (storage.Job, error) {
	j, err := r.options.Store.CancelJob(ctx, organization, id, r.options.Now().UTC())
	if err != nil {
		return j, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.here[id]; cancel != nil {
		cancel()
	}
	return j, nil
}

func (r *Runner) run(ctx context.Context) {
	look, sweep := time.NewTicker(lookEvery), time.NewTicker(sweepEvery)
	defer look.Stop()
	defer sweep.Stop()
	for {
		if err := r.claim(ctx); err != nil && ctx.Err() == nil {
			r.options.Log.Warn("looking for jobs", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-r.bell:
		case <-look.C:
		case <-sweep.C:
			if err := r.options.Store.ForgetJobs(ctx, r.options.Now().UTC().Add(-Kept)); err != nil && ctx.Err() == nil {
				r.options.Log.Warn("jobs that are over stay in the store", "error", err)
			}
		}
	}
}

// claim begins the jobs that wait, as many as this node has room for.
func (r *Runner) claim(ctx context.Context) error {
	room := maxHere - r.running()
	if room <= 0 {
		return nil
	}
	now := r.options.Now().UTC()
	due, err := r.options.Store.DueJobs(ctx, now, 4*maxHere, MaxRunning)
	if err != nil {
		return err
	}
	for i := range due {
		if room == 0 {
			return nil
		}
		j, err := r.options.Store.ClaimJob(ctx, due[i].OrganizationID, due[i].ID, r.options.Node, MaxRunning, now, now.Add(lease))
		switch {
		case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrTooManyJobs):
			continue // another node has it, or its organization has enough
		case err != nil:
			return err
		}
		room--
		working, cancel := context.WithCancel(ctx)
		r.mu.Lock()
		r.here[j.ID] = cancel
		r.mu.Unlock()
		r.work.Go(func() {
			defer r.left(j.ID, cancel)
			r.do(working, ctx, &j)
		})
	}
	return nil
}

func (r *Runner) running() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.here)
}

// left forgets a job that runs here no more, and looks for another one.
func (r *Runner) left(id string, cancel context.CancelFunc) {
	cancel()
	r.mu.Lock()
	delete(r.here, id)
	r.mu.Unlock()
	r.look()
}

// do carries out one attempt at a job. ctx ends with the attempt, and running with the runner.
func (r *Runner) do(ctx, running context.Context, j *storage.Job) {
	at := &attempt{runner: r, job: *j}
	ctx, cancel := context.WithCancel(ctx)
	var beating sync.WaitGroup
	beating.Go(func() { at.keepBeating(ctx, cancel) })
	result, err := r.attempt(ctx, j, at.tell)
	cancelled := ctx.Err() != nil
	cancel()
	beating.Wait()
	end := at.end(result, err, cancelled)
	switch {
	case err == nil:
	case running.Err() != nil:
		end.State = storage.JobQueued // whoever comes next begins it anew
	case cancelled:
		return // by whoever has stored that, or because another node has it
	}
	storing, done := context.WithTimeout(context.WithoutCancel(running), endTimeout)
	defer done()
	if err := r.options.Store.EndJob(storing, end); err != nil && !errors.Is(err, storage.ErrNotFound) {
		r.options.Log.Warn("storing the end of a job: it begins anew when its lease is over", "job", j.ID, "error", err)
	}
}

func (r *Runner) attempt(ctx context.Context, j *storage.Job, tell func(done, total int64)) (json.RawMessage, error) {
	work := r.options.Work[j.Kind]
	switch {
	case work == nil:
		return nil, &Problem{"This version of the gateway does not know such jobs."}
	case j.Attempts > maxAttempts:
		return nil, &Problem{fmt.Sprintf("It was begun %d times, and each time its node ended before it did.", maxAttempts)}
	}
	user, err := r.options.Store.User(ctx, j.OrganizationID, j.UserID)
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the job's user: %w", err)
	case user.RevokedAt.After(j.CreatedAt):
		return nil, &Problem{"The rights of whoever asked for it were revoked."}
	}
	input, err := r.options.Vault.Open(j.SealedInput, seal.JobPlace(j.OrganizationID, j.UserID, j.ID))
	if err != nil {
		return nil, fmt.Errorf("opening the input: %w", err)
	}
	result, err := work(ctx, j, input, tell)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(result)
	switch {
	case err != nil:
		return nil, fmt.Errorf("encoding the result: %w", err)
	case len(text) > MaxResult:
		return nil, &Problem{"Its result is longer than can be kept: ask for less at once."}
	}
	return text, nil
}

// attempt is one attempt at a job, with its progress.
type attempt struct {
	runner *Runner

	mu  sync.Mutex
	job storage.Job
}

func (a *attempt) tell(done, total int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.job.Done, a.job.Total = done, total
}

// keepBeating extends the lease, and stores the progress, until ctx ends. It calls cancel when the attempt counts no more,
// and before another node could begin the job.
func (a *attempt) keepBeating(ctx context.Context, cancel func()) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := a.runner.options.Now().UTC()
		a.mu.Lock()
		beat, held := a.job, a.job.LeaseUntil
		a.mu.Unlock()
		beat.LeaseUntil = now.Add(lease)
		err := a.runner.options.Store.BeatJob(ctx, beat)
		switch {
		case err == nil:
			a.mu.Lock()
			a.job.LeaseUntil = beat.LeaseUntil
			a.mu.Unlock()
		case errors.Is(err, storage.ErrNotFound), !now.Add(beatEvery).Before(held):
			cancel()
			return
		}
	}
}

// end returns the job as it is after the attempt. ended tells that the attempt was ended from outside.
func (a *attempt) end(result json.RawMessage, err error, ended bool) storage.Job {
	a.mu.Lock()
	j := a.job
	a.mu.Unlock()
	j.State, j.Result, j.EndedAt = storage.JobDone, result, a.runner.options.Now().UTC()
	var problem *Problem
	switch {
	case errors.As(err, &problem):
		j.State, j.Problem = storage.JobFailed, problem.Text
	case err != nil && !ended:
		a.runner.options.Log.Error("a job failed", "job", j.ID, "kind", string(j.Kind), "error", err)
		j.State, j.Problem = storage.JobFailed, "The gateway failed at it; its log says why."
	}
	return j
}
