package storagetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const someJobs = 20

func (b *bundle) newJob(organization, user string) storage.Job {
	return storage.Job{
		ID: newID(), OrganizationID: organization, UserID: user, Kind: storage.JobReplay, Subject: "subject", State: storage.JobQueued,
		SealedInput: []byte{0, 1, 2}, CreatedAt: start,
	}
}

func (b *bundle) job(t *testing.T, organization, user string) storage.Job {
	t.Helper()
	j := b.newJob(organization, user)
	noError(t, b.AddJob(t.Context(), j, someJobs))
	return j
}

// testJobs follows a job from the queue to its end, also when its first node dies.
func testJobs(t *testing.T, b *bundle) {
	ctx := t.Context()
	j := b.job(t, b.orgA, b.userA1)
	read := func() storage.Job {
		t.Helper()
		j, err := b.Job(ctx, b.orgA, j.ID)
		noError(t, err)
		return j
	}
	due := func(now time.Time) (ids []string) {
		t.Helper()
		jobs, err := b.DueJobs(ctx, now, 10, 10)
		noError(t, err)
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
		return ids
	}
	equal(t, read(), j)
	equal(t, due(start), []string{j.ID})
	claimed, err := b.ClaimJob(ctx, b.orgA, j.ID, "one", 1, start, start.Add(time.Minute))
	noError(t, err)
	j.State, j.Node, j.StartedAt, j.LeaseUntil, j.Attempts = storage.JobRunning, "one", start, start.Add(time.Minute), 1
	equal(t, claimed, j)
	equal(t, read(), j)
	equal(t, due(start.Add(time.Minute-time.Microsecond)), nil)
	_, err = b.ClaimJob(ctx, b.orgA, j.ID, "two", 2, start.Add(time.Second), start.Add(time.Hour))
	wantError(t, err, storage.ErrNotFound)

	j.Done, j.Total, j.LeaseUntil = 3, 7, start.Add(2*time.Minute)
	noError(t, b.BeatJob(ctx, j))
	equal(t, read(), j)
	equal(t, due(start.Add(2*time.Minute)), []string{j.ID}) // its node has died

	second, err := b.ClaimJob(ctx, b.orgA, j.ID, "two", 1, start.Add(2*time.Minute), start.Add(3*time.Minute))
	noError(t, err)
	equal(t, []any{second.Node, second.Attempts, second.Done, second.Total, second.SealedInput}, []any{"two", 2, int64(0), int64(0), j.SealedInput})
	ended := j
	ended.State, ended.EndedAt = storage.JobDone, start.Add(2*time.Minute)
	wantError(t, b.BeatJob(ctx, j), storage.ErrNotFound) // the former attempt counts no more
	wantError(t, b.EndJob(ctx, ended), storage.ErrNotFound)
	equal(t, read(), second)

	back := second
	back.State = storage.JobQueued
	noError(t, b.EndJob(ctx, back))
	equal(t, due(start), []string{j.ID})
	equal(t, read().SealedInput, j.SealedInput)
	wantError(t, b.EndJob(ctx, back), storage.ErrNotFound)
	third, err := b.ClaimJob(ctx, b.orgA, j.ID, "three", 1, start.Add(time.Hour), start.Add(2*time.Hour))
	noError(t, err)
	third.State, third.Done, third.Total, third.Result, third.Problem, third.EndedAt = storage.JobDone, 9, 9, json.RawMessage(`{ "a" : 1 }`), "none", start.Add(time.Hour+7)
	noError(t, b.EndJob(ctx, third))
	third.SealedInput, third.EndedAt = nil, start.Add(time.Hour)
	equal(t, read(), third)
	equal(t, due(start.Add(1000*time.Hour)), nil)
	_, err = b.CancelJob(ctx, b.orgA, j.ID, start)
	wantConflict(t, err, "state")
	wantError(t, b.EndJob(ctx, third), storage.ErrNotFound)

	// Cancelled while it waits, and while it runs.
	waiting, running := b.job(t, b.orgA, b.userA1), b.job(t, b.orgA, b.userA1)
	claimed, err = b.ClaimJob(ctx, b.orgA, running.ID, "one", 1, start, start.Add(time.Minute))
	noError(t, err)
	for _, one := range []storage.Job{waiting, running} {
		got, err := b.CancelJob(ctx, b.orgA, one.ID, start.Add(time.Second))
		noError(t, err)
		equal(t, []any{got.State, got.EndedAt, len(got.SealedInput)}, []any{storage.JobCancelled, start.Add(time.Second), 0})
	}
	claimed.State = storage.JobDone
	wantError(t, b.EndJob(ctx, claimed), storage.ErrNotFound)
	equal(t, due(start.Add(time.Hour)), nil)

	// Those that are over are forgotten, the others not.
	left := b.job(t, b.orgB, b.userB1)
	noError(t, b.ForgetJobs(ctx, start.Add(time.Second)))
	_, err = b.Job(ctx, b.orgA, waiting.ID)
	wantError(t, err, storage.ErrNotFound)
	equal(t, read(), third)
	noError(t, b.ForgetJobs(ctx, start.Add(time.Hour)))
	_, err = b.Job(ctx, b.orgA, j.ID)
	wantError(t, err, storage.ErrNotFound)
	equal(t, due(start), []string{left.ID})
	stranger := b.newJob(b.orgA, b.userB1)
	wantError(t, b.AddJob(ctx, stranger, someJobs), storage.ErrNotFound)
}

