package forward

import (
	"errors"
	"strings"

	"github.com/durward-gateway/durward/internal/proxy/http1"
)

// HeaderError says that a header of the client cannot be forwarded; the caller answers 400. Nothing was sent.
type HeaderError struct {
	Name   string // canonical
	Reason string
}

func (e *HeaderError) Error() string { return "header " + e.Name + " " + e.Reason }

const (
	sessionHeader  = "Mcp-Session-Id"
	acceptEncoding = "Accept-Encoding"
	traceParent    = "Traceparent"
	traceState     = "Tracestate"
)

// userAgent is sent for clients without a User-Agent. net/http's own would be wrong, and some edge servers refuse a
// request without one.
const userAgent = "durward"

// All requests and answers share these values; no code writes to them.
var (
	jsonType    = []string{"application/json"}
	noTransform = []string{"no-cache, no-transform"}
	noBuffering = []string{"no"}
)

// loopHeader lists the proxies that a request came through (RFC 8586).
const loopHeader = "Cdn-Loop"

// maxLoop bounds the bytes of this header that are passed on. A loop through this gateway is found long before.
const maxLoop = 1 << 10

// loop joins the names that came with a request and the gateway's own.
func loop(came []string, own string) string {
	before := strings.Join(came, ", ")
	if before == "" || len(before) > maxLoop || !http1.ValidFieldValue(before) {
		return own
	}
	return before + ", " + own
}

type occurrence uint8

const (
	never occurrence = iota
	once             // two values could be read differently by two parsers
	many             // a list by its definition
)

// requestRule is the allow-list towards the upstream. Its keys are canonical, as net/http's server makes them; other
// spellings do not match and are dropped. Mcp-Session-Id is not on the list: the gateway's own id is sealed, and the
// caller adds the upstream's. Of Mcp-* it has the headers of 2026-07-28; the caller leaves out those that do not belong
// to the message. Accept-Language is dropped: with it a tool could have another description for each language, and so
// count as another tool for each caller (attack M13).
func requestRule(name string) occurrence {
	switch name {
	case "Content-Type", "User-Agent", "Last-Event-Id", traceParent, "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name":
		return once
	case "Accept", traceState, "Baggage":
		return many
	}
	if strings.HasPrefix(name, "Mcp-Param-") { // even when the argument is named session-id
		return once
	}
	return never
}

// responseRule is the allow-list towards the client. Content-Length is decided elsewhere; Date is the server's own.
// Never on it are Set-Cookie, WWW-Authenticate (the upstream's challenge would send the client to a foreign login),
// Location, Server, CORS headers, hop-by-hop headers and trailers.
func responseRule(name string) occurrence {
	switch name {
	case "Content-Type", "Retry-After", "Last-Modified", "Etag":
		return once
	case "Cache-Control", "Allow":
		return many
	}
	if strings.HasPrefix(name, "Mcp-") && !strings.HasSuffix(name, "-Session-Id") {
		return once
	}
	return never
}

// requestFields appends the upstream's headers to out, without the credential.
func requestFields(out []http1.Field, r *Request) ([]http1.Field, error) {
	agent := false
	for name, values := range r.Header {
		rule := r.Rules.request(name)
		if rule == never || len(values) == 0 || r.TraceParent != "" && (name == traceParent || name == traceState) || r.EventsOnly && strings.HasPrefix(name, "Mcp-") { // /sse is not MCP
			continue
		}
		if err := checkValues(rule, name, values); err != nil {
			return out, err
		}
		agent = agent || name == "User-Agent"
		for _, v := range r.passed(name, values) {
			out = append(out, http1.Field{Name: name, Value: v})
		}
	}
	if !agent {
		out = append(out, http1.Field{Name: "User-Agent", Value: userAgent})
	}
	if r.EventsOnly {
		out = append(out, http1.Field{Name: "Accept", Value: "text/event-stream"})
	}
	if r.TraceParent != "" {
		out = append(out, http1.Field{Name: traceParent, Value: r.TraceParent})
		if r.TraceState != "" {
			out = append(out, http1.Field{Name: traceState, Value: r.TraceState})
		}
	}
	if r.SessionID != "" {
		if !visibleASCII(r.SessionID) {
			return out, &HeaderError{sessionHeader, "has characters other than visible ASCII"}
		}
		out = append(out, http1.Field{Name: sessionHeader, Value: r.SessionID})
	}
	// Filtering and the event cap read the answer. An encoding would hide it, and could hide a decompression bomb
	// (W09).
	return append(out, http1.Field{Name: acceptEncoding, Value: "identity"}), nil
}

// checkValues checks the values of one of the client's headers.
func checkValues(rule occurrence, name string, values []string) error {
	if rule == once && len(values) > 1 {
		return &HeaderError{name, "is given more than once"}
	}
	for _, v := range values {
		if !http1.ValidFieldValue(v) {
			return &HeaderError{name, "has a value with a control character"}
		}
	}
	return nil
}

// passed returns the values that the upstream sees of one of the client's headers. They are none for a header that the
// gateway sends itself.
func (r *Request) passed(name string, values []string) []string {
	switch name {
	case "Content-Type":
		if len(r.Body) == 0 {
			return nil
		}
		// The type was checked. It is sent in one spelling, because other servers read parameters and other
		// spellings differently.
		return jsonType
	case "Accept":
		if r.EventsOnly {
			return nil
		}
	case sessionHeader:
		if r.SessionID != "" {
			return nil
		}
	case acceptEncoding:
		return nil
	}
	return values
}

// maxAnswerFields is the largest number of header fields of an answer, the same over net/http and http1. A search for
// one field compares it with all others.
const maxAnswerFields = 256

var errTooManyFields = errors.New("too many header fields")

// checkAnswerFields refuses an answer whose headers cannot be passed on safely (H08).
func checkAnswerFields(fields []http1.Field, rules *Rules) *Error {
	for i := range fields {
		f := &fields[i]
		rule := rules.response(f.Name)
		if f.Name == sessionHeader && rules == nil {
			rule = once
		}
		if rule == never {
			continue
		}
		if rule == once && given(fields[:i], f.Name) {
			return upstreamError("header " + f.Name + " is given more than once")
		}
		if !http1.ValidFieldValue(f.Value) {
			return upstreamError("header " + f.Name + " has a control character")
		}
	}
	return nil
}

func given(fields []http1.Field, name string) bool {
	for i := range fields {
		if fields[i].Name == name {
			return true
		}
	}
	return false
}

func visibleASCII(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return true
}
