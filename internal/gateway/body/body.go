// Package body reads the bodies of requests to the API, and answers those that have the wrong shape.
package body

import (
	"errors"
	"net/http"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// WriteProblems answers 422 with all problems of a request.
func WriteProblems(w http.ResponseWriter, problems validate.Problems) {
	gateway.WriteJSON(w, http.StatusUnprocessableEntity, problems)
}

// WriteShapeError answers an error of internal/api/validate or of reading a body. It reports whether err was one.
func WriteShapeError(w http.ResponseWriter, err error) bool {
	var problems validate.Problems
	var query *validate.QueryError
	var body *forward.BodyError
	switch {
	case errors.As(err, &problems):
		WriteProblems(w, problems)
	case errors.As(err, &query):
		gateway.RefuseQuery(w, query.Reason)
	case errors.Is(err, validate.ErrMedia):
		gateway.RefuseMedia(w, err.Error())
	case errors.As(err, &body):
		body.Answer(w, func() { gateway.RefuseBody(w, gateway.Plain, body.Status) })
	default:
		return false
	}
	return true
}

// ReadJSON reads the body of a request as an object of at most limit bytes. A request without a body needs no type; it
// gives an empty object when that is allowed. Errors are for WriteShapeError.
func ReadJSON(r *http.Request, limit int64, emptyAllowed bool) (*validate.Object, error) {
	if r.ContentLength == 0 && len(r.TransferEncoding) == 0 {
		if emptyAllowed {
			return validate.ParseBody([]byte("{}"), strictjson.Limits{})
		}
		return validate.ParseBody(nil, strictjson.Limits{}) // says that it is missing
	}
	if err := validate.CheckMedia(r.Header); err != nil {
		return nil, err
	}
	body, err := forward.ReadBody(r, limit)
	if err != nil {
		return nil, err
	}
	return validate.ParseBody(body, strictjson.Limits{MaxBytes: int(limit)})
}
