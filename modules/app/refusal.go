package app

import (
	"net/http"
	"strconv"
	"time"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/streams"
)

// TextNotConnected is the message for a user without a connection.
const TextNotConnected = "Your account is not connected to this server"

// NotConnected returns the refusal of a call whose user has no credential for the server. reason gives the cause, in
// words for the user; "" when they never connected.
func (c *Call) NotConnected(reason string) *gateway.ServiceError {
	message := TextNotConnected
	if reason != "" {
		message += ": " + reason
	}
	return &gateway.ServiceError{Name: gateway.ServerNotConnected, Message: message, Details: map[string]any{
		"connect_url": c.Core.ConnectAddress(c.Server),
	}}
}

// WriteProviderAway answers a call that needs the third party's authorization server, which does not answer.
func WriteProviderAway(w http.ResponseWriter, err *connection.UnavailableError) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int(err.RetryAfter/time.Second))))
	gateway.WriteError(w, gateway.Unavailable, "The account's provider cannot be reached to refresh the connection; try again later")
}

// TextUserFull is the message for a user with too many open streams.
const TextUserFull = "You have as many event streams open as you may; close one first"

// WriteEnded answers a call whose right ended before its answer began.
func (c *Call) WriteEnded(w http.ResponseWriter, r *http.Request, reason streams.Reason) {
	switch reason {
	case streams.TokenExpired, streams.Revoked:
		Challenge(w, r, c.Core, true)
	case streams.PolicyChanged:
		gateway.WriteError(w, gateway.Forbidden, "The policies of this server do not grant this any longer")
	case streams.ServerDeleted:
		gateway.WriteError(w, gateway.ServerNotFound, "There is no server of that name")
	case streams.Disconnected:
		c.NotConnected("").Write(w)
	case streams.UserFull:
		gateway.WriteError(w, gateway.RateLimitExceeded, TextUserFull)
	case streams.NodeFull:
		gateway.WriteError(w, gateway.Unavailable, "The gateway has as many event streams open as it may; try again later")
	case streams.Untold:
		gateway.WriteError(w, gateway.Unavailable, "The gateway cannot look up what this call may do; try again later")
	default:
		gateway.WriteError(w, gateway.Unavailable, "The gateway is restarting")
	}
}
