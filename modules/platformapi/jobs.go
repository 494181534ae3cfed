package platformapi

import (
	"context"
	"errors"
	"time"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/ops/jobs"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

var errNoJob = routes.Refused(gateway.NotFound, "Job not found")

// mayStart returns the role of those who may start a job of a kind, and read it. Administrators alone may start those of
// later versions.
func mayStart(kind storage.JobKind) routes.Role {
	if kind == storage.JobReplay {
		return routes.PolicyEditor
	}
	return routes.Admin
}

// readJob returns a job that the caller may read: auditors read all of them. Others are unknown to the caller.
func (q *request) readJob(ctx context.Context, id string) (storage.Job, error) {
	j, err := q.Core.Store.Job(ctx, q.Organization(), id)
	if err == nil && !q.May(mayStart(j.Kind)) && !q.May(routes.Auditor) {
		err = storage.ErrNotFound
	}
	return j, routes.Missing(err, errNoJob)
}

// listJobs lists the caller's own jobs.
func listJobs(q *request) (any, error) {
	f := storage.JobFilter{OrganizationID: q.Organization(), UserID: q.Call.Caller.UserID}
	after, limit := q.keyed()
	if err := q.Shape(); err != nil {
		return nil, err
	}
	if f.UserID == "" {
		return nil, routes.Refused(gateway.Forbidden, "There is no user whose jobs could be shown") // "" would select those of all
	}
	f.After, f.Limit = after, limit+1
	found, err := q.Core.Store.Jobs(q.Context(), f)
	if err != nil {
		return nil, err
	}
	return viewKeyed(found, limit, func(j storage.Job) string { return j.ID }, routes.ViewJob), nil
}

// getJob shows a job, also as an event stream that ends with the job.
func getJob(q *request) (any, error) {
	id := q.ID("job_id")
	if err := q.Shape(); err != nil {
		return nil, err
	}
	j, err := q.readJob(q.Context(), id)
	switch {
	case err != nil:
		return nil, err
	case q.Prefers(routes.Events):
		return q.followJob(j), nil
	}
	return routes.ViewJob(j), nil
}

// cancelJob ends a job of the caller's own; administrators end everybody's.
func cancelJob(q *request) (any, error) {
	id := q.ID("job_id")
	if err := q.Shape(); err != nil {
		return nil, err
	}
	j, err := q.readJob(q.Context(), id)
	if err != nil {
		return nil, err
	}
	if j.UserID != q.Call.Caller.UserID && !q.May(routes.Admin) {
		return nil, routes.Refused(gateway.Forbidden, "Only an administrator may cancel another user's job")
	}
	j, err = q.Core.Jobs.Cancel(q.Context(), q.Organization(), id)
	if errors.Is(err, storage.ErrConflict) {
		return nil, routes.Conflict("state", "The job is over already")
	}
	if err != nil {
		return nil, routes.Missing(err, errNoJob)
	}
	return routes.ViewJob(j), nil
}

// followJob sends the states of a job, until it is over, or the right to read it ends.
func (q *request) followJob(j storage.Job) routes.Streamed {
	return q.Follow("job", routes.Seen{View: routes.ViewJob(j), Last: j.State.Over()}, func(ctx context.Context) (routes.Seen, error) {
		now, err := q.readJob(ctx, j.ID)
		return routes.Seen{View: routes.ViewJob(now), Last: now.State.Over()}, err
	})
}

// replaySpan is the time before now whose calls are judged unless the request says since when.
const replaySpan = 7 * 24 * time.Hour

// replayPolicy has the recorded calls judged by a policy as it is stored, whatever its status.
func replayPolicy(q *request) (any, error) {
	id := q.ID("policy_id")
	now := q.handler.now().UTC()
	input := jobs.ReplayInput{Until: now.Add(time.Second)}
	if err := q.Read(true, func(o *validate.Object) {
		since := o.Time("since", 0)
		input.Since = since.Or(now.Add(-replaySpan))
		if since.Set() && !o.Wrong("since") && !input.Since.Before(now) {
			o.Report(validate.ValueError, "Value error, the time should be in the past", "since")
		}
		input.Examples = int(o.Int("examples", validate.Integer{Max: jobs.MaxExamples}).Or(10))
		o.Only()
	}); err != nil {
		return nil, err
	}
	if _, err := q.Core.Store.Policy(q.Context(), q.Organization(), id); err != nil {
		return nil, routes.Missing(err, errNoPolicy)
	}
	return q.StartJob(storage.JobReplay, id, input)
}
