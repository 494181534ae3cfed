package platformapi

import (
	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/modules/app/routes"
)

// request is one request on a route of this family.
type request struct {
	*routes.Request
	handler *Handler
}

// serverRef names a server in a path: by id or by slug.
type serverRef struct{ id, slug string }

// server reads the server that the path names: {server_id} is a uuid or a slug, {slug} a slug.
func (q *request) server() serverRef {
	if name, ok := q.Params["slug"]; ok {
		if !slug.Valid(name) {
			q.Note(validate.InPath("slug", validate.StringPatternMismatch, "String should match pattern '"+slug.Pattern+"'", name))
		}
		return serverRef{slug: name}
	}
	name := q.Params["server_id"]
	if id, ok := validate.UUID(name); ok {
		return serverRef{id: id}
	}
	if !slug.Valid(name) {
		q.Note(validate.InPath("server_id", validate.UUIDParsing, "Input should be a valid UUID or slug", name))
	}
	return serverRef{slug: name}
}
