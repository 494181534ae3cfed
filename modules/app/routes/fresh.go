package routes

import (
	"time"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/modules/app/paths"
)

// freshness is the time after a login during which the console may do what nobody else at its browser must do.
const freshness = 5 * time.Minute

// errStale refuses an act to a browser that somebody may have left open.
var errStale = &Refusal{gateway.ServiceError{
	Name: gateway.Forbidden, Message: "For this the console needs a login of the last five minutes: log in again, then repeat it",
	Details: map[string]any{"login_url": paths.Login + "?fresh=1"},
}}

// Fresh refuses a caller whose browser's login is older than a few minutes, or of an unknown age. Only the console's tokens
// say so: other clients have an end of their own.
func (q *Request) Fresh(now time.Time) error {
	if who := q.Call.Caller; who.Console && !now.Before(who.ProvenAt.Add(freshness)) {
		return errStale
	}
	return nil
}
