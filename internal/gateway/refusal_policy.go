package gateway

import (
	"net/http"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
)

// These are the refusals of policies, and of answers about held calls, that are a whole answer. The verdict on a
// message, and the texts about a held call, are modules/policy's.

// TextDenied is the message for a caller whom a policy refuses.
const TextDenied = "Denied by policy"

// RefuseDenied answers 403: no policy grants the stream.
func RefuseDenied(w http.ResponseWriter) { WriteError(w, Forbidden, TextDenied) }

// RefusePoliciesUnread answers 503: nothing is allowed without the policies.
func RefusePoliciesUnread(w http.ResponseWriter) {
	WriteError(w, Unavailable, "The policies of this server cannot be read at the moment")
}

// RefuseUnasked answers 503: whether a call is approved can be neither asked nor read.
func RefuseUnasked(w http.ResponseWriter) {
	WriteError(w, Unavailable, "The gateway cannot ask for this call's approval at the moment")
}

// RefuseAnswerUnrecorded answers 503: a client's answer about a held call cannot be recorded.
func RefuseAnswerUnrecorded(w http.ResponseWriter) {
	WriteError(w, Unavailable, "The gateway cannot record this answer at the moment")
}

// RefuseUnawaited answers 400: nobody waits for the client's answer about a held call.
func RefuseUnawaited(w http.ResponseWriter) {
	RPC(nil).refuse(w, jsonrpc.CodeInvalidRequest, BadRequest, "Nobody waits for this answer")
}

// RefuseInputResponses answers a round of a held call with answers that nobody asked for.
func RefuseInputResponses(w http.ResponseWriter, id []byte) {
	writeRPC(w, id, http.StatusOK, jsonrpc.CodeInvalidParams, "The inputResponses answer what nobody asked; make the call anew", BadRequest)
}

// RefuseRequestState answers a round of a held call with a state that is not the call's.
func RefuseRequestState(w http.ResponseWriter, id []byte) {
	writeRPC(w, id, http.StatusOK, jsonrpc.CodeInvalidParams, "The requestState is not one of this call; make the call anew", BadRequest)
}
