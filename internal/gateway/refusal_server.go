package gateway

import (
	"net/http"
	"strconv"
	"time"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
)

// These are the refusals of calls that cannot be carried to their server: it is unknown, its user has no account there,
// the call cannot be recorded, or the server's answer cannot be used.

// RefuseSlash answers 404: the path has a slash too many at its end. address is the right one.
func RefuseSlash(w http.ResponseWriter, address string) {
	WriteError(w, NotFound, "There is nothing at this address. The address of an MCP server has no slash at its end: "+address)
}

// RefuseNoServer answers 404: the caller's organization has no server of that name.
func RefuseNoServer(w http.ResponseWriter) {
	WriteError(w, ServerNotFound, "There is no server of that name")
}

// RefuseServerUnread answers 503: the server cannot be looked up.
func RefuseServerUnread(w http.ResponseWriter) {
	WriteError(w, Unavailable, "The server cannot be looked up at the moment")
}

// TextNotConnected is the message for a user without a connection.
const TextNotConnected = "Your account is not connected to this server"

// NotConnected returns the refusal of a call whose user has no credential for the server. address is that of the page
// for connecting. reason gives the cause, in words for the user; "" when they never connected.
func NotConnected(address, reason string) *ServiceError {
	message := TextNotConnected
	if reason != "" {
		message += ": " + reason
	}
	return &ServiceError{Name: ServerNotConnected, Message: message, Details: map[string]any{"connect_url": address}}
}

// RefuseNotConnected answers 403 with NotConnected.
func RefuseNotConnected(w http.ResponseWriter, address, reason string) {
	NotConnected(address, reason).Write(w)
}

// Unvouched returns the refusal (403) of a call for which nobody gives a token. Nobody connects an account to such a server:
// reason says what to do, in words for the user.
func Unvouched(reason string) *ServiceError {
	return &ServiceError{Name: Forbidden, Message: "There is no token for this server: " + reason}
}

// RefuseConnectionUnread answers 503: whether the user has an account at the server cannot be read.
func RefuseConnectionUnread(w http.ResponseWriter) {
	WriteError(w, Unavailable, "The connection cannot be read at the moment")
}

// RefuseProviderAway answers 503: the authorization server of the third party is needed, and does not answer. The
// client may try again after a time. Seconds are rounded up: a client that comes earlier is only refused again.
func RefuseProviderAway(w http.ResponseWriter, after time.Duration) {
	w.Header().Set("Retry-After", strconv.FormatInt(max(1, int64((after+time.Second-1)/time.Second)), 10))
	WriteError(w, Unavailable, "The account's provider cannot be reached to refresh the connection; try again later")
}

// TextUnrecorded is the message for a caller whose call the audit log cannot record. The error forms of models' clients
// end it with a period.
const TextUnrecorded = "The call cannot be recorded at the moment, and is not made"

// RefuseUnrecorded answers 503: the audit log cannot record the call.
func RefuseUnrecorded(w http.ResponseWriter) { WriteError(w, Unavailable, TextUnrecorded) }

// TextUpstream is the only message for a client about a failed forwarding, whatever failed. A text that tells a closed
// port from a filtered one, or a refused address from a dead one, would make the gateway a port scanner (S10).
const TextUpstream = "The upstream server did not give a usable answer"

// RefuseUpstream answers 502: the server gave no usable answer.
func RefuseUpstream(w http.ResponseWriter, form Form) {
	form.refuse(w, jsonrpc.CodeInternalError, UpstreamError, TextUpstream)
}

// UpstreamFailure returns the answer to a message in place of its server, which gave no usable one.
func UpstreamFailure(id []byte) []byte {
	return RPCError(id, jsonrpc.CodeInternalError, TextUpstream, UpstreamError)
}

// UpstreamEvent returns the data of the error event on a stream that fails because of its server.
func UpstreamEvent(message string) ServiceError {
	return ServiceError{Name: UpstreamError, Message: message}
}

// RefuseCredentialWanted answers 502: the server asks for a credential although its directory entry names none.
func RefuseCredentialWanted(w http.ResponseWriter, form Form) {
	form.refuse(w, jsonrpc.CodeInternalError, UpstreamError,
		"The server asks for a credential, and the gateway has not been told of any. An administrator has to set the provider of its directory entry.")
}

// RefuseNoMCP answers 502: the server speaks another protocol.
func RefuseNoMCP(w http.ResponseWriter, id []byte) {
	RPC(id).refuse(w, jsonrpc.CodeInternalError, UpstreamError, "The server does not speak MCP; its events are at /sse")
}

// RefuseNoStream answers 502: the server has no event stream.
func RefuseNoStream(w http.ResponseWriter) {
	WriteError(w, UpstreamError, "server has no event stream")
}

// RefuseByUpstream answers in place of a page with which the server refuses a request: 404 or 405, as name says.
// Clients find out by these statuses which transport to speak.
func RefuseByUpstream(w http.ResponseWriter, name ErrorName) {
	WriteError(w, name, "The upstream server does not take this request")
}
