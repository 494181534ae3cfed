package mcp

import (
	"net/http"
	"strings"

	"github.com/durward-gateway/durward/internal/jsonrpc"
)

// header is the request's header. In a conversation that the gateway began, the upstream may have agreed on an older
// revision than the client was told. A client that takes anything, as HTTP reads `*/*` and no Accept, takes what servers
// insist on to be told of: those of the official SDKs answer 406 to whoever does not name both forms of answers.
func (x *exchange) header() http.Header {
	declared := x.r.Header.Get(jsonrpc.HeaderProtocolVersion)
	older := x.joined != nil && declared != "" && declared != x.joined.ProtocolVersion
	accept := accepts[x.r.Method]
	if accept != nil && !takesAnything(x.r.Header["Accept"]) {
		accept = nil
	}
	unchecked := x.uncheckedHeaders()
	if !older && accept == nil && unchecked == nil {
		return x.r.Header
	}
	header := x.r.Header.Clone()
	for _, name := range unchecked {
		delete(header, name)
	}
	if older {
		header.Set(jsonrpc.HeaderProtocolVersion, x.joined.ProtocolVersion)
	}
	if accept != nil {
		header["Accept"] = accept
	}
	return header
}

// accepts are the forms of answers to each method (2025-03-26, basic/transports). Never written to.
var accepts = map[string][]string{
	http.MethodPost: {"application/json, text/event-stream"},
	http.MethodGet:  {"text/event-stream"},
}

func takesAnything(accept []string) bool {
	return len(accept) == 0 || len(accept) == 1 && accept[0] == "*/*"
}

// uncheckedHeaders are the headers that say something of the message which the gateway has not held against it. Upstreams and
// proxies may route by them, past what policies said of the message. Only 2026-07-28 has such headers; method and name were
// compared. Mcp-Param-*, which mirrors arguments of tools, is passed on with calls of tools alone, and was not compared.
func (x *exchange) uncheckedHeaders() (names []string) {
	m := x.Single()
	compared := x.Modern() && m != nil && m.Kind != jsonrpc.Response
	for name := range x.r.Header {
		rest, mcp := strings.CutPrefix(name, "Mcp-")
		if !mcp || name == jsonrpc.HeaderProtocolVersion {
			continue
		}
		switch {
		case compared && name == jsonrpc.HeaderMethod, compared && name == jsonrpc.HeaderName && jsonrpc.HasName(m):
		case compared && m.Method == "tools/call" && strings.HasPrefix(rest, "Param-"):
		default:
			names = append(names, name)
		}
	}
	return names
}
