package gatewayapi

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/llm/llmedit"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// request is one request on a route of this family.
type request struct {
	*routes.Request
	handler *Handler
}

// These are the refusals of unknown objects, and also of those of another organization (attack O01).
var (
	errNoKey      = routes.Refused(gateway.NotFound, "API key not found")
	errNoLimit    = routes.Refused(gateway.NotFound, "Rate limit not found")
	errNoProvider = routes.Refused(gateway.NotFound, "Provider not found")
	errNoMapping  = routes.Refused(gateway.NotFound, "Model mapping not found")
	errNoSmart    = routes.Refused(gateway.NotFound, "Smart model not found")
	errNoBudget   = routes.Refused(gateway.NotFound, "Budget not found")
)

var errReadOnly = routes.Refused(gateway.Forbidden, "This provider is the configuration's; only those that were made here can be changed here")

// id returns the id of the object in the path. An id that is not a uuid gives "", which no object has: in this family
// it is answered like an unknown one.
func (q *request) id() string {
	id, _ := validate.UUID(q.Params["id"])
	return id
}

func (q *request) now() time.Time { return q.handler.now().UTC().Truncate(time.Microsecond) }

// sharedNow returns the present time by the clock that all nodes have in common.
func (q *request) sharedNow() time.Time { return q.Core.Clock.Shared(q.now()) }

// newID returns the id of a new object of the request.
func (q *request) newID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", err
	}
	if q.Record != nil {
		q.Record.Detail["id"] = id.String()
	}
	return id.String(), nil
}

type deletedView struct {
	Deleted bool `json:"deleted"`
}

// deleted answers the result of a deletion in the store.
func deleted(err, unknown error) (any, error) {
	if err != nil {
		return nil, answered(err, unknown)
	}
	return deletedView{true}, nil
}

// conflicts holds the messages about fields whose values are taken.
var conflicts = map[string]struct{ field, message string }{
	"name":        {"name", "That name exists already"},
	"scope":       {"scope_type", "There is one for the same scope already"},
	"model_alias": {"model_alias", "That alias exists already"},
	"in_use":      {"in_use", "Models refer to it; change or delete them first"},
}

// answered turns a store's errors into the answers for the client.
func answered(err, unknown error) error {
	var taken *storage.ConflictError
	var target *storage.TargetError
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return unknown
	case errors.As(err, &taken):
		if c, ok := conflicts[taken.Field]; ok {
			return routes.Conflict(c.field, c.message)
		}
	case errors.As(err, &target):
		return llmedit.TargetProblems(target)
	}
	return err
}

// set changes a value when the request has the field.
func set[T any](to *T, field validate.Field[T]) {
	if field.Set() {
		*to = field.Value
	}
}

// replace does the work of set for a field that null clears.
func replace[T any](to *T, field validate.Field[T]) {
	if field.Present {
		*to = field.Value
	}
}

func views[T, V any](items []T, view func(T) V) []V {
	out := make([]V, 0, len(items))
	for _, item := range items {
		out = append(out, view(item))
	}
	return out
}
