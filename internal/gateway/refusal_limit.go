package gateway

import (
	"net/http"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
)

// These are the refusals of requests that are too many, or that there is no room for.

// These words are also used in the error forms of models' clients, which end them with a period.
const (
	// TextUncounted is the message for a caller whose call cannot be counted.
	TextUncounted = "The rate limits cannot be read at the moment"
	// TextMemory is the message for a call that is refused because memory is short.
	TextMemory = "The gateway is short of memory at the moment; try again later"
)

// textRateLimited is the message for a caller who has reached a rate limit. It does not tell which limit it was, nor how
// much others have used (attack T08).
const textRateLimited = "Rate limit exceeded"

// RefuseRateLimited answers 429: a rate limit of the caller is full. The limit's own headers are set before
// (limit.Refusal).
func RefuseRateLimited(w http.ResponseWriter, form Form) {
	form.refuse(w, jsonrpc.CodeRateLimited, RateLimitExceeded, textRateLimited)
}

// RateLimitedEvent returns the data of the error event on a stream that a rate limit ends.
func RateLimitedEvent() ServiceError {
	return ServiceError{Name: "rate_limit", Message: textRateLimited} // a name of events only
}

// RefuseUncounted answers 503: the rate limits cannot be read, so that the call cannot be counted.
func RefuseUncounted(w http.ResponseWriter) { WriteError(w, Unavailable, TextUncounted) }

// UncountedEvent returns the data of the error event on a stream whose events cannot be counted any more.
func UncountedEvent() ServiceError { return ServiceError{Name: Unavailable, Message: TextUncounted} }

// RefuseMemory answers 503: memory is short.
func RefuseMemory(w http.ResponseWriter) { WriteError(w, Unavailable, TextMemory) }

// RefuseUserFull answers 429: the user has too many open streams.
func RefuseUserFull(w http.ResponseWriter, form Form) {
	form.refuse(w, jsonrpc.CodeRateLimited, RateLimitExceeded, "You have as many event streams open as you may; close one first")
}

// refuseNodeFull answers 503: the process has too many open streams.
func refuseNodeFull(w http.ResponseWriter) {
	WriteError(w, Unavailable, "The gateway has as many event streams open as it may; try again later")
}
