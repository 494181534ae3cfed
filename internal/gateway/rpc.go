package gateway

import (
	"net/http"
	"strconv"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
)

// RPCError returns an error of JSON-RPC whose data is the service error of that name. A nil id becomes null.
func RPCError(id []byte, code int, message string, name ErrorName) []byte {
	return jsonrpc.ErrorResponse(id, code, message, &ServiceError{Name: name, Message: message})
}

// writeRPC answers with RPCError. The status may be another one than the service error's: in a conversation many
// clients read the bodies of successes only.
func writeRPC(w http.ResponseWriter, id []byte, status, code int, message string, name ErrorName) {
	WriteBody(w, status, RPCError(id, code, message, name))
}

// WriteBody answers with JSON that is encoded already, such as a message of JSON-RPC. The gateway's own answers must
// not be cached.
func WriteBody(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
