package routes

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/durward-gateway/durward/internal/api/openapi"
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

// jsonMedia is the type of nearly all bodies.
const jsonMedia = "application/json"

// Gives declares the meaning of a route in a sentence, and its answer: a value of the type that encodes it, nil for an
// answer without a body.
func (r Route[Q]) Gives(summary string, answer any) Route[Q] {
	r.summary, r.status, r.answer = summary, http.StatusOK, reflect.TypeOf(answer)
	if answer == nil {
		r.status = http.StatusNoContent
	} else {
		r.media = jsonMedia
	}
	return r
}

// Makes does the work of Gives for a route that answers 201.
func (r Route[Q]) Makes(summary string, answer any) Route[Q] {
	r = r.Gives(summary, answer)
	r.status = http.StatusCreated
	return r
}

// Writes does the work of Gives for a route that answers in another format than JSON.
func (r Route[Q]) Writes(summary, media string) Route[Q] {
	r.summary, r.status, r.media = summary, http.StatusOK, media
	return r
}

// Or declares another type in which the answer can be had, by Accept.
func (r Route[Q]) Or(media string) Route[Q] {
	r.other = media
	return r
}

// errDescribed ends a request that is only described, as soon as its shape is known.
var errDescribed = errors.New("the request is described, not served")

// Describe describes the routes of a family. Each route is served a request whose readers note what they are asked for.
// It ends at Shape or Read, which a route calls before it does anything. A route without them has no parameters.
func (a API[Q]) Describe() ([]openapi.Operation, error) {
	var all []openapi.Operation
	var problems []error
	for _, address := range a.Table {
		for _, method := range strings.Split(address.Allow, ", ") {
			o, err := a.describe(address.Methods[method])
			problems = append(problems, err)
			all = append(all, o)
		}
	}
	return all, errors.Join(problems...)
}

func (a API[Q]) describe(r *Route[Q]) (o openapi.Operation, err error) {
	o = openapi.Operation{
		ID: r.id(), Method: r.Method, Path: r.Path, Summary: r.summary, Role: string(r.Role), Public: r.Role == Public, Tag: groupOf(r.Path),
		Status: r.status, Media: r.media, Other: r.other, Answer: r.answer, ShapeStatus: a.ShapeStatus,
	}
	if o.Tag.Name == "" {
		return o, fmt.Errorf("describing %s %s: its collection is in no group of operations", r.Method, r.Path)
	}
	q := &Request{
		HTTP: &http.Request{Method: r.Method, Header: http.Header{}}, Params: map[string]string{}, Query: validate.DescribedQuery(),
		Call: &app.Call{Caller: &authn.Caller{Powers: caller.Powers{Admin: true}}}, Core: &app.Core{Accounts: &accounts.Catalog{Base: new(accounts.Base)}}, Record: &storage.AuditEntry{Detail: map[string]any{}},
		path: r.Path, role: r.Role, audit: r.Audit, shapeStatus: a.ShapeStatus, described: &o,
	}
	q.Call.Core = q.Core
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("describing %s %s: it works before it has read its request: %v\n%s", r.Method, r.Path, fault, debug.Stack())
		}
		o.Query = q.Query.Described()
	}()
	var refused *Refusal // of this caller, before the request is read: its body has no members then
	if _, err := r.Serve(a.Of(q)); err != nil && !errors.Is(err, errDescribed) && !errors.As(err, &refused) {
		return o, fmt.Errorf("describing %s %s: %w", r.Method, r.Path, err)
	}
	return o, nil
}

// Named gives an operation another name than that of its function, which serves several.
func (r Route[Q]) Named(name string) Route[Q] {
	r.name = name
	return r
}

// id returns the name of the operation.
func (r *Route[Q]) id() string {
	name := cmp.Or(r.name, functionName(r.Serve))
	if strings.Contains(r.Path, "/by-slug/") {
		name += "BySlug"
	}
	return name
}

// functionName returns the name of a function without its package.
func functionName(f any) string {
	name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	return name[strings.LastIndex(name, ".")+1:]
}
