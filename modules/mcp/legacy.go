package mcp

import (
	"net/http"
	"net/url"
	"time"

	"github.com/durward-gateway/durward/internal/forward"
	"github.com/durward-gateway/durward/internal/jsonrpc"
	"github.com/durward-gateway/durward/internal/legacysse"
	"github.com/durward-gateway/durward/modules/app"
)

// The HTTP+SSE transport of revision 2024-11-05: GET opens the session's stream, whose first event says where to POST
// messages; a POST is answered with 202 and its answer comes on the stream.

// endpointParameter is the query parameter of our own address for messages. It is spelled as in the official servers.
const endpointParameter = "sessionId"

// endpointWait is how long the headers of a stream that may be one of 2024-11-05 wait for its first event. The official
// servers send it with the headers; an endpoint that is refused is then a 502, and not a stream that breaks, which clients
// open again and again.
const endpointWait = 200 * time.Millisecond

// openEndpoint unseals the address for messages that a client of 2024-11-05 posts to. One that is not ours, or not for
// this user, agent and server, is answered like a session that has ended.
func (x *exchange) openEndpoint() bool {
	if x.r.Method != http.MethodPost || x.r.URL.RawQuery == "" {
		return true
	}
	sealed := x.r.URL.Query()[endpointParameter]
	if len(sealed) == 0 {
		return true
	}
	if len(x.r.Header.Values(jsonrpc.HeaderSessionID)) > 0 {
		x.writeRPC(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "The request names two sessions, in its header and in its address", app.BadRequest)
		return false
	}
	if len(sealed) == 1 {
		x.endpoint = x.unsealEndpoint(sealed[0])
	}
	if x.endpoint == nil {
		app.WriteError(x.w, app.NotFound, "There is no such session; begin anew with GET")
		return false
	}
	return true
}

// unsealEndpoint returns nil for an address that is not this caller's, and for one of another origin than the server has
// by now: the credential is for the server.
func (x *exchange) unsealEndpoint(sealed string) *url.URL {
	opened, err := x.handler.sessions.OpenEndpoint(sealed, x.binding())
	if err != nil {
		return nil
	}
	endpoint, err := url.Parse(opened)
	server, bad := url.Parse(x.call.Server.Entry.URL)
	if err != nil || bad != nil || !legacysse.SameOrigin(endpoint, server) {
		return nil
	}
	return endpoint
}

// mayAnnounce reports whether an answer may be the stream of a session of 2024-11-05: later revisions have a session id,
// or no GET.
func (x *exchange) mayAnnounce(response *forward.Response) bool {
	return x.r.Method == http.MethodGet && response.Kind == forward.Events && x.session.Upstream == "" && !x.modern()
}

// replaceEndpoint lets the stream announce our address for messages in place of the upstream's.
func (x *exchange) replaceEndpoint(response *forward.Response) {
	response.Hold = endpointWait
	response.Body = legacysse.NewReader(response.Body, func(announced string) (string, error) {
		server, err := url.Parse(x.call.Server.Entry.URL)
		if err != nil {
			return "", err
		}
		endpoint, err := legacysse.Resolve(server, announced)
		if err != nil {
			return "", err
		}
		sealed, err := x.handler.sessions.SealEndpoint(endpoint.String(), x.binding())
		if err != nil {
			return "", err
		}
		// A path, which is right under every name of the site.
		return app.MCPPrefix + x.call.Server.Slug + "?" + endpointParameter + "=" + sealed, nil
	})
}

// receipt reports whether an answer is what a message of 2024-11-05 is answered with: accepted, with or without a word.
func (x *exchange) receipt(response *forward.Response) bool {
	return x.endpoint != nil && response.Status < 300 && (response.Kind == forward.Empty || response.Kind == forward.Other && isText(response))
}
