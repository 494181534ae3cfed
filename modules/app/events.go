package app

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/inbound"
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

// EventsRequest holds the options of a client for its stream on /sse.
type EventsRequest struct {
	// Types are the events that pass; nil: all. Unknown types are left out.
	Types []string
	// ObjectType narrows data_update events to those of one type; "": all.
	ObjectType string
	// Limit is the number of data_update events after which the stream ends; 0: never.
	Limit int64
}

// Filters are the request's filters as a JSON object, for the conditions of policies; nil when there are none.
func (e *EventsRequest) Filters() []byte {
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

// ReadEvents reads the request of a stream on /sse once for all the handlers that need it. When the request must not
// get a stream, ReadEvents answers it, counts it and reports false.
func (c *Call) ReadEvents(w http.ResponseWriter, r *http.Request) (*EventsRequest, bool) {
	if c.Events != nil {
		return c.Events, true
	}
	events, outcome := c.readEvents(w, r)
	if outcome != "" {
		c.Core.Metrics.Calls.WithLabelValues("sse", outcome).Inc()
		return nil, false
	}
	c.Events = events
	return events, true
}

// readEvents returns the outcome of a request that it answered, "" for a request that goes on.
func (c *Call) readEvents(w http.ResponseWriter, r *http.Request) (events *EventsRequest, outcome string) {
	if r.Method != http.MethodGet {
		gateway.WriteMethodNotAllowed(w, http.MethodGet)
		return nil, "refused"
	}
	if !acceptsEvents(r.Header) {
		gateway.RefuseNoEvents(w)
		return nil, "refused"
	}
	if c.Core.shed(w, r, true) {
		return nil, "unavailable"
	}
	tag, ok := inbound.TrackingTag(r.Header)
	if !ok {
		gateway.RefuseTracking(w, gateway.Plain)
		return nil, "refused"
	}
	c.Log.Session = tag
	events, err := readEventsRequest(r, c.Core.Sizes.SSE)
	if err != nil {
		if !WriteShapeError(w, err) {
			c.Core.Log.Error("reading the options of a stream", slog.Any("error", err))
			gateway.WriteInternalError(w)
		}
		return nil, "refused"
	}
	c.audit.header = r.Header
	return events, ""
}

// readEventsRequest reads the optional body of a request. Only the two filters in it reach the upstream.
func readEventsRequest(r *http.Request, limit int64) (*EventsRequest, error) {
	body, err := ReadJSON(r, limit, true)
	if err != nil {
		return nil, err
	}
	e := new(EventsRequest)
	if types := body.Texts("event_types", validate.List{}, validate.Text{Max: maxWord}); len(types.Value) > 0 {
		e.Types = []string{}
		for _, name := range types.Value {
			if slices.Contains(knownEvents, name) {
				e.Types = append(e.Types, name)
			}
		}
	}
	if filters := body.Object("filters", 0); filters.Set() && filters.Value != nil {
		e.ObjectType = filters.Value.Text("object_type", validate.Text{Flags: validate.Nullable, Max: maxWord}).Value
		e.Limit = filters.Value.Int("limit", validate.Integer{Flags: validate.Nullable, Min: 1}).Value
	}
	return e, body.Err()
}

// acceptsEvents reports whether the client can read an event stream: Accept is absent, accepts everything, or names
// event streams.
func acceptsEvents(h http.Header) bool {
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
