package sse

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/durward-gateway/durward/internal/gateway/eventstream"
	"github.com/durward-gateway/durward/internal/proxy/sse"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// options holds a client's options for its stream.
type options struct{ *eventstream.Request }

// query returns the query for the upstream.
func (o options) query() url.Values {
	query := make(url.Values)
	if o.ObjectType != "" {
		query.Set("object_type", o.ObjectType)
	}
	if o.Limit > 0 {
		query.Set("limit", strconv.FormatInt(o.Limit, 10))
	}
	return query
}

// passes reports whether an upstream's event is one that the client asked for.
func (o options) passes(e *sse.Event) bool {
	switch {
	case o.Types != nil && !slices.Contains(o.Types, e.Name):
		return false
	case e.Name == eventstream.EventDataUpdate && o.ObjectType != "":
		return objectType(e.Data) == o.ObjectType
	}
	return true
}

// objectType returns the member `type` of an event's data; "" when there is none.
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

// rename gives an event of the upstream another name when it has one of the gateway's own events, and reports whether
// it did: an upstream must not be able to say that the stream is ready, or why it failed, in the gateway's name.
func rename(e *sse.Event) bool {
	if e.Name != eventstream.EventConnected && e.Name != eventstream.EventError {
		return false
	}
	e.Name = "upstream_" + e.Name
	return true
}

// frame returns an event in the form for the client. It is unchanged, unless it was renamed, or its data is not JSON;
// such data becomes a JSON string.
func frame(e *sse.Event, renamed bool) ([]byte, error) {
	data := e.Data
	// encoding/json accepts any bytes in a string; RFC 8259 section 8.1 requires UTF-8.
	if whole := utf8.Valid(data) && json.Valid(data); whole && !renamed {
		return e.Raw, nil
	} else if !whole {
		quoted, err := json.Marshal(string(data))
		if err != nil {
			return nil, err
		}
		data = quoted
	}
	var out []byte
	if e.HasID {
		out = append(append(append(out, "id: "...), e.ID...), '\n')
	}
	return sse.AppendEvent(out, e.Name, data)
}
