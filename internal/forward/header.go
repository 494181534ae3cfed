package forward

import (
	"errors"
	"strings"

	"github.com/durward-gateway/durward/internal/http1"
)

// HeaderError is a header of the client's that cannot be forwarded: 400 at the caller. Nothing was sent.
type HeaderError struct {
	Name   string // canonical
	Reason string
}

func (e *HeaderError) Error() string { return "header " + e.Name + " " + e.Reason }

const (
	sessionHeader  = "Mcp-Session-Id"
	acceptEncoding = "Accept-Encoding"
)

// userAgent is sent for clients that name none: net/http's own would be wrong, and some edges refuse a request without.
const userAgent = "durward"

// Shared by all requests and answers, and never written to.
var (
	jsonType    = []string{"application/json"}
	noTransform = []string{"no-cache, no-transform"}
	noBuffering = []string{"no"}
)

// loopHeader names those that a request came through (RFC 8586).
const loopHeader = "Cdn-Loop"

// maxLoop is how much is passed on of what others said there, in bytes: a loop through us is found long before.
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
	once             // two of it are two opinions for two parsers
	many             // a list by its definition
)

// requestRule is the allow-list towards the upstream. Keys are canonical, as net/http's server makes them; anything else
// does not match and stays behind. Mcp-Session-Id is not on it: the gateway's own id is sealed, the caller gives the
// upstream's. Of Mcp-* those are on it that 2026-07-28 has; the caller leaves out what is not of the message. Accept-Language stays behind: a
// tool that is described to each caller in their language would be another tool for each (attack M13).
func requestRule(name string) occurrence {
	switch name {
	case "Content-Type", "User-Agent", "Last-Event-Id", "Traceparent", "Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name":
		return once
	case "Accept", "Tracestate", "Baggage":
		return many
	}
	if strings.HasPrefix(name, "Mcp-Param-") { // also where the argument is called session-id
		return once
	}
	return never
}

// responseRule is the allow-list towards the client. Content-Length is decided apart; Date is the server's own. Never
// here: Set-Cookie, WWW-Authenticate (the upstream's challenge would send the client to a foreign login), Location,
// Server, anything of CORS, hop-by-hop headers and trailers.
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

// requestFields appends the upstream's headers to out, the credential excepted.
func requestFields(out []http1.Field, r *Request) ([]http1.Field, error) {
	agent := false
	for name, values := range r.Header {
		rule := r.Rules.request(name)
		if rule == never || len(values) == 0 || r.EventsOnly && strings.HasPrefix(name, "Mcp-") { // /sse is no MCP
			continue
		}
		if rule == once && len(values) > 1 {
			return out, &HeaderError{name, "is given more than once"}
		}
		for _, v := range values {
			if !http1.ValidFieldValue(v) {
				return out, &HeaderError{name, "has a value with a control character"}
			}
		}
		switch name {
		case "User-Agent":
			agent = true
		case "Content-Type":
			if len(r.Body) == 0 {
				continue
			}
			// It was checked, and is said in one way: parameters and other spellings are read differently by others.
			values = jsonType
		case "Accept":
			if r.EventsOnly {
				continue
			}
		case sessionHeader:
			if r.SessionID != "" {
				continue
			}
		case acceptEncoding:
			continue
		}
		for _, v := range values {
			out = append(out, http1.Field{Name: name, Value: v})
		}
	}
	if !agent {
		out = append(out, http1.Field{Name: "User-Agent", Value: userAgent})
	}
	if r.EventsOnly {
		out = append(out, http1.Field{Name: "Accept", Value: "text/event-stream"})
	}
	if r.SessionID != "" {
		if !visibleASCII(r.SessionID) {
			return out, &HeaderError{sessionHeader, "has characters other than visible ASCII"}
		}
		out = append(out, http1.Field{Name: sessionHeader, Value: r.SessionID})
	}
	// Filtering and the event cap read the answer; an encoding would hide it and could hide a bomb (W09).
	return append(out, http1.Field{Name: acceptEncoding, Value: "identity"}), nil
}

// maxAnswerFields is the most header fields that an answer may have: the same over net/http as over http1. What looks for
// one among them compares it with all others.
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
