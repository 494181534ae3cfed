package mcp

import (
	"context"
	"net/http"
	"slices"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/proxy/forward"
)

// Servers acknowledge messages without an answer in many ways: the TypeScript SDK sends an empty chunked 202 without a
// type, others send 200 with a word or a page. Only the status counts (2025-11-25, basic/transports, "Sending Messages
// to the Server").

// acceptsReceipt reports whether the upstream has accepted a message that has no answer in the body. Such are a message
// without a request, one of 2024-11-05, whose answer comes on the session's stream, and the end of a session. A page is
// no receipt for a request: it comes from a proxy in front of the server, and the client would wait on its stream for
// ever.
func (x *exchange) acceptsReceipt(response *forward.Response) bool {
	if response.Status >= http.StatusMultipleChoices {
		return false
	}
	switch x.r.Method {
	case http.MethodDelete:
		return true
	case http.MethodPost:
		return !x.holdsRequest() || x.Endpoint != nil && (response.Kind != forward.Other || isText(response))
	}
	return false
}

// relayReceipt tells the client that its message was accepted. The upstream's body is dropped: no policy has judged it.
func (x *exchange) relayReceipt(ctx context.Context, response *forward.Response) {
	if err := x.sealSession(response); err != nil {
		x.failed(ctx, err)
		return
	}
	response.Discard()
	x.w.WriteHeader(x.receiptStatus(response.Status))
}

// receiptStatus returns the status that the client's revision has for a receipt.
func (x *exchange) receiptStatus(upstream int) int {
	switch {
	case x.r.Method == http.MethodPost:
		return http.StatusAccepted
	case upstream == http.StatusOK:
		return http.StatusOK
	}
	return http.StatusNoContent
}

// holdsRequest reports whether the client waits for an answer to one of its messages.
func (x *exchange) holdsRequest() bool {
	return slices.ContainsFunc(x.Message.Messages, func(m jsonrpc.Message) bool { return m.Kind == jsonrpc.Request })
}
