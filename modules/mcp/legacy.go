package mcp

import (
	"net/http"
	"time"

	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/mcp/legacysse"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/modules/app/paths"
)

// The HTTP+SSE transport of revision 2024-11-05: GET opens the session's stream, whose first event names the address
// for POSTing messages; a POST is answered with 202 and its answer comes on the stream.

// endpointWait is the time for which the headers of a stream that may be one of 2024-11-05 wait for its first event.
// The official servers send it with the headers. A refused endpoint is then a 502, and not a broken stream, which
// clients would open again and again.
const endpointWait = 200 * time.Millisecond

// mayAnnounce reports whether an answer may be the stream of a session of 2024-11-05: later revisions have a session id,
// or no GET.
func (x *exchange) mayAnnounce(response *forward.Response) bool {
	return x.r.Method == http.MethodGet && response.Kind == forward.Events && x.Session.Upstream == "" && !x.Modern()
}

// replaceEndpoint makes the stream announce the gateway's address for messages in place of the upstream's.
func (x *exchange) replaceEndpoint(response *forward.Response) {
	response.Hold = endpointWait
	x.box = x.call.Core.Desk.NewBox()
	response.Body = legacysse.NewReader(response.Body, func(announced string) (string, error) {
		server, err := x.call.ServerURL()
		if err != nil {
			return "", err
		}
		endpoint, err := legacysse.Resolve(server, announced)
		if err != nil {
			return "", err
		}
		sealed, err := x.call.Core.Sessions.SealEndpoint(endpoint.String(), x.call.Binding())
		if err != nil {
			return "", err
		}
		x.box.Open(sealed)
		// A path is right under every name of the site.
		return paths.MCPPrefix + x.call.Server.Slug + "?" + inbound.EndpointParameter + "=" + sealed, nil
	})
}
