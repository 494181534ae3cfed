package gateway

import "net/http"

// These are the refusals of requests that have not passed a handler that they have to pass: the configuration has the
// gateway's handlers in the wrong order.

// TextNoLimit is the message for a call that no durward_limit counted. The error forms of models' clients end it with a
// period.
const TextNoLimit = "No durward_limit has seen this call. Put durward_limit after durward_auth and before durward_credential, for models before durward_llm, or write `durward_limit off`"

// RefuseNoCaller answers 401: nobody has authenticated the request.
func RefuseNoCaller(w http.ResponseWriter) {
	WriteError(w, Unauthorized, "This request was not authenticated; durward_auth must come first in the configuration")
}

// RefuseNoServerSet answers 500: nobody has looked up the server. handler is the one that needs it.
func RefuseNoServerSet(w http.ResponseWriter, handler string) {
	WriteError(w, InternalServerError, "This call's server was not looked up; durward_auth must come before "+handler+" in the configuration")
}

// RefuseNoCredential answers 500: the call has no source of credentials.
func RefuseNoCredential(w http.ResponseWriter) {
	WriteError(w, InternalServerError, "This call has no credential; durward_credential must come after durward_auth in the configuration")
}

// RefuseNoDecision answers 500: no policy has judged the call.
func RefuseNoDecision(w http.ResponseWriter) {
	WriteError(w, InternalServerError, "Nobody decided about this call; durward_policy must come between durward_auth and durward_credential in the configuration (`durward_policy off` lets every call pass)")
}

// RefuseNoLimit answers 500: no durward_limit has counted the call.
func RefuseNoLimit(w http.ResponseWriter) { WriteError(w, InternalServerError, TextNoLimit) }
