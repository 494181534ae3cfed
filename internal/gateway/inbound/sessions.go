package inbound

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/legacysse"
	"github.com/durward-gateway/durward/storage"
)

// EndpointParameter is the query parameter of the gateway's address for messages of revision 2024-11-05. It is spelled
// as in the official servers.
const EndpointParameter = "sessionId"

// session unseals the session id of the request. An id that the gateway did not make, or that is for another user, agent
// or server, is answered like one that has ended.
func (in reading) session(w http.ResponseWriter) bool {
	sealed := in.HTTP.Header.Values(jsonrpc.HeaderSessionID)
	if len(sealed) == 0 || in.Modern() {
		// Only a session binds an event to the clients that may have it. All users reach the upstream with one credential, so
		// the id of another user's event must not reach it (attack M25). 2024-11-05 and 2026-07-28 know no resumption.
		in.HTTP.Header.Del("Last-Event-Id")
	}
	if in.Modern() {
		return true
	}
	if !in.endpoint(w) {
		return false
	}
	if len(sealed) == 0 {
		return true
	}
	if len(sealed) > 1 {
		gateway.RefuseSessionGone(w, "initialize")
		return false
	}
	opened, err := in.reader.options.Sessions.Open(sealed[0], in.parties.Binding())
	switch {
	case errors.Is(err, storage.ErrUnavailable):
		in.sessionUnread(w, err)
		return false
	case err != nil:
		gateway.RefuseSessionGone(w, "initialize")
		return false
	}
	in.Session = opened
	if opened.Own {
		in.HTTP.Header.Del("Last-Event-Id") // the upstream sees no session: for it, nothing binds the event
	}
	return true
}

// endpoint unseals the address for messages that a client of 2024-11-05 posts to. An address that the gateway did not
// make, or that is for another user, agent or server, is answered like a session that has ended.
func (in reading) endpoint(w http.ResponseWriter) bool {
	if in.HTTP.Method != http.MethodPost || in.HTTP.URL.RawQuery == "" {
		return true
	}
	sealed := in.HTTP.URL.Query()[EndpointParameter]
	if len(sealed) == 0 {
		return true
	}
	if len(in.HTTP.Header.Values(jsonrpc.HeaderSessionID)) > 0 {
		gateway.RefuseTwoSessions(w, in.ID())
		return false
	}
	if len(sealed) == 1 {
		endpoint, err := in.unsealEndpoint(sealed[0])
		if err != nil {
			in.sessionUnread(w, err)
			return false
		}
		in.sealed, in.Endpoint = sealed[0], endpoint
	}
	if in.Endpoint == nil {
		gateway.RefuseSessionGone(w, http.MethodGet)
		return false
	}
	return true
}

// unsealEndpoint returns nil for an address that is not this caller's, and for an address of another origin than the
// server's present one: the credential is for the server. Its error is storage.ErrUnavailable.
func (in reading) unsealEndpoint(sealed string) (*url.URL, error) {
	opened, err := in.reader.options.Sessions.OpenEndpoint(sealed, in.parties.Binding())
	if errors.Is(err, storage.ErrUnavailable) {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	endpoint, err := url.Parse(opened)
	server, bad := in.parties.ServerURL()
	if err != nil || bad != nil || !legacysse.SameOrigin(endpoint, server) {
		return nil, nil
	}
	return endpoint, nil
}

// sessionUnread answers a request when the key of its session cannot be looked up.
func (in reading) sessionUnread(w http.ResponseWriter, err error) {
	in.reader.options.Unread(err)
	gateway.RefuseSessionUnread(w)
}
