package routes

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/durward-gateway/durward/internal/validate"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

// maxSearch bounds a search, in characters (attack Q05).
const maxSearch = 255

// Request is one request that was admitted to its route. It collects what is wrong with its path, query and body, so
// that a client sees all of it at once.
type Request struct {
	HTTP   *http.Request
	Call   *app.Call
	Core   *app.Core
	Record *storage.AuditEntry // what the next write is recorded as; nil on routes that write nothing
	Params map[string]string
	Query  *validate.Query

	path        string // as the table has it
	role        Role
	audit       AuditClass
	shapeStatus int

	problems validate.Problems
	failure  error // what else went wrong while reading it
}

// Context is the request's; writes to the store under it are recorded.
func (q *Request) Context() context.Context { return q.HTTP.Context() }

// Organization is the caller's.
func (q *Request) Organization() string { return q.Call.Caller.OrganizationID }

// ID reads a path parameter that is a uuid.
func (q *Request) ID(name string) string {
	id, err := validate.PathUUID(name, q.Params[name])
	q.Note(err)
	return id
}

// Search reads the parameter that narrows a list.
func (q *Request) Search() string { return q.Query.Text("search", validate.Text{Max: maxSearch}).Value }

// Page reads which page of a list is wanted.
func (q *Request) Page() storage.PageRequest {
	number, limit := q.Query.Page()
	return storage.PageRequest{Number: number, Limit: limit}
}

// Instant reads a time of the query, in the format of RFC 3339; zero when there is none.
func (q *Request) Instant(name string) time.Time {
	field := q.Query.Text(name, validate.Text{Max: 64})
	if field.Value == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, field.Value)
	if err != nil {
		q.Query.Report(validate.ValueError, "Value error, the time should have the format of RFC 3339, such as 2026-01-31T12:00:00Z", name)
	}
	return at.UTC()
}

// Note keeps what is wrong with the request; it does nothing with nil.
func (q *Request) Note(err error) {
	var problems validate.Problems
	switch {
	case errors.As(err, &problems):
		q.problems = append(q.problems, problems...)
	case err != nil && q.failure == nil:
		q.failure = err
	}
}

// Wrong is all that was noted, nil when nothing. An error that is not about the request's shape comes first.
func (q *Request) Wrong() error {
	if q.failure != nil {
		return q.failure
	}
	return q.problems.Err()
}

// Shape is all that is wrong with the path and the query, nil when nothing. What administrators read takes no parameter that it does
// not know (contract 4.4).
func (q *Request) Shape() error {
	if q.role == Admin && q.HTTP.Method == http.MethodGet {
		q.Query.NoOthers()
	}
	q.Note(q.Query.Err())
	return q.Wrong()
}

// Read reads the body with fields and returns all that is wrong with path, query and body. A body of the wrong type or
// size is refused before anything else is looked at.
func (q *Request) Read(emptyAllowed bool, fields func(*validate.Object)) error {
	body, err := app.ReadJSON(q.HTTP, q.Core.Sizes.API, emptyAllowed)
	q.Note(q.Query.Err())
	q.Note(err)
	if err == nil {
		fields(body)
		q.sent(body)
		q.Note(body.Err())
	}
	return q.Wrong()
}

// Sound reports whether no problem with the request's shape was noted.
func (q *Request) Sound() bool { return len(q.problems) == 0 }
