// Package routes holds the common part of the families of the API: the table of addresses, the way of a request through
// it, and the reading and refusing of requests. The table declares who may call an address, whose objects it sees and
// how it is audited.
package routes

import (
	"net/http"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/modules/app"
)

// API is a family of the API. It needs durward_auth before it.
type API[Q any] struct {
	Table Table[Q]
	// Of makes the family's own request from a request that was admitted to its route.
	Of func(*Request) Q
	// Refuse answers an error of a route, and a request that cannot be read.
	Refuse func(w http.ResponseWriter, r *http.Request, err error)
	// ShapeStatus is the status of the answer to requests of the wrong shape.
	ShapeStatus int
}

// Created is the result of a route that answers 201.
type Created struct{ Body any }

// Streamed is the result of a route that writes its answer itself. On an error nothing was written; the error is for
// API.Refuse.
type Streamed func(http.ResponseWriter) error

// ServeHTTP answers every request.
func (a API[Q]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	address, params := a.Table.Find(r.URL.Path)
	if address == nil {
		gateway.WriteNotFound(w)
		return
	}
	chosen, ok := address.Methods[r.Method]
	if !ok {
		gateway.WriteMethodNotAllowed(w, address.Allow)
		return
	}
	q := &Request{HTTP: r, Params: params, path: chosen.Path, role: chosen.Role, audit: chosen.Audit, shapeStatus: a.ShapeStatus}
	if !q.admit(w, chosen.Role) { //nolint:contextcheck // a record of a refusal outlives the request
		return
	}
	var err error
	if q.Query, err = validate.ParseQuery(r.URL.RawQuery); err != nil {
		a.Refuse(w, r, err)
		return
	}
	if err := q.audited(); err != nil { //nolint:contextcheck // the request has it
		a.Refuse(w, r, err)
		return
	}
	body, err := chosen.Serve(a.Of(q))
	if err == nil {
		q.unchanged() //nolint:contextcheck // its record outlives the request
		err = answer(w, body)
	} else {
		q.unaudited(err) //nolint:contextcheck // a record of a refusal outlives the request
	}
	if err != nil {
		a.Refuse(w, r, err)
	}
}

// answer writes the result of a route. An error is that of a streamed answer before its first byte.
func answer(w http.ResponseWriter, body any) error {
	switch body := body.(type) {
	case nil:
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
	case Streamed:
		return body(w)
	case Created:
		gateway.WriteJSON(w, http.StatusCreated, body.Body)
	default:
		gateway.WriteJSON(w, http.StatusOK, body)
	}
	return nil
}

// admit checks the caller against the demands of the route, or answers the refusal.
func (q *Request) admit(w http.ResponseWriter, role Role) bool {
	require := app.AuthenticatedCall
	if role == Public {
		require = app.RequireCall
	}
	call, ok := require(w, q.HTTP)
	if !ok {
		return false
	}
	q.Call, q.Core = call, call.Core
	if role == Public || q.May(role) {
		return true
	}
	q.unaudited(refusals[role])
	refusals[role].Write(w)
	return false
}
