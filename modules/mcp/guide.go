package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/conversation"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	mcpsession "github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/internal/mcp/toolpin"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// A client whose user has not connected their account gets a conversation with the gateway, which leads the user to the
// page for connecting. Once they have connected, the same conversation goes on with the upstream.

// legacyVersions are the revisions with sessions, the newest first.
var legacyVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

const modernVersion = "2026-07-28"

// These are the bounds of the tools that are listed before anybody has connected.
const (
	listedTools = 1_000
	listedBytes = 2 << 20
)

// lead answers in the upstream's place. It reports false for requests that are refused as usual: streams of clients
// that have begun no conversation.
func (x *exchange) lead(ctx context.Context) bool {
	switch {
	case !x.call.Account().Led() || x.Endpoint != nil:
		return false
	case x.r.Method == http.MethodDelete:
		x.endConversation(ctx)
		return true
	case x.r.Method == http.MethodGet:
		return x.Session.Upstream != "" && x.wait(ctx)
	case x.Message.Batch:
		x.leadBatch(ctx)
		return true
	}
	m := x.Single()
	switch {
	case m.Kind != jsonrpc.Request:
		x.w.WriteHeader(http.StatusAccepted)
	case m.Method == "initialize":
		return x.begin(ctx, m)
	case m.Method == "subscriptions/listen":
		return x.wait(ctx)
	default:
		gateway.WriteBody(x.w, http.StatusOK, x.led(ctx, m))
	}
	return true
}

func (x *exchange) leadBatch(ctx context.Context) {
	var answers [][]byte
	for i := range x.Message.Messages {
		if m := &x.Message.Messages[i]; m.Kind == jsonrpc.Request {
			answers = append(answers, x.led(ctx, m))
		}
	}
	if answers == nil {
		x.w.WriteHeader(http.StatusAccepted)
		return
	}
	gateway.WriteBody(x.w, http.StatusOK, append(append([]byte{'['}, bytes.Join(answers, []byte{','})...), ']'))
}

// led returns the gateway's answer to a request.
func (x *exchange) led(ctx context.Context, m *jsonrpc.Message) []byte {
	switch m.Method {
	case "server/discover":
		return x.discover(ctx, m)
	case "ping", "logging/setLevel", "resources/unsubscribe":
		return x.result(m, map[string]any{})
	case "tools/list":
		return x.listTools(ctx, m)
	case "resources/list":
		return x.result(m, map[string]any{"resources": []any{}})
	case "resources/templates/list":
		return x.result(m, map[string]any{"resourceTemplates": []any{}})
	case "prompts/list":
		return x.result(m, map[string]any{"prompts": []any{}})
	case "tasks/list":
		return x.result(m, map[string]any{"tasks": []any{}})
	case "completion/complete":
		return x.result(m, map[string]any{"completion": map[string]any{"values": []any{}}})
	}
	return x.lost(m)
}

// discover answers server/discover with the revisions that the conversation can go on in. A server that has not been
// seen to speak 2026-07-28 probably speaks an earlier revision, as most do. Clients of 2026-07-28 that also know
// sessions then begin one.
func (x *exchange) discover(ctx context.Context, m *jsonrpc.Message) []byte {
	modern, err := x.call.Core.Sightings.KnownModern(ctx, x.call.Server, x.call.Known.Sight())
	if err != nil {
		return x.unread(m, "The server's revisions", err)
	}
	versions := legacyVersions
	if modern {
		versions = append([]string{modernVersion}, legacyVersions...)
	}
	return x.result(m, map[string]any{"supportedVersions": versions, "capabilities": capabilities, "instructions": x.instructions()})
}

// unread answers a request whose answer the store cannot provide at the moment.
func (x *exchange) unread(m *jsonrpc.Message, what string, err error) []byte {
	x.call.Core.LogFailure(x.handler.Logger, "reading what is known of a server", err, zap.String("server", x.call.Server.Slug))
	message := what + " cannot be looked up at the moment"
	return gateway.RPCError(m.ID, jsonrpc.CodeInternalError, message, gateway.Unavailable)
}

// capabilities lists the abilities that the gateway offers for a server that it cannot ask.
var capabilities = map[string]any{"tools": map[string]any{"listChanged": true}}

// result is an answer of the gateway's own. It must not be cached: it changes as soon as the user has connected.
func (x *exchange) result(m *jsonrpc.Message, result map[string]any) []byte {
	if x.Modern() {
		result["resultType"] = "complete"
		result["_meta"] = map[string]any{"io.modelcontextprotocol/serverInfo": x.serverInfo()}
		switch m.Method {
		case "server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list":
			result["ttlMs"], result["cacheScope"] = 0, "private"
		}
	}
	return jsonrpc.Result(m.ID, result)
}

func (x *exchange) serverInfo() map[string]any {
	name := visible.Text(x.call.Server.Name)
	return map[string]any{"name": name, "title": name, "version": "unknown"}
}

