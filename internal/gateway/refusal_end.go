package gateway

import (
	"net/http"

	"github.com/durward-gateway/durward/internal/mcp/streams"
)

// These are the refusals of a gateway that ends, or has not begun, and of calls whose right ends.

// RefuseEnded answers a call to a server whose right ended before its answer began. challenge is for callers whose
// token is not good any more, and address is that of the page for connecting.
func RefuseEnded(w http.ResponseWriter, reason streams.Reason, challenge Challenge, address string) {
	switch reason {
	case streams.TokenExpired, streams.Revoked:
		challenge.Refuse(w)
	case streams.PolicyChanged:
		WriteError(w, Forbidden, "The policies of this server do not grant this any longer")
	case streams.ServerDeleted:
		RefuseNoServer(w)
	case streams.Disconnected:
		RefuseNotConnected(w, address, "")
	case streams.UserFull:
		RefuseUserFull(w, Plain)
	case streams.NodeFull:
		refuseNodeFull(w)
	case streams.Untold:
		WriteError(w, Unavailable, "The gateway cannot look up what this call may do; try again later")
	default:
		RefuseRestarting(w)
	}
}

// RefuseRestarting answers 503: the gateway is about to end, or takes another configuration.
func RefuseRestarting(w http.ResponseWriter) { WriteError(w, Unavailable, "The gateway is restarting") }

// RefuseWaiting answers 503: the gateway has not reached its store yet.
func RefuseWaiting(w http.ResponseWriter) {
	WriteError(w, Unavailable, "The gateway waits for its store and cannot serve anything yet")
}

// TextStoreAway is the message for a request that needs the store, which does not answer. The error forms of models'
// clients end it with a period.
const TextStoreAway = "The gateway cannot reach its store at the moment"

// RefuseStoreAway answers 503: the store does not answer.
func RefuseStoreAway(w http.ResponseWriter) { WriteError(w, Unavailable, TextStoreAway) }

// StoreNotReady returns the answer of /readyz while the store does not answer.
func StoreNotReady(reason string) *ServiceError {
	return &ServiceError{Name: Unavailable, Message: TextStoreAway, Details: map[string]any{"missing": []string{"store"}, "store": reason}}
}

// ClockNotReady returns the answer of /readyz while the clock is too far from the store's. mend is the advice.
func ClockNotReady(apart, mend string) *ServiceError {
	return &ServiceError{
		Name: Unavailable, Message: "The gateway's clock and the database's are too far apart",
		Details: map[string]any{"missing": []string{"clock"}, "clock": apart, "mend": mend},
	}
}
