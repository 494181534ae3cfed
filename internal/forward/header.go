package forward

import (
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// HeaderError is a header of the client's that cannot be forwarded: 400 at the caller. Nothing was sent.
type HeaderError struct {
	Name   string // canonical
	Reason string
}

func (e *HeaderError) Error() string { return "header " + e.Name + " " + e.Reason }

const sessionHeader = "Mcp-Session-Id"

// userAgent is sent for clients that name none: net/http's own would be wrong, and some edges refuse a request without.
var userAgent = []string{"durward"}

// Shared by all requests and never written to.
var (
	identityOnly = []string{"identity"}
	eventStream  = []string{"text/event-stream"}
	noTransform  = []string{"no-cache, no-transform"}
	noBuffering  = []string{"no"}
)

type occurrence uint8

const (
	never occurrence = iota
	once             // two of it are two opinions for two parsers
	many             // a list by its definition
)

// requestRule is the allow-list towards the upstream. Keys are canonical, as net/http's server makes them; anything else
// does not match and stays behind. Mcp-Session-Id is not on it: the gateway's own id is sealed, the caller gives the
// upstream's. Other names that end in -session-id are tracking only; Mcp-Param-*, which mirrors a tool's argument and
// must be forwarded (SEP-2243), is not such a name even when the argument is called so.
func requestRule(name string) occurrence {
	switch name {
	case "Content-Type", "User-Agent", "Last-Event-Id", "Traceparent":
		return once
	case "Accept", "Accept-Language", "Tracestate", "Baggage":
		return many
	}
	if !strings.HasPrefix(name, "Mcp-") {
		return never
	}
	if strings.HasSuffix(name, "-Session-Id") && !strings.HasPrefix(name, "Mcp-Param-") {
		return never
	}
	return once
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

// requestHeader builds the upstream's headers, the credential excepted.
func requestHeader(r *Request) (http.Header, error) {
	out := make(http.Header, 8) // what an MCP client sends; a ninth doubles it
	for name, values := range r.Header {
		rule := requestRule(name)
		if rule == never || len(values) == 0 {
			continue
		}
		if rule == once && len(values) > 1 {
			return nil, &HeaderError{name, "is given more than once"}
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return nil, &HeaderError{name, "has a value with a control character"}
			}
		}
		// Clipped, so that nobody appends into the client's own slice.
		out[name] = values[:len(values):len(values)]
	}
	if len(r.Body) == 0 {
		delete(out, "Content-Type")
	}
	if out["User-Agent"] == nil {
		out["User-Agent"] = userAgent
	}
	if r.EventsOnly {
		out["Accept"] = eventStream
	}
	if r.SessionID != "" {
		if !visibleASCII(r.SessionID) {
			return nil, &HeaderError{sessionHeader, "has characters other than visible ASCII"}
		}
		out[sessionHeader] = []string{r.SessionID}
	}
	// Filtering and the event cap read the answer; an encoding would hide it and could hide a bomb (W09).
	out["Accept-Encoding"] = identityOnly
	return out, nil
}

// checkResponseHeader refuses an answer whose headers cannot be passed on safely (H08).
func checkResponseHeader(h http.Header) *Error {
	for name, values := range h {
		rule := responseRule(name)
		if name == sessionHeader {
			rule = once
		}
		if rule == never {
			continue
		}
		if rule == once && len(values) > 1 {
			return upstreamError("header " + name + " is given more than once")
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) {
				return upstreamError("header " + name + " has a control character")
			}
		}
	}
	for _, v := range h["Content-Encoding"] {
		if v != "" && !strings.EqualFold(v, "identity") {
			return upstreamError("content is encoded though identity was asked for")
		}
	}
	return nil
}

func visibleASCII(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return false
		}
	}
	return true
}
