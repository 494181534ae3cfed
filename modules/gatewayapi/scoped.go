package gatewayapi

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/llm/llmedit"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// edit holds the fields of a body about an object of type T.
type edit[T any] interface {
	// Apply changes an object and returns the problems of the whole object after the change.
	Apply(*T) validate.Problems
}

// scoped is a kind of object that has a scope: rate limits and budgets.
type scoped[T any] struct {
	// unknown is the answer for an object that does not exist, or belongs to another organization.
	unknown error
	// new returns an object with the defaults, before a body is read.
	new    func(organization string, now time.Time) T
	read   func(o *validate.Object, create bool) edit[T]
	view   func(*request, T) (any, error)
	fields func(*T) scopedFields

	get    func(s storage.Store, ctx context.Context, organization, id string) (T, error)
	create func(s storage.Store, ctx context.Context, v T) error
	update func(s storage.Store, ctx context.Context, organization, id string, edit func(*T) error) (T, error)
	remove func(s storage.Store, ctx context.Context, organization, id string) error
}

// scopedFields holds the fields that every kind has.
type scopedFields struct {
	id        *string
	updatedAt *time.Time
	scope     storage.Scope
}

func (k *scoped[T]) serveGet(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	v, err := k.get(q.Core.Store, q.Context(), q.Organization(), q.id())
	if err != nil {
		return nil, routes.Missing(err, k.unknown)
	}
	return k.view(q, v)
}

func (k *scoped[T]) serveCreate(q *request) (any, error) {
	v := k.new(q.Organization(), q.now())
	if err := q.Read(false, func(o *validate.Object) {
		q.Note(llmedit.NotWrong(o, k.read(o, true).Apply(&v)).Err())
		q.scopeExists(o, k.fields(&v).scope)
	}); err != nil {
		return nil, err
	}
	id, err := q.newID()
	if err != nil {
		return nil, err
	}
	*k.fields(&v).id = id
	if err := k.create(q.Core.Store, q.Context(), v); err != nil {
		return nil, answered(err, k.unknown)
	}
	return k.view(q, v)
}

func (k *scoped[T]) serveUpdate(q *request) (any, error) {
	present, lookup := k.present(q)
	var changes edit[T]
	if err := q.Read(false, func(o *validate.Object) {
		changes = k.read(o, false)
		if lookup != nil {
			return
		}
		changed := present
		q.Note(llmedit.NotWrong(o, changes.Apply(&changed)).Err())
		if scope := k.fields(&changed).scope; scope != k.fields(&present).scope {
			q.scopeExists(o, scope)
		}
	}); err != nil {
		return nil, err
	}
	if lookup != nil {
		return nil, routes.Missing(lookup, k.unknown)
	}
	v, err := k.update(q.Core.Store, q.Context(), q.Organization(), *k.fields(&present).id, func(v *T) error {
		*k.fields(v).updatedAt = q.now()
		return changes.Apply(v).Err()
	})
	if err != nil {
		return nil, answered(err, k.unknown)
	}
	return k.view(q, v)
}

// present returns the object in the path. An id that is not a uuid is that of no object.
func (k *scoped[T]) present(q *request) (T, error) {
	if q.id() == "" {
		return *new(T), storage.ErrNotFound
	}
	return k.get(q.Core.Store, q.Context(), q.Organization(), q.id())
}

func (k *scoped[T]) serveDelete(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	return deleted(k.remove(q.Core.Store, q.Context(), q.Organization(), q.id()), k.unknown)
}
