package routes

import (
	"encoding/json"
	"errors"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/storage"
)

// JobView is the API's view of a job.
type JobView struct {
	ID        string           `json:"id"`
	Kind      storage.JobKind  `json:"kind"`
	Subject   string           `json:"subject_id"` // of the object that it is about
	UserID    string           `json:"user_id"`    // of whoever asked for it
	State     storage.JobState `json:"state"`
	Progress  JobProgress      `json:"progress"`
	Result    json.RawMessage  `json:"result"`  // null: there is none
	Problem   *string          `json:"problem"` // why it failed
	CreatedAt Instant          `json:"created_at"`
	StartedAt *Instant         `json:"started_at"` // of the last attempt
	EndedAt   *Instant         `json:"ended_at"`
	Attempts  int              `json:"attempts"`
}

// JobProgress tells how much of a job is done.
type JobProgress struct {
	Done  int64 `json:"done"`
	Total int64 `json:"total"` // 0: not known
}

// ViewJob returns the view of a job.
func ViewJob(j storage.Job) JobView {
	v := JobView{
		ID: j.ID, Kind: j.Kind, Subject: j.Subject, UserID: j.UserID, State: j.State, Progress: JobProgress{j.Done, j.Total}, Result: j.Result,
		Problem: Optional(j.Problem), CreatedAt: Instant(j.CreatedAt), StartedAt: OptionalInstant(j.StartedAt), EndedAt: OptionalInstant(j.EndedAt), Attempts: j.Attempts,
	}
	if v.Result == nil {
		v.Result = json.RawMessage("null")
	}
	return v
}

// StartJob adds a job of the caller's, and answers with it.
func (q *Request) StartJob(kind storage.JobKind, subject string, input any) (any, error) {
	j, err := q.Core.Jobs.Add(q.Context(), storage.Job{OrganizationID: q.Organization(), UserID: q.Call.Caller.UserID, Kind: kind, Subject: subject}, input)
	if errors.Is(err, storage.ErrTooManyJobs) {
		return nil, Refused(gateway.RateLimitExceeded, "Too many jobs of this organization wait already; try again when some of them are over")
	}
	if err != nil {
		return nil, err
	}
	q.Record.Detail["job_id"] = j.ID
	return Created{ViewJob(j)}, nil
}
