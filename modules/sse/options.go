package sse

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/durward-gateway/durward/internal/ssewire"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/internal/validate"
	"github.com/durward-gateway/durward/modules/app"
)

// Names of events that the API defines.
const (
	eventConnected    = "connected"
	eventDataUpdate   = "data_update"
	eventStatusChange = "status_change"
	eventError        = "error"
)

var knownEvents = []string{eventConnected, eventDataUpdate, eventStatusChange, eventError}

// maxWord bounds the words of a client's options, in characters.
const maxWord = 256

// options is what a client asks of its stream.
type options struct {
	// types are the events that pass; nil: all. Types that nobody knows are left out.
	types []string
	// objectType narrows data_update events to those of one type; "": all.
	objectType string
	// limit is the number of data_update events after which the stream ends; 0: never.
	limit int64
}

// readOptions reads the optional body of a request. Nothing in it reaches the upstream but the two filters.
func readOptions(r *http.Request, limit int64) (options, error) {
	body, err := app.ReadJSON(r, limit, true)
	if err != nil {
		return options{}, err
	}
	var o options
	if types := body.Texts("event_types", validate.List{}, validate.Text{Max: maxWord}); len(types.Value) > 0 {
		o.types = []string{}
		for _, name := range types.Value {
			if slices.Contains(knownEvents, name) {
				o.types = append(o.types, name)
			}
		}
	}
	if filters := body.Object("filters", validate.Nullable); filters.Set() && filters.Value != nil {
		o.objectType = filters.Value.Text("object_type", validate.Text{Flags: validate.Nullable, Max: maxWord}).Value
		o.limit = filters.Value.Int("limit", validate.Integer{Flags: validate.Nullable, Min: 1}).Value
	}
	return o, body.Err()
}

// query is what the upstream is told.
func (o options) query() url.Values {
	query := make(url.Values)
	if o.objectType != "" {
		query.Set("object_type", o.objectType)
	}
	if o.limit > 0 {
		query.Set("limit", strconv.FormatInt(o.limit, 10))
	}
	return query
}

// passes reports whether an upstream's event is one that the client asked for.
func (o options) passes(e *ssewire.Event) bool {
	switch {
	case e.Name == eventConnected || e.Name == eventError:
		return true
	case o.types != nil && !slices.Contains(o.types, e.Name):
		return false
	case e.Name == eventDataUpdate && o.objectType != "":
		return objectType(e.Data) == o.objectType
	}
	return true
}

// objectType is the member `type` of an event's data; "" when the data does not say.
func objectType(data []byte) string {
	value, err := strictjson.Parse(data, strictjson.Limits{})
	if err != nil || value.Kind() != strictjson.Object {
		return ""
	}
	member, ok := value.Get("type")
	if !ok || member.Kind() != strictjson.String {
		return ""
	}
	return member.Str()
}

// frame is an event as the client gets it: as it came, unless its data is not JSON, which becomes a JSON string.
func frame(e *ssewire.Event) ([]byte, error) {
	// encoding/json takes any bytes in a string; RFC 8259 section 8.1 takes UTF-8.
	if utf8.Valid(e.Data) && json.Valid(e.Data) {
		return e.Raw, nil
	}
	quoted, err := json.Marshal(string(e.Data))
	if err != nil {
		return nil, err
	}
	var out []byte
	if e.HasID {
		out = append(append(append(out, "id: "...), e.ID...), '\n')
	}
	return ssewire.AppendEvent(out, e.Name, quoted)
}
