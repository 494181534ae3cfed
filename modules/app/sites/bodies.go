package sites

import (
	"time"

	"github.com/caddyserver/caddy/v2"
)

// These are the bounds for the time of a request's body: this long, and a second more for each so many bytes that have
// come (contract 4.3). Without them a slowly sent body would hold its connection, and its configuration, for as long as
// its sender likes.
const (
	bodyTime = 30 * time.Second
	bodyRate = 16 << 10 // bytes a second
)

// BoundBodies sets these bounds, as Caddy's `read_body_idle` does, when the operator has set none. They apply to a
// whole server, also to addresses that are not the gateway's.
func BoundBodies(ctx caddy.Context) {
	for _, server := range servers(ctx) {
		if server.ReadIdleTimeout == 0 && server.ReadMinRate == 0 && len(sitesOf(server)) > 0 {
			server.ReadIdleTimeout, server.ReadMinRate = caddy.Duration(bodyTime), bodyRate
		}
	}
}
