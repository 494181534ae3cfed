package mcp

import (
	"errors"
	"net/http"
	"strings"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/param"
)

// header returns the request's header. In a conversation that the gateway began, the upstream may have agreed on an
// older revision than the client was told. When a client accepts everything (`*/*` or no Accept, by HTTP), the header
// names both forms of answers: servers of the official SDKs answer 406 to clients that do not name both.
func (x *exchange) header() http.Header {
	declared := x.r.Header.Get(jsonrpc.HeaderProtocolVersion)
	older := x.joined != nil && declared != "" && declared != x.joined.ProtocolVersion
	accept := accepts[x.r.Method]
	if accept != nil && !takesAnything(x.r.Header["Accept"]) {
		accept = nil
	}
	if !older && accept == nil && x.mirrorsOnly() {
		return x.r.Header
	}
	header := x.r.Header.Clone()
	for name := range header {
		if isMirror(name) {
			delete(header, name)
		}
	}
	for _, f := range x.mirrors {
		header[f.Name] = []string{f.Value}
	}
	if older {
		header.Set(jsonrpc.HeaderProtocolVersion, x.joined.ProtocolVersion)
	}
	if accept != nil {
		header["Accept"] = accept
	}
	return header
}

// accepts holds the forms of answers to each method (2025-03-26, basic/transports). Never written to.
var accepts = map[string][]string{
	http.MethodPost: {"application/json, text/event-stream"},
	http.MethodGet:  {"text/event-stream"},
}

func takesAnything(accept []string) bool {
	return len(accept) == 0 || len(accept) == 1 && accept[0] == "*/*"
}

// mirror makes the headers that repeat parts of the message from the message itself: upstreams and proxies may route by
// them, and a false header would bypass the policies' decision. Only 2026-07-28 has such headers. Method and name were
// compared when the message was read. Headers that repeat an argument are compared here, after the policies: a caller
// who may not know a tool learns nothing of its definition. It reports false when the client's headers disagree, and
// the request was answered.
func (x *exchange) mirror() bool {
	m := x.Single()
	if m == nil || m.Kind == jsonrpc.Response || !x.Modern() {
		return true
	}
	x.mirrors = append(x.mirrors, param.Field{Name: jsonrpc.HeaderMethod, Value: m.Method})
	if name, ok := jsonrpc.Named(m); ok {
		x.mirrors = append(x.mirrors, param.Field{Name: jsonrpc.HeaderName, Value: jsonrpc.EncodeHeader(name)})
	}
	if m.Method != "tools/call" {
		return true
	}
	tool, err := x.call.Core.Pins.Of(x.call.Server).Mirrors(x.r.Context(), m.Name)
	if err != nil {
		tool = param.Tool{} // the store does not answer: treated like a tool that nobody listed
	}
	params, err := param.Headers(tool, m, x.r.Header)
	if err != nil {
		code, text := jsonrpc.CodeInvalidRequest, "The headers cannot be read"
		if refused := (*jsonrpc.Error)(nil); errors.As(err, &refused) {
			code, text = refused.Code, refused.Message
		}
		x.outcome = "refused"
		gateway.RefuseMessage(x.w, x.ID(), code, text)
		return false
	}
	x.mirrors = append(x.mirrors, params...)
	return true
}

// isMirror reports whether a header is one of MCP's that repeat a part of the message, or an unknown one of that kind.
func isMirror(name string) bool {
	return strings.HasPrefix(name, "Mcp-") && name != jsonrpc.HeaderProtocolVersion && name != jsonrpc.HeaderSessionID
}

// mirrorsOnly reports whether the client sent exactly the expected headers of that kind.
func (x *exchange) mirrorsOnly() bool {
	sent := 0
	for name := range x.r.Header {
		if isMirror(name) {
			sent++
		}
	}
	for _, f := range x.mirrors {
		if values := x.r.Header[f.Name]; len(values) != 1 || values[0] != f.Value {
			return false
		}
	}
	return sent == len(x.mirrors)
}
