// Package eventstream reads the options with which clients ask for a stream on /sse.
package eventstream

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway/body"
)

// Names of the events of /sse that the API defines.
const (
	EventConnected    = "connected"
	EventDataUpdate   = "data_update"
	EventStatusChange = "status_change"
	EventError        = "error"
)

var knownEvents = []string{EventConnected, EventDataUpdate, EventStatusChange, EventError}

// maxWord is the limit for the words of a client's options, in characters.
const maxWord = 256

// Request holds the options of a client for its stream on /sse.
type Request struct {
	// Types are the events that pass; nil: all. Unknown types are left out.
	Types []string
	// ObjectType narrows data_update events to those of one type; "": all.
	ObjectType string
	// Limit is the number of data_update events after which the stream ends; 0: never.
	Limit int64
}

// Filters are the request's filters as a JSON object, for the conditions of policies; nil when there are none.
func (e *Request) Filters() []byte {
	if e.ObjectType == "" && e.Limit == 0 {
		return nil
	}
	encoded, err := json.Marshal(struct {
		ObjectType string `json:"object_type,omitempty"`
		Limit      int64  `json:"limit,omitempty"`
	}{e.ObjectType, e.Limit})
	if err != nil {
		return nil // not reached: a string and a number
	}
	return encoded
}

// Read reads the optional body of a request. Only the two filters in it reach the upstream.
func Read(r *http.Request, limit int64) (*Request, error) {
	object, err := body.ReadJSON(r, limit, true)
	if err != nil {
		return nil, err
	}
	e := new(Request)
	if types := object.Texts("event_types", validate.List{}, validate.Text{Max: maxWord}); len(types.Value) > 0 {
		e.Types = []string{}
		for _, name := range types.Value {
			if slices.Contains(knownEvents, name) {
				e.Types = append(e.Types, name)
			}
		}
	}
	if filters := object.Object("filters", 0); filters.Set() && filters.Value != nil {
		e.ObjectType = filters.Value.Text("object_type", validate.Text{Flags: validate.Nullable, Max: maxWord}).Value
		e.Limit = filters.Value.Int("limit", validate.Integer{Flags: validate.Nullable, Min: 1}).Value
	}
	return e, object.Err()
}

// Accepted reports whether the client can read an event stream: Accept is absent, accepts everything, or names
// event streams.
func Accepted(h http.Header) bool {
	values := h.Values("Accept")
	if len(values) == 0 {
		return true
	}
	for _, value := range values {
		for kind := range strings.SplitSeq(value, ",") {
			kind, _, _ = strings.Cut(kind, ";")
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "*/*", "text/*", "text/event-stream":
				return true
			}
		}
	}
	return false
}
