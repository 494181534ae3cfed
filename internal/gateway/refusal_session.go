package gateway

import (
	"net/http"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
)

// These are the refusals of sessions of MCP.

// RefuseSessionGone answers 404: the session has ended, or is another caller's. A 403 would make some clients log in.
// begin names what begins a new one.
func RefuseSessionGone(w http.ResponseWriter, begin string) {
	WriteError(w, NotFound, "There is no such session; begin anew with "+begin)
}

// RefuseSessionless answers 404: the server has no sessions any more.
func RefuseSessionless(w http.ResponseWriter) {
	WriteError(w, NotFound, "The server speaks 2026-07-28, which has no sessions; begin anew with server/discover")
}

// RefuseSessionUnread answers 503: the key of the session cannot be looked up. A 404 would make the client give up a
// valid session.
func RefuseSessionUnread(w http.ResponseWriter) {
	WriteError(w, Unavailable, "The session cannot be read at the moment")
}

// RefuseSessionUnkept answers 503: a conversation that the gateway leads can be neither stored nor read.
func RefuseSessionUnkept(w http.ResponseWriter) {
	WriteError(w, Unavailable, "The gateway cannot keep this conversation at the moment")
}

// RefuseTwoSessions answers 400: the header and the address of a message name a session each.
func RefuseTwoSessions(w http.ResponseWriter, id []byte) {
	RPC(id).refuse(w, jsonrpc.CodeInvalidRequest, BadRequest, "The request names two sessions, in its header and in its address")
}
