package jsonrpc

import (
	"encoding/base64"
	"net/http"
	"strings"
)

// Version20260728 is the first protocol version whose headers mirror the body.
const Version20260728 = "2026-07-28"

// Names of MCP's headers in the form in which http.Header keeps them.
const (
	HeaderProtocolVersion = "Mcp-Protocol-Version"
	HeaderMethod          = "Mcp-Method"
	HeaderName            = "Mcp-Name"
	HeaderSessionID       = "Mcp-Session-Id"
)

// Modern reports whether a protocol version is 2026-07-28 or later. Versions are dates and compare as strings. Other
// strings compare likewise, as in the official servers, and the upstream refuses them.
func Modern(version string) bool { return version >= Version20260728 }

// CheckHeaders compares the headers of the revision 2026-07-28 with the message: MCP-Protocol-Version with
// params._meta, Mcp-Method with the method, and Mcp-Name with the name that the method needs. A nil error means that
// they agree, or that the version header is older or absent, when the other headers have no meaning (attack M06). An
// *Error is answered with HTTP 400: CodeHeaderMismatch, or CodeInvalidParams when a request's _meta has no protocol
// version.
//
// Cases and order are those of the reference server, so that a client cannot tell which of the two refused. In
// addition, Mcp-Name is decoded when it is written as =?base64?...?=, methods of tasks need it too (SEP-2663), and a
// header that is given twice is refused, because the upstream may take the other value.
func CheckHeaders(h http.Header, m *Message) error {
	version, single := header(h, HeaderProtocolVersion)
	if !single {
		return mismatch(m, "the MCP-Protocol-Version header is given more than once")
	}
	if !Modern(version) || m.Kind == Response {
		return nil
	}
	if m.ProtocolVersion == "" && m.Kind == Request {
		return &Error{Code: CodeInvalidParams, Message: "Invalid params: missing _meta field \"" + MetaProtocolVersion + "\"", ID: m.ID}
	}
	if m.ProtocolVersion != "" && m.ProtocolVersion != version {
		return mismatch(m, "the MCP-Protocol-Version header does not match the protocol version in _meta")
	}
	method, single := header(h, HeaderMethod)
	switch {
	case !single:
		return mismatch(m, "the Mcp-Method header is given more than once")
	case method == "":
		return mismatch(m, "the Mcp-Method header is missing")
	case method != m.Method:
		return mismatch(m, "the Mcp-Method header does not match the method")
	}
	member, inBody := named(m)
	if member == "" {
		return nil
	}
	name, single := header(h, HeaderName)
	if !single {
		return mismatch(m, "the Mcp-Name header is given more than once")
	}
	if name == "" {
		return mismatch(m, "the Mcp-Name header is missing")
	}
	name, ok := decodeHeader(name)
	if !ok || name != inBody {
		return mismatch(m, "the Mcp-Name header does not match "+member)
	}
	return nil
}

// Named returns the value that Mcp-Name mirrors. ok is false when the method has none.
func Named(m *Message) (name string, ok bool) {
	member, name := named(m)
	return name, member != ""
}

// named returns the member that Mcp-Name mirrors, and its value. member is "" when the method has none.
func named(m *Message) (member, value string) {
	switch m.Method {
	case "tools/call", "prompts/get":
		return "params.name", m.Name
	case "resources/read":
		return "params.uri", m.URI
	case "tasks/get", "tasks/update", "tasks/cancel":
		return "params.taskId", m.TaskID
	}
	return "", ""
}

// header returns the value of a header that must not be given twice, without the blanks around it; "" when absent.
func header(h http.Header, name string) (value string, single bool) {
	switch values := h[name]; len(values) {
	case 0:
		return "", true
	case 1:
		return strings.Trim(values[0], " \t"), true
	}
	return "", false
}

// decodeHeader decodes the form =?base64?...?= (SEP-2243), whose markers are case-sensitive.
func decodeHeader(value string) (string, bool) {
	encoded, ok := strings.CutPrefix(value, "=?base64?")
	if !ok {
		return value, true
	}
	if encoded, ok = strings.CutSuffix(encoded, "?="); !ok {
		return value, true
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(encoded)
	return string(decoded), err == nil && !strings.ContainsAny(encoded, "\r\n")
}

// DecodeHeader decodes the values of a header that mirrors a part of a message. ok is false for several values and
// for a wrong encoding.
func DecodeHeader(values []string) (text string, ok bool) {
	value, single := header(http.Header{"": values}, "")
	if !single {
		return "", false
	}
	return decodeHeader(value)
}

// EncodeHeader writes a text as the value of a header, so that readers get the same text again. The text stays as it
// is, or becomes =?base64?...?= when it has other characters than visible ASCII, blanks around it, or looks encoded.
func EncodeHeader(text string) string {
	encoded := strings.HasPrefix(text, "=?base64?") && strings.HasSuffix(text, "?=") || strings.Trim(text, " \t") != text
	for i := range len(text) {
		encoded = encoded || text[i] < 0x20 || text[i] > 0x7e
	}
	if !encoded {
		return text
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
}

// HeaderMismatch returns the error for a message whose headers disagree with it.
func HeaderMismatch(m *Message, what string) error { return mismatch(m, what) }

func mismatch(m *Message, what string) error {
	return &Error{Code: CodeHeaderMismatch, Message: "Header mismatch: " + what, ID: m.ID}
}
