package jsonrpc

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// Error codes of JSON-RPC 2.0, section 5.1.
const (
	CodeParseError     = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternalError  = -32603
)

// Error codes of MCP.
const (
	CodeResourceNotFound           = -32002 // up to 2025-11-25 only
	CodeURLElicitationRequired     = -32042 // 2025-11-25 only
	CodeHeaderMismatch             = -32020 // from 2026-07-28
	CodeMissingClientCapability    = -32021 // from 2026-07-28
	CodeUnsupportedProtocolVersion = -32022 // from 2026-07-28
)

// Our own error codes, outside the range that JSON-RPC and MCP reserve.
const (
	CodeNotConnected = -31401
	CodeForbidden    = -31403
	CodeRateLimited  = -31429
)

// Error describes a message that is refused before any decision. It is answered with HTTP 400.
type Error struct {
	Code    int
	Message string // safe to show: no part of the body is in it
	ID      []byte // of the refused request, as it was written; nil when there is none or the body is a batch
	Err     error  // the *strictjson.SyntaxError when the text is refused, else nil
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the syntax error.
func (e *Error) Unwrap() error { return e.Err }

// Response returns the error as a JSON-RPC response.
func (e *Error) Response() []byte { return ErrorResponse(e.ID, e.Code, e.Message, nil) }

// ErrorResponse writes a JSON-RPC error response without blanks. id is the request's id as it was written; nil
// becomes null (JSON-RPC 2.0 section 5). data is encoded with encoding/json; nil, or a value that cannot be encoded,
// is left out.
func ErrorResponse(id []byte, code int, message string, data any) []byte {
	b := make([]byte, 0, 128+len(id)+len(message))
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	if id == nil {
		b = append(b, "null"...)
	} else {
		b = append(b, id...)
	}
	b = append(b, `,"error":{"code":`...)
	b = strconv.AppendInt(b, int64(code), 10)
	b = append(b, `,"message":`...)
	b = append(b, encode(message)...)
	if data != nil {
		if encoded := encode(data); encoded != nil {
			b = append(b, `,"data":`...)
			b = append(b, encoded...)
		}
	}
	return append(b, '}', '}')
}

// ToolError writes the response to a tools/call that failed in a way that its model should know of: a result with
// isError. modern means the revision 2026-07-28, whose results name their type.
func ToolError(id []byte, text string, modern bool) []byte {
	b := make([]byte, 0, 128+len(id)+len(text))
	b = append(append(append(b, `{"jsonrpc":"2.0","id":`...), id...), `,"result":{"content":[{"type":"text","text":`...)
	b = append(append(b, encode(text)...), `}],"isError":true`...)
	if modern {
		b = append(b, `,"resultType":"complete"`...)
	}
	return append(b, '}', '}')
}

// Result returns the answer to the request of that id.
func Result(id []byte, result any) []byte {
	b := append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), `,"result":`...)
	return append(append(b, encode(result)...), '}')
}

// NotificationOf returns a notification of the gateway's own; nil params are left out.
func NotificationOf(method string, params any) []byte {
	b := append([]byte(`{"jsonrpc":"2.0","method":`), encode(method)...)
	if params != nil {
		b = append(append(b, `,"params":`...), encode(params)...)
	}
	return append(b, '}')
}

// encode encodes like json.Marshal, without the escapes that HTML needs.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
