package platformapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/durward-gateway/durward/internal/slug"
	"github.com/durward-gateway/durward/internal/validate"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

// maxSearch bounds a search, in characters (attack Q05).
const maxSearch = 255

// request is one request that was admitted to its route. It collects what is wrong with its path, query and body, so
// that a client sees all of it at once.
type request struct {
	handler *Handler
	http    *http.Request
	call    *app.Call
	core    *app.Core
	route   *route
	record  *storage.AuditEntry // what the next write is recorded as; nil on routes that write nothing
	params  map[string]string
	query   *validate.Query

	problems validate.Problems
	failure  error // what else went wrong while reading it
}

func (q *request) context() context.Context { return q.http.Context() }

func (q *request) organization() string { return q.call.Caller.OrganizationID }

// id reads a path parameter that is a uuid.
func (q *request) id(name string) string {
	id, err := validate.PathUUID(name, q.params[name])
	q.note(err)
	return id
}

// serverRef names a server in a path: by id or by slug.
type serverRef struct{ id, slug string }

// server reads which server the path names: {server_id} is a uuid or a slug, {slug} a slug.
func (q *request) server() serverRef {
	if name, ok := q.params["slug"]; ok {
		if !slug.Valid(name) {
			q.note(validate.InPath("slug", validate.StringPatternMismatch, "String should match pattern '"+slug.Pattern+"'", name))
		}
		return serverRef{slug: name}
	}
	name := q.params["server_id"]
	if id, ok := validate.UUID(name); ok {
		return serverRef{id: id}
	}
	if !slug.Valid(name) {
		q.note(validate.InPath("server_id", validate.UUIDParsing, "Input should be a valid UUID or slug", name))
	}
	return serverRef{slug: name}
}

// search reads the parameter that narrows a list.
func (q *request) search() string { return q.query.Text("search", validate.Text{Max: maxSearch}).Value }

// page reads which page of a list is wanted.
func (q *request) page() storage.PageRequest {
	number, limit := q.query.Page()
	return storage.PageRequest{Number: number, Limit: limit}
}

// note keeps what is wrong with the request; it does nothing with nil.
func (q *request) note(err error) {
	var problems validate.Problems
	switch {
	case errors.As(err, &problems):
		q.problems = append(q.problems, problems...)
	case err != nil && q.failure == nil:
		q.failure = err
	}
}

// wrong is all that was noted, nil when nothing. An error that is not about the request's shape comes first.
func (q *request) wrong() error {
	if q.failure != nil {
		return q.failure
	}
	return q.problems.Err()
}

// shape is all that is wrong with the path and the query, nil when nothing.
func (q *request) shape() error {
	q.note(q.query.Err())
	return q.wrong()
}

// read reads the body with fields and returns all that is wrong with path, query and body. A body of the wrong type or
// size is refused before anything else is looked at.
func (q *request) read(emptyAllowed bool, fields func(*validate.Object)) error {
	body, err := app.ReadJSON(q.http, q.core.Sizes.API, emptyAllowed)
	q.note(q.query.Err())
	q.note(err)
	if err == nil {
		fields(body)
		q.sent(body)
		q.note(body.Err())
	}
	return q.wrong()
}