// testJobsBounded checks that organizations have few jobs, and that one with many does not delay another's.
func testJobsBounded(t *testing.T, b *bundle) {
	ctx := t.Context()
	var mine []storage.Job
	for range 3 {
		mine = append(mine, b.job(t, b.orgA, b.userA1))
	}
	wantError(t, b.AddJob(ctx, b.newJob(b.orgA, b.userA2), 3), storage.ErrTooManyJobs)
	theirs := b.job(t, b.orgB, b.userB1)
	jobs, err := b.DueJobs(ctx, start, 2, 2)
	noError(t, err)
	equal(t, []string{jobs[0].ID, jobs[1].ID}, []string{mine[0].ID, theirs.ID})
	jobs, err = b.DueJobs(ctx, start, 10, 1)
	noError(t, err)
	equal(t, len(jobs), 2)
	claim := func(j storage.Job, at time.Duration) error {
		_, err := b.ClaimJob(ctx, j.OrganizationID, j.ID, "node", 2, start.Add(at), start.Add(at+time.Minute))
		return err
	}
	noError(t, claim(mine[0], 0))
	noError(t, claim(mine[1], time.Second))
	wantError(t, claim(mine[2], time.Second), storage.ErrTooManyJobs)
	noError(t, claim(theirs, 0))
	noError(t, b.AddJob(ctx, b.newJob(b.orgA, b.userA2), 2)) // one waits
	noError(t, claim(mine[2], time.Minute))                  // the first is left behind
	wantError(t, claim(mine[0], time.Minute), storage.ErrTooManyJobs)

	list := func(f storage.JobFilter) (ids []string) {
		t.Helper()
		f.OrganizationID = b.orgA
		jobs, err := b.Jobs(ctx, f)
		noError(t, err)
		for _, j := range jobs {
			ids = append(ids, j.ID)
		}
		return ids
	}
	equal(t, list(storage.JobFilter{UserID: b.userA1, Limit: 2}), []string{mine[2].ID, mine[1].ID})
	equal(t, list(storage.JobFilter{UserID: b.userA1, After: mine[1].ID, Limit: 2}), []string{mine[0].ID})
	equal(t, len(list(storage.JobFilter{Limit: 10})), 4)
	equal(t, len(list(storage.JobFilter{UserID: b.userB1, Limit: 10})), 0)
	for _, id := range []string{theirs.ID, b.unknown} {
		_, err := b.Job(ctx, b.orgA, id)
		wantError(t, err, storage.ErrNotFound)
		_, err = b.CancelJob(ctx, b.orgA, id, start)
		wantError(t, err, storage.ErrNotFound)
		_, err = b.ClaimJob(ctx, b.orgA, id, "node", 9, start.Add(time.Hour), start.Add(2*time.Hour))
		wantError(t, err, storage.ErrNotFound)
		j := theirs
		j.ID, j.OrganizationID, j.Attempts, j.State = id, b.orgA, 1, storage.JobDone
		wantError(t, b.BeatJob(ctx, j), storage.ErrNotFound)
		wantError(t, b.EndJob(ctx, j), storage.ErrNotFound)
	}
}

// testJobRace checks that of several nodes one gets a job, and that all of them together run no more than an organization
// may have.
func testJobRace(t *testing.T, b *bundle) {
	var jobs []storage.Job
	for range 4 {
		jobs = append(jobs, b.job(t, b.orgA, b.userA1))
	}
	var won atomic.Int32
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			_, err := b.ClaimJob(t.Context(), b.orgA, jobs[i%4].ID, fmt.Sprint(i), 2, start, start.Add(time.Minute))
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, storage.ErrTooManyJobs):
				t.Error(err)
			}
		})
	}
	all.Wait()
	equal(t, won.Load(), 2)
}
