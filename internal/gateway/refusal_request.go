package gateway

import (
	"net/http"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
)

// These are the refusals of what a client sent: its headers, its body, the messages in it.

// RefuseTracking answers 400: a header that is for logs has unusual characters.
func RefuseTracking(w http.ResponseWriter, form Form) {
	form.refuse(w, jsonrpc.CodeInvalidRequest, BadRequest, "A session id for tracking has at most 256 visible ASCII characters")
}

// RefuseHeader answers 400: a header of that name cannot be sent on.
func RefuseHeader(w http.ResponseWriter, form Form, name string) {
	form.refuse(w, jsonrpc.CodeInvalidRequest, BadRequest, "The header "+name+" cannot be forwarded")
}

// RefuseNoEvents answers a client that does not read event streams, and leads it to the transport of MCP. The status is
// 200, as existing clients expect.
func RefuseNoEvents(w http.ResponseWriter) {
	WriteJSON(w, http.StatusOK, map[string]string{
		"status": "streaming_not_supported", "message": "Client does not support SSE, use /mcp endpoint instead",
	})
}

// RefuseMedia answers 415. message names the accepted type.
func RefuseMedia(w http.ResponseWriter, message string) { WriteError(w, UnsupportedMediaType, message) }

// RefuseQuery answers 400: the query of the address cannot be read.
func RefuseQuery(w http.ResponseWriter, reason string) {
	WriteError(w, BadRequest, "The query cannot be read: "+reason)
}

// RefuseUnstorable answers 400 to a text that no store takes.
func RefuseUnstorable(w http.ResponseWriter) {
	WriteError(w, BadRequest, "The request has text that cannot be stored: a NUL character, or bytes that are not UTF-8")
}

// RefuseBody answers a body that was not accepted. status is that of reading it: 413, 408, 415, or 400 for a body that
// is incomplete. Clients of MCP get that one as an error of JSON-RPC.
func RefuseBody(w http.ResponseWriter, form Form, status int) {
	switch status {
	case http.StatusRequestEntityTooLarge:
		WriteError(w, PayloadTooLarge, "The body is larger than the gateway takes")
	case http.StatusRequestTimeout:
		WriteError(w, RequestTimeout, "The body came too slowly")
	case http.StatusUnsupportedMediaType:
		WriteError(w, UnsupportedMediaType, "The body must not be encoded")
	default:
		form.refuse(w, jsonrpc.CodeParseError, BadRequest, "The body is incomplete")
	}
}

// RefuseMessage answers 400 with the error of JSON-RPC that reading a message, or its headers, has given.
func RefuseMessage(w http.ResponseWriter, id []byte, code int, message string) {
	RPC(id).refuse(w, code, BadRequest, message)
}

// RefuseBatch answers 400: version is the only revision that has batches.
func RefuseBatch(w http.ResponseWriter, version string) {
	RPC(nil).refuse(w, jsonrpc.CodeInvalidRequest, BadRequest, "Batches exist in revision "+version+" only")
}

// RefuseBatchOfOthers answers 400: a batch has messages that do not belong in its client's conversation.
func RefuseBatchOfOthers(w http.ResponseWriter) {
	RPC(nil).refuse(w, jsonrpc.CodeInvalidRequest, BadRequest, "The batch holds an answer that nobody asked for, or a notification that clients of its revision do not have")
}

// RefuseAnswers answers 400: the client's answers to its server cannot be read.
func RefuseAnswers(w http.ResponseWriter) {
	RPC(nil).refuse(w, jsonrpc.CodeInvalidRequest, BadRequest, "The answers cannot be read")
}
