package routes

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/durward-gateway/durward/internal/api/openapi"
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway/body"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

// maxSearch bounds a search, in characters (attack Q05).
const maxSearch = 255

// Request is one request that was admitted to its route. It collects the problems of its path, query and body, so that
// a client sees all of them at once.
type Request struct {
	HTTP   *http.Request
	Call   *app.Call
	Core   *app.Core
	Record *storage.AuditEntry // the record of the next write; nil on routes that write nothing
	Params map[string]string
	Query  *validate.Query

	path        string // as written in the table
	role        Role
	audit       AuditClass
	shapeStatus int

	problems validate.Problems
	failure  error // another error while reading the request

	declared map[storage.DeclaredObject]bool // by files; nil: not read yet

	described *openapi.Operation // the request is described instead of being served
}

// Context returns the request's context; writes to the store under it are recorded.
func (q *Request) Context() context.Context { return q.HTTP.Context() }

// Organization returns the caller's organization.
func (q *Request) Organization() string { return q.Call.Caller.OrganizationID }

// ID reads a path parameter that is a uuid.
func (q *Request) ID(name string) string {
	if q.described != nil {
		return ""
	}
	id, err := validate.PathUUID(name, q.Params[name])
	q.Note(err)
	return id
}

// Search reads the parameter that narrows a list.
func (q *Request) Search() string { return q.Query.Text("search", validate.Text{Max: maxSearch}).Value }

// Page reads the requested page of a list.
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

// Note keeps a problem of the request; it does nothing with nil.
func (q *Request) Note(err error) {
	var problems validate.Problems
	switch {
	case errors.As(err, &problems):
		q.problems = append(q.problems, problems...)
	case err != nil && q.failure == nil:
		q.failure = err
	}
}

// Wrong returns all noted problems, nil when there are none. An error that is not about the request's shape comes
// first.
func (q *Request) Wrong() error {
	if q.failure != nil {
		return q.failure
	}
	return q.problems.Err()
}

// noOthers refuses unknown parameters on routes that are not for every user (contract 4.4): a misspelt filter would match
// everything, and a write with a misspelt parameter would do something else.
func (q *Request) noOthers() {
	if q.role != Public && q.role != User {
		q.Query.NoOthers()
	}
}

// Shape returns all problems of the path and the query, nil when there are none.
func (q *Request) Shape() error {
	if q.described != nil {
		return errDescribed
	}
	q.noOthers()
	q.Note(q.Query.Err())
	return q.Wrong()
}

// Read reads the body with fields and returns all problems of path, query and body. A body of the wrong type or size is
// refused before anything else is checked.
func (q *Request) Read(emptyAllowed bool, fields func(*validate.Object)) error {
	if q.described != nil {
		q.described.Body, q.described.BodyOptional = validate.Describe(fields), emptyAllowed
		return errDescribed
	}
	body, err := body.ReadJSON(q.HTTP, q.Core.Sizes.API, emptyAllowed)
	q.noOthers()
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