func (x *exchange) instructions() string {
	return "The user has not connected their account at " + visible.Text(x.call.Server.Name) + " yet. Ask them to open " +
		x.call.Core.ConnectAddress(x.call.Server) + " in a browser, to log in and to connect. Until then calls are answered with this address; " +
		"afterwards this conversation goes on, and nothing needs to be restarted."
}

// begin answers initialize, and keeps the client's declaration: the upstream gets it once the user has connected.
func (x *exchange) begin(ctx context.Context, m *jsonrpc.Message) bool {
	if len(m.Params) == 0 || len(m.Params) > conversation.MaxDeclared {
		return false
	}
	client, version := m.Client(), legacyVersions[0]
	for _, known := range legacyVersions {
		if client.ProtocolVersion == known {
			version = known
		}
	}
	session := mcpsession.BeginGuided()
	session.ProtocolVersion, session.ElicitForm, session.ElicitURL = version, client.ElicitForm, client.ElicitURL
	id, err := x.call.Core.Conversations.Begin(ctx, x.call.Binding(), session, m.Params)
	if err != nil {
		x.unwritten(err)
		return true
	}
	x.w.Header().Set(jsonrpc.HeaderSessionID, id)
	gateway.WriteBody(x.w, http.StatusOK, x.result(m, map[string]any{
		"protocolVersion": version, "capabilities": capabilities, "serverInfo": x.serverInfo(), "instructions": x.instructions(),
	}))
	return true
}

// unwritten answers when a conversation can be neither stored nor read.
func (x *exchange) unwritten(err error) {
	x.outcome = "unavailable"
	x.call.Core.LogFailure(x.handler.Logger, "keeping a conversation", err, zap.String("server", x.call.Server.Slug))
	gateway.RefuseSessionUnkept(x.w)
}

// endConversation answers a DELETE. The upstream is not told: there is no credential to tell it with.
func (x *exchange) endConversation(ctx context.Context) {
	if x.Session.Guided {
		if err := x.call.Core.Conversations.End(ctx, x.call.Binding(), x.Session.Upstream); err != nil {
			x.unwritten(err)
			return
		}
	}
	x.w.WriteHeader(http.StatusNoContent)
}

// listTools lists the server's tools that any user of the organization has seen, as far as the caller may see them.
// When none is known, it lists the tool that leads to the page.
func (x *exchange) listTools(ctx context.Context, m *jsonrpc.Message) []byte {
	pins, err := x.call.Core.Store.ToolPins(ctx, x.call.Caller.OrganizationID, x.call.Server.ID)
	if err != nil {
		return x.unread(m, "The tools", err)
	}
	tools, size := make([]json.RawMessage, 0, len(pins)), 0
	for i := range pins {
		definition := pins[i].SeenDefinition
		if !toolpin.Listable(definition) {
			continue
		}
		if size += len(definition); len(tools) == listedTools || size > listedBytes {
			break
		}
		tools = append(tools, definition)
	}
	if len(tools) == 0 {
		return x.result(m, map[string]any{"tools": []any{x.connectTool()}})
	}
	if paged(m) {
		tools = tools[:0] // all of them were on the first page
	}
	answer, err := x.filtered(x.result(m, map[string]any{"tools": tools}))
	if err != nil {
		x.handler.Logger.Error("filtering what tools a server has", zap.String("server", x.call.Server.Slug), zap.Error(err))
		return jsonrpc.ErrorResponse(m.ID, jsonrpc.CodeInternalError, "The tools cannot be listed", nil)
	}
	return answer
}

// paged reports whether a list is asked for from a cursor on.
func paged(m *jsonrpc.Message) bool {
	if m.Params == nil {
		return false
	}
	params, err := strictjson.Parse(m.Params, strictjson.Limits{MaxBytes: len(m.Params) + 1, MaxDepth: len(m.Params) + 1, MaxMembers: len(m.Params) + 1})
	cursor, _ := params.Get("cursor")
	return err == nil && cursor.Str() != ""
}

func (x *exchange) connectTool() map[string]any {
	return map[string]any{
		"name": conversation.ConnectTool, "title": "Connect your account",
		"description": "The user has not connected their account at " + visible.Text(x.call.Server.Name) +
			" yet. This tool answers with the address of the page on which they do. Once they have, the server's own tools are listed.",
		"inputSchema": map[string]any{"type": "object", "properties": map[string]any{}},
		"annotations": map[string]any{"readOnlyHint": true, "openWorldHint": false},
	}
}

// textConnected answers a call that was meant for the gateway alone, or was not judged, once the user has connected.
const textConnected = "The account is connected now. List the tools again: they are the server's own. A call that was answered with the address is to be made again."

// onlyLed answers a call that goes no further than the gateway (Decision.GuideOnly) when the account has been connected
// meanwhile.
func (x *exchange) onlyLed() {
	x.outcome = "not_connected"
	m := x.Single()
	if m.Name != conversation.ConnectTool {
		x.Reply(x.w, http.StatusOK, jsonrpc.ToolError(m.ID, textConnected, x.Modern()))
		return
	}
	x.Reply(x.w, http.StatusOK, x.result(m, map[string]any{"content": []any{map[string]any{"type": "text", "text": textConnected}}}))
}
