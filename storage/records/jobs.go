package records

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	jobColumns = `id, organization_id, user_id, kind, subject, state, sealed_input, done, total, result, problem, created_at, started_at, ended_at,
		node, lease_until, attempts`
	insertJobSQL = `INSERT INTO jobs (` + jobColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`
	jobWhere     = ` WHERE organization_id = $1 AND id = $2`
	jobSQL       = `SELECT ` + jobColumns + ` FROM jobs` + jobWhere
	// A page begins behind a key: reading it costs the same wherever it is in the list.
	jobsSQL = `SELECT ` + jobColumns + ` FROM jobs WHERE organization_id = $1 AND ($2 = '' OR user_id = $2) AND ($3 = '' OR id < $3)
		ORDER BY id DESC LIMIT $4`
	queuedJobsSQL  = `SELECT count(*) FROM jobs WHERE organization_id = $1 AND state = 'queued'`
	runningJobsSQL = `SELECT count(*) FROM jobs WHERE organization_id = $1 AND state = 'running' AND lease_until > $2 AND id <> $3`
	dueCondition   = `(state = 'queued' OR state = 'running' AND lease_until <= `
	// The first of each organization come first: one with many jobs does not delay another's.
	dueJobsSQL = `SELECT ` + jobColumns + ` FROM (SELECT ` + jobColumns + `, row_number() OVER (PARTITION BY organization_id ORDER BY id) AS place
		FROM jobs WHERE ` + dueCondition + `$1)) due WHERE place <= $3 ORDER BY place, id LIMIT $2`
	// Of several nodes that find it due, only one gets it.
	claimJobSQL = `UPDATE jobs SET state = 'running', node = $3, started_at = $4, lease_until = $5, attempts = attempts + 1, done = 0, total = 0` +
		jobWhere + ` AND ` + dueCondition + `$4)`
	attemptWhere = jobWhere + ` AND attempts = $3 AND state = 'running'`
	beatJobSQL   = `UPDATE jobs SET done = $4, total = $5, lease_until = $6` + attemptWhere
	endJobSQL    = `UPDATE jobs SET state = $4, done = $5, total = $6, result = $7, problem = $8, ended_at = $9, sealed_input = NULL` + attemptWhere
	requeueSQL   = `UPDATE jobs SET state = 'queued', done = 0, total = 0` + attemptWhere
	cancelJobSQL = `UPDATE jobs SET state = 'cancelled', ended_at = $3, sealed_input = NULL` + jobWhere + ` AND state IN ('queued', 'running')`
	forgetJobSQL = `DELETE FROM jobs WHERE state NOT IN ('queued', 'running') AND ended_at <= $1`
)

func scanJob(r Row) (j storage.Job, err error) {
	err = r.Scan(&j.ID, &j.OrganizationID, &j.UserID, &j.Kind, &j.Subject, &j.State, &j.SealedInput, &j.Done, &j.Total, rawColumn{&j.Result}, &j.Problem,
		timeColumn{&j.CreatedAt}, timeColumn{&j.StartedAt}, timeColumn{&j.EndedAt}, &j.Node, timeColumn{&j.LeaseUntil}, &j.Attempts)
	return j, err
}

// AddJob implements storage.Jobs. A user who does not exist violates a foreign key, which is ErrNotFound.
func (s jobsStore) AddJob(ctx context.Context, j storage.Job, waiting int) error {
	return s.write(ctx, j.OrganizationID, func(ctx context.Context, tx Tx) error {
		queued, err := One(ctx, tx, ScanInt, queuedJobsSQL, j.OrganizationID)
		switch {
		case err != nil:
			return err
		case queued >= waiting:
			return storage.ErrTooManyJobs
		}
		_, err = tx.Exec(ctx, insertJobSQL, j.ID, j.OrganizationID, j.UserID, j.Kind, j.Subject, storage.JobQueued, j.SealedInput, 0, 0, "", "",
			j.CreatedAt.UnixMicro(), time.Time{}.UnixMicro(), time.Time{}.UnixMicro(), "", time.Time{}.UnixMicro(), 0)
		return err
	})
}

// Job implements storage.Jobs.
func (s jobsStore) Job(ctx context.Context, organization, id string) (j storage.Job, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		j, err = One(ctx, q, scanJob, jobSQL, organization, id)
		return err
	})
	return j, err
}

// Jobs implements storage.Jobs.
func (s jobsStore) Jobs(ctx context.Context, f storage.JobFilter) (jobs []storage.Job, err error) {
	err = s.read(ctx, f.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		jobs, err = Many(ctx, q, scanJob, jobsSQL, f.OrganizationID, f.UserID, f.After, f.Limit)
		return err
	})
	return jobs, err
}

// DueJobs implements storage.Jobs.
func (s jobsStore) DueJobs(ctx context.Context, now time.Time, limit, share int) (due []storage.Job, err error) {
	err = s.readAcross(ctx, func(ctx context.Context, q Querier) (err error) {
		due, err = Many(ctx, q, scanJob, dueJobsSQL, now.UnixMicro(), limit, share)
		return err
	})
	return due, err
}

// ClaimJob implements storage.Jobs. Writes of one organization run one after the other: the number of its running jobs
// stays true until the claim is stored.
func (s jobsStore) ClaimJob(ctx context.Context, organization, id, node string, running int, now, until time.Time) (j storage.Job, err error) {
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		n, err := One(ctx, tx, ScanInt, runningJobsSQL, organization, now.UnixMicro(), id)
		switch {
		case err != nil:
			return err
		case n >= running:
			return storage.ErrTooManyJobs
		}
		if err := execOne(ctx, tx, claimJobSQL, organization, id, node, now.UnixMicro(), until.UnixMicro()); err != nil {
			return err
		}
		j, err = One(ctx, tx, scanJob, jobSQL, organization, id)
		return err
	})
	return j, err
}

// BeatJob implements storage.Jobs.
func (s jobsStore) BeatJob(ctx context.Context, j storage.Job) error {
	return s.write(ctx, j.OrganizationID, func(ctx context.Context, tx Tx) error {
		return execOne(ctx, tx, beatJobSQL, j.OrganizationID, j.ID, j.Attempts, j.Done, j.Total, j.LeaseUntil.UnixMicro())
	})
}

// EndJob implements storage.Jobs.
func (s jobsStore) EndJob(ctx context.Context, j storage.Job) error {
	return s.write(ctx, j.OrganizationID, func(ctx context.Context, tx Tx) error {
		if j.State == storage.JobQueued {
			return execOne(ctx, tx, requeueSQL, j.OrganizationID, j.ID, j.Attempts)
		}
		return execOne(ctx, tx, endJobSQL, j.OrganizationID, j.ID, j.Attempts, j.State, j.Done, j.Total, string(j.Result), j.Problem, j.EndedAt.UnixMicro())
	})
}

// CancelJob implements storage.Jobs.
func (s jobsStore) CancelJob(ctx context.Context, organization, id string, now time.Time) (j storage.Job, err error) {
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		if j, err = One(ctx, tx, scanJob, jobSQL, organization, id); err != nil {
			return err
		}
		if j.State.Over() {
			return &storage.ConflictError{Field: "state"}
		}
		if err := execOne(ctx, tx, cancelJobSQL, organization, id, now.UnixMicro()); err != nil {
			return err
		}
		j, err = One(ctx, tx, scanJob, jobSQL, organization, id)
		return err
	})
	return j, err
}

// ForgetJobs implements storage.Jobs.
func (s jobsStore) ForgetJobs(ctx context.Context, over time.Time) error {
	return s.writeAcross(ctx, NoLock, func(ctx context.Context, tx Tx) error {
		_, err := tx.Exec(ctx, forgetJobSQL, over.UnixMicro())
		return err
	})
}
