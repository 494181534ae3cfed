package storage

import (
	"encoding/json"
	"errors"
	"time"
)

// ErrTooManyJobs says that an organization has as many jobs as it may have.
var ErrTooManyJobs = errors.New("too many jobs")

// JobKind names what a job does.
type JobKind string

// Kinds of jobs.
const (
	JobReplay JobKind = "policy_replay"
	JobEval   JobKind = "smart_model_eval"
)

// JobState is the state of a job.
type JobState string

// States of jobs.
const (
	JobQueued    JobState = "queued"
	JobRunning   JobState = "running"
	JobDone      JobState = "done"
	JobFailed    JobState = "failed"
	JobCancelled JobState = "cancelled"
)

// Over reports whether nothing happens to the job any more.
func (s JobState) Over() bool { return s != JobQueued && s != JobRunning }

// Job is a piece of work that takes longer than a request. It outlives the process: a node that dies leaves it to the
// others.
type Job struct {
	ID             string // uuid v7: its order is that of creation
	OrganizationID string
	UserID         string // of whoever asked for it
	Kind           JobKind
	Subject        string // id of the object that it is about
	State          JobState
	// SealedInput holds the details of the request. It is deleted when the job is over.
	SealedInput []byte
	// Done of Total steps are done; a Total of 0 is not known.
	Done, Total int64
	Result      json.RawMessage // of a job that is done
	Problem     string          // of a job that failed, for people
	CreatedAt   time.Time
	StartedAt   time.Time // of the last attempt; zero: none was begun
	EndedAt     time.Time // zero: it is not over
	Node        string    // that began the last attempt
	// LeaseUntil is the time from which on a running job counts as left behind.
	LeaseUntil time.Time
	// Attempts counts how often it was begun. A write about an attempt is refused once there is a later one.
	Attempts int
}

// JobFilter selects jobs of an organization.
type JobFilter struct {
	OrganizationID string
	UserID         string // "" for those of all users
	After          string // id of the job behind which the list begins; "" for its beginning
	Limit          int
}
