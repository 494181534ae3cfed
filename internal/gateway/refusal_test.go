package gateway_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/streams"
)

// refused is a refusal and its answer.
type refused struct {
	name   string
	refuse func(http.ResponseWriter)
	status int
	header http.Header // those that matter, besides those of every answer
	body   string
}

var (
	retry = http.Header{"Retry-After": {"5"}}
	rpc   = gateway.RPC([]byte(`"a1"`))
)

const ended = `{"error":"Unauthorized","message":"The token is not valid here; log in again"}`

var tokenEnded = http.Header{"Www-Authenticate": {`Bearer error="invalid_token", scope="openid"`}}

// inForm returns the refusal in a form. Its two functions have the same signature for it.
func inForm(refuse func(http.ResponseWriter, gateway.Form), form gateway.Form) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { refuse(w, form) }
}

func endedFor(reason streams.Reason) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		gateway.RefuseEnded(w, reason, gateway.Challenge{Sent: true, Scopes: []string{"openid"}}, "https://gate.example.com/connect/demo")
	}
}

var refusals = []refused{
	// Callers
	{"no token", func(w http.ResponseWriter) {
		gateway.Challenge{Metadata: "https://gate.example.com/.well-known/oauth-protected-resource/mcp/demo", Scopes: []string{"openid", "mcp"}}.Refuse(w)
	}, 401, http.Header{"Www-Authenticate": {`Bearer resource_metadata="https://gate.example.com/.well-known/oauth-protected-resource/mcp/demo", scope="openid mcp"`}},
		`{"error":"Unauthorized","message":"A bearer token is needed"}`},
	{"no token, and nothing to tell", gateway.Challenge{}.Refuse, 401, http.Header{"Www-Authenticate": {"Bearer"}},
		`{"error":"Unauthorized","message":"A bearer token is needed"}`},
	{"wrong token", gateway.Challenge{Sent: true}.Refuse, 401, http.Header{"Www-Authenticate": {`Bearer error="invalid_token"`}},
		`{"error":"Unauthorized","message":"The token is not valid here; log in again"}`},
	{"host", gateway.RefuseHost, 403, nil, `{"error":"Forbidden","message":"This gateway does not answer under that host name"}`},
	{"origin", gateway.RefuseOrigin, 403, nil,
		"{\"error\":\"Forbidden\",\"message\":\"Pages of this origin may not call the gateway; the operator can allow it with `origins`\"}"},
	{"loop", gateway.RefuseLoop, 508, nil,
		`{"error":"LoopDetected","message":"This request went out from this gateway and came back: the server's address leads to the gateway itself"}`},
	{"agent", gateway.RefuseUnregistered, 403, nil,
		`{"error":"Forbidden","message":"This client is not registered as an agent; an administrator must register it"}`},
	{"console elsewhere", gateway.RefuseConsolePage, 403, nil, `{"error":"Forbidden","message":"Only the console's own page gets a token here"}`},
	{"console logged out", gateway.RefuseConsoleLogin, 401, nil, `{"error":"Unauthorized","message":"Your login has ended: log in again"}`},
	{"console unread", gateway.RefuseConsoleUnread, 503, retry,
		`{"error":"Unavailable","message":"The gateway cannot find out who you are just now. Try again in a moment"}`},
	{"failures", gateway.TooManyFailures().Write, 429, retry, `{"error":"RateLimitExceeded","message":"Too many credentials were wrong; try again later"}`},
	{"no organization", gateway.NoOrganization().Write, 403, nil,
		"{\"error\":\"Forbidden\",\"message\":\"The token names no organization that it may act for. An administrator of the gateway can configure where tokens name it (`claim org`), or one organization for all of them (`organization`)\"}"},
	{"other organization", gateway.OtherOrganization().Write, 403, nil,
		`{"error":"Forbidden","message":"The token names another organization than the one that this gateway is for. Log in with an account of that organization, or without choosing another one; an administrator of the gateway can see in its log which claim it is"}`},
	{"scopes", gateway.ScopesElsewhere().Write, 403, nil, `{"error":"Forbidden","message":"The scopes of this API key do not cover this address"}`},
	{"not for provisioning", gateway.OnlyProvisions().Write, 403, nil, `{"error":"Forbidden","message":"This address takes only API keys with the scope scim, which administrators make"}`},
	{"shut out", gateway.ShutOut().Write, 403, nil,
		`{"error":"Forbidden","message":"Your organization's identity provider has deactivated your account for this gateway, or has not provisioned it; ask whoever assigns applications there"}`},
	{"credential unread", gateway.CredentialUnread().Write, 503, retry, `{"error":"Unavailable","message":"Credentials cannot be verified at the moment"}`},

	// Order of handlers
	{"no caller", gateway.RefuseNoCaller, 401, nil,
		`{"error":"Unauthorized","message":"This request was not authenticated; durward_auth must come first in the configuration"}`},
	{"no server set", func(w http.ResponseWriter) { gateway.RefuseNoServerSet(w, "durward_policy") }, 500, nil,
		`{"error":"InternalServerError","message":"This call's server was not looked up; durward_auth must come before durward_policy in the configuration"}`},
	{"no credential", gateway.RefuseNoCredential, 500, nil,
		`{"error":"InternalServerError","message":"This call has no credential; durward_credential must come after durward_auth in the configuration"}`},
	{"no decision", gateway.RefuseNoDecision, 500, nil,
		"{\"error\":\"InternalServerError\",\"message\":\"Nobody decided about this call; durward_policy must come between durward_auth and durward_credential in the configuration (`durward_policy off` lets every call pass)\"}"},
	{"no limit", gateway.RefuseNoLimit, 500, nil,
		"{\"error\":\"InternalServerError\",\"message\":\"No durward_limit has seen this call. Put durward_limit after durward_auth and before durward_credential, for models before durward_llm, or write `durward_limit off`\"}"},

	// Requests
	{"tracking", inForm(gateway.RefuseTracking, gateway.Plain), 400, nil,
		`{"error":"BadRequest","message":"A session id for tracking has at most 256 visible ASCII characters"}`},
	{"tracking of MCP", inForm(gateway.RefuseTracking, gateway.RPC(nil)), 400, nil,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"A session id for tracking has at most 256 visible ASCII characters","data":{"error":"BadRequest","message":"A session id for tracking has at most 256 visible ASCII characters"}}}`},
	{"header", func(w http.ResponseWriter) { gateway.RefuseHeader(w, gateway.Plain, "X-A") }, 400, nil,
		`{"error":"BadRequest","message":"The header X-A cannot be forwarded"}`},
	{"header of MCP", func(w http.ResponseWriter) { gateway.RefuseHeader(w, rpc, "X-A") }, 400, nil,
		`{"jsonrpc":"2.0","id":"a1","error":{"code":-32600,"message":"The header X-A cannot be forwarded","data":{"error":"BadRequest","message":"The header X-A cannot be forwarded"}}}`},
	{"no events", gateway.RefuseNoEvents, 200, nil,
		`{"message":"Client does not support SSE, use /mcp endpoint instead","status":"streaming_not_supported"}`},
	{"media", func(w http.ResponseWriter) { gateway.RefuseMedia(w, "m") }, 415, nil, `{"error":"UnsupportedMediaType","message":"m"}`},
	{"query", func(w http.ResponseWriter) { gateway.RefuseQuery(w, "m") }, 400, nil, `{"error":"BadRequest","message":"The query cannot be read: m"}`},
	{"unstorable", gateway.RefuseUnstorable, 400, nil,
		`{"error":"BadRequest","message":"The request has text that cannot be stored: a NUL character, or bytes that are not UTF-8"}`},
	{"large body", body(rpc, 413), 413, nil, `{"error":"PayloadTooLarge","message":"The body is larger than the gateway takes"}`},
	{"slow body", body(rpc, 408), 408, nil, `{"error":"RequestTimeout","message":"The body came too slowly"}`},
	{"encoded body", body(rpc, 415), 415, nil, `{"error":"UnsupportedMediaType","message":"The body must not be encoded"}`},
	{"half a body", body(gateway.Plain, 400), 400, nil, `{"error":"BadRequest","message":"The body is incomplete"}`},
	{"half a body of MCP", body(gateway.RPC(nil), 0), 400, nil,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"The body is incomplete","data":{"error":"BadRequest","message":"The body is incomplete"}}}`},
	{"message", func(w http.ResponseWriter) { gateway.RefuseMessage(w, []byte("7"), -32020, "m") }, 400, nil,
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32020,"message":"m","data":{"error":"BadRequest","message":"m"}}}`},
	{"batch", func(w http.ResponseWriter) { gateway.RefuseBatch(w, "2025-03-26") }, 400, nil,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Batches exist in revision 2025-03-26 only","data":{"error":"BadRequest","message":"Batches exist in revision 2025-03-26 only"}}}`},
	{"batch of others", gateway.RefuseBatchOfOthers, 400, nil,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"The batch holds an answer that nobody asked for, or a notification that clients of its revision do not have","data":{"error":"BadRequest","message":"The batch holds an answer that nobody asked for, or a notification that clients of its revision do not have"}}}`},
	{"answers", gateway.RefuseAnswers, 400, nil,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"The answers cannot be read","data":{"error":"BadRequest","message":"The answers cannot be read"}}}`},

	// Sessions
	{"session gone", func(w http.ResponseWriter) { gateway.RefuseSessionGone(w, "initialize") }, 404, nil,
		`{"error":"NotFound","message":"There is no such session; begin anew with initialize"}`},
	{"sessionless", gateway.RefuseSessionless, 404, nil,
		`{"error":"NotFound","message":"The server speaks 2026-07-28, which has no sessions; begin anew with server/discover"}`},
	{"session unread", gateway.RefuseSessionUnread, 503, retry, `{"error":"Unavailable","message":"The session cannot be read at the moment"}`},
	{"session unkept", gateway.RefuseSessionUnkept, 503, retry,
		`{"error":"Unavailable","message":"The gateway cannot keep this conversation at the moment"}`},
	{"two sessions", func(w http.ResponseWriter) { gateway.RefuseTwoSessions(w, []byte("7")) }, 400, nil,
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"The request names two sessions, in its header and in its address","data":{"error":"BadRequest","message":"The request names two sessions, in its header and in its address"}}}`},

	// Limits
	{"T08 rate limit", inForm(gateway.RefuseRateLimited, gateway.Plain), 429, retry, `{"error":"RateLimitExceeded","message":"Rate limit exceeded"}`},
	{"T08 rate limit of MCP", inForm(gateway.RefuseRateLimited, rpc), 429, retry,
		`{"jsonrpc":"2.0","id":"a1","error":{"code":-31429,"message":"Rate limit exceeded","data":{"error":"RateLimitExceeded","message":"Rate limit exceeded"}}}`},
	{"T08 rate limit of MCP, unread", inForm(gateway.RefuseRateLimited, gateway.RPC(nil)), 429, retry,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-31429,"message":"Rate limit exceeded","data":{"error":"RateLimitExceeded","message":"Rate limit exceeded"}}}`},
	{"rate limit with its own time", func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "42")
		gateway.RefuseRateLimited(w, rpc)
	}, 429, http.Header{"Retry-After": {"42"}},
		`{"jsonrpc":"2.0","id":"a1","error":{"code":-31429,"message":"Rate limit exceeded","data":{"error":"RateLimitExceeded","message":"Rate limit exceeded"}}}`},
	{"uncounted", gateway.RefuseUncounted, 503, retry, `{"error":"Unavailable","message":"The rate limits cannot be read at the moment"}`},
	{"memory", gateway.RefuseMemory, 503, retry, `{"error":"Unavailable","message":"The gateway is short of memory at the moment; try again later"}`},
	{"user full", inForm(gateway.RefuseUserFull, gateway.Plain), 429, retry,
		`{"error":"RateLimitExceeded","message":"You have as many event streams open as you may; close one first"}`},
	{"user full of MCP", inForm(gateway.RefuseUserFull, rpc), 429, retry,
		`{"jsonrpc":"2.0","id":"a1","error":{"code":-31429,"message":"You have as many event streams open as you may; close one first","data":{"error":"RateLimitExceeded","message":"You have as many event streams open as you may; close one first"}}}`},

	// Policies
	{"denied", gateway.RefuseDenied, 403, nil, `{"error":"Forbidden","message":"Denied by policy"}`},
	{"policies unread", gateway.RefusePoliciesUnread, 503, retry, `{"error":"Unavailable","message":"The policies of this server cannot be read at the moment"}`},
	{"unasked", gateway.RefuseUnasked, 503, retry, `{"error":"Unavailable","message":"The gateway cannot ask for this call's approval at the moment"}`},
	{"answer unrecorded", gateway.RefuseAnswerUnrecorded, 503, retry, `{"error":"Unavailable","message":"The gateway cannot record this answer at the moment"}`},
	{"unawaited", gateway.RefuseUnawaited, 400, nil,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Nobody waits for this answer","data":{"error":"BadRequest","message":"Nobody waits for this answer"}}}`},
	{"input responses", func(w http.ResponseWriter) { gateway.RefuseInputResponses(w, []byte("7")) }, 200, nil,
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"The inputResponses answer what nobody asked; make the call anew","data":{"error":"BadRequest","message":"The inputResponses answer what nobody asked; make the call anew"}}}`},
	{"request state", func(w http.ResponseWriter) { gateway.RefuseRequestState(w, []byte("7")) }, 200, nil,
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"The requestState is not one of this call; make the call anew","data":{"error":"BadRequest","message":"The requestState is not one of this call; make the call anew"}}}`},

	// Servers
	{"slash", func(w http.ResponseWriter) { gateway.RefuseSlash(w, "https://gate.example.com/mcp/demo") }, 404, nil,
		`{"error":"NotFound","message":"There is nothing at this address. The address of an MCP server has no slash at its end: https://gate.example.com/mcp/demo"}`},
	{"no server", gateway.RefuseNoServer, 404, nil, `{"error":"ServerNotFound","message":"There is no server of that name"}`},
	{"server unread", gateway.RefuseServerUnread, 503, retry, `{"error":"Unavailable","message":"The server cannot be looked up at the moment"}`},
	{"unvouched", gateway.Unvouched("log in anew").Write, 403, nil, `{"error":"Forbidden","message":"There is no token for this server: log in anew"}`},
	{"never connected", func(w http.ResponseWriter) {
		gateway.RefuseNotConnected(w, "https://gate.example.com/connect/demo", "")
	}, 403, nil,
		`{"error":"ServerNotConnected","message":"Your account is not connected to this server","details":{"connect_url":"https://gate.example.com/connect/demo"}}`},
	{"not connected any more", func(w http.ResponseWriter) {
		gateway.RefuseNotConnected(w, "https://gate.example.com/connect/demo", "it ended")
	}, 403, nil,
		`{"error":"ServerNotConnected","message":"Your account is not connected to this server: it ended","details":{"connect_url":"https://gate.example.com/connect/demo"}}`},
	{"connection unread", gateway.RefuseConnectionUnread, 503, retry, `{"error":"Unavailable","message":"The connection cannot be read at the moment"}`},
	{"provider away", func(w http.ResponseWriter) { gateway.RefuseProviderAway(w, 90*time.Second) }, 503, http.Header{"Retry-After": {"90"}},
		`{"error":"Unavailable","message":"The account's provider cannot be reached to refresh the connection; try again later"}`},
	{"provider away for a part of a second more", func(w http.ResponseWriter) { gateway.RefuseProviderAway(w, 10*time.Second+time.Millisecond) }, 503, http.Header{"Retry-After": {"11"}},
		`{"error":"Unavailable","message":"The account's provider cannot be reached to refresh the connection; try again later"}`},
	{"provider away for a moment", func(w http.ResponseWriter) { gateway.RefuseProviderAway(w, time.Millisecond) }, 503, http.Header{"Retry-After": {"1"}},
		`{"error":"Unavailable","message":"The account's provider cannot be reached to refresh the connection; try again later"}`},
	{"unrecorded", gateway.RefuseUnrecorded, 503, retry, `{"error":"Unavailable","message":"The call cannot be recorded at the moment, and is not made"}`},
	{"S10 upstream", inForm(gateway.RefuseUpstream, gateway.Plain), 502, nil,
		`{"error":"UpstreamError","message":"The upstream server did not give a usable answer"}`},
	{"S10 upstream of MCP", inForm(gateway.RefuseUpstream, rpc), 502, nil,
		`{"jsonrpc":"2.0","id":"a1","error":{"code":-32603,"message":"The upstream server did not give a usable answer","data":{"error":"UpstreamError","message":"The upstream server did not give a usable answer"}}}`},
	{"credential wanted", inForm(gateway.RefuseCredentialWanted, gateway.Plain), 502, nil,
		`{"error":"UpstreamError","message":"The server asks for a credential, and the gateway has not been told of any. An administrator has to set the provider of its directory entry."}`},
	{"credential wanted of MCP", inForm(gateway.RefuseCredentialWanted, rpc), 502, nil,
		`{"jsonrpc":"2.0","id":"a1","error":{"code":-32603,"message":"The server asks for a credential, and the gateway has not been told of any. An administrator has to set the provider of its directory entry.","data":{"error":"UpstreamError","message":"The server asks for a credential, and the gateway has not been told of any. An administrator has to set the provider of its directory entry."}}}`},
	{"no MCP", func(w http.ResponseWriter) { gateway.RefuseNoMCP(w, []byte("7")) }, 502, nil,
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"The server does not speak MCP; its events are at /sse","data":{"error":"UpstreamError","message":"The server does not speak MCP; its events are at /sse"}}}`},
	{"no stream", gateway.RefuseNoStream, 502, nil, `{"error":"UpstreamError","message":"server has no event stream"}`},
	{"by the upstream", func(w http.ResponseWriter) { gateway.RefuseByUpstream(w, gateway.MethodNotAllowed) }, 405, nil,
		`{"error":"MethodNotAllowed","message":"The upstream server does not take this request"}`},

	// Ends
	{"token expired", endedFor(streams.TokenExpired), 401, tokenEnded, ended},
	{"revoked", endedFor(streams.Revoked), 401, tokenEnded, ended},
	{"policy changed", endedFor(streams.PolicyChanged), 403, nil, `{"error":"Forbidden","message":"The policies of this server do not grant this any longer"}`},
	{"server deleted", endedFor(streams.ServerDeleted), 404, nil, `{"error":"ServerNotFound","message":"There is no server of that name"}`},
	{"disconnected", endedFor(streams.Disconnected), 403, nil,
		`{"error":"ServerNotConnected","message":"Your account is not connected to this server","details":{"connect_url":"https://gate.example.com/connect/demo"}}`},
	{"W06 user full", endedFor(streams.UserFull), 429, retry,
		`{"error":"RateLimitExceeded","message":"You have as many event streams open as you may; close one first"}`},
	{"W06 node full", endedFor(streams.NodeFull), 503, retry,
		`{"error":"Unavailable","message":"The gateway has as many event streams open as it may; try again later"}`},
	{"Z-F02 untold", endedFor(streams.Untold), 503, retry,
		`{"error":"Unavailable","message":"The gateway cannot look up what this call may do; try again later"}`},
	{"shutdown", endedFor(streams.Shutdown), 503, retry, `{"error":"Unavailable","message":"The gateway is restarting"}`},
	{"a reason that nobody knows", endedFor("x"), 503, retry, `{"error":"Unavailable","message":"The gateway is restarting"}`},
	{"restarting", gateway.RefuseRestarting, 503, retry, `{"error":"Unavailable","message":"The gateway is restarting"}`},
	{"waiting", gateway.RefuseWaiting, 503, retry, `{"error":"Unavailable","message":"The gateway waits for its store and cannot serve anything yet"}`},
	{"store away", gateway.RefuseStoreAway, 503, retry, `{"error":"Unavailable","message":"The gateway cannot reach its store at the moment"}`},
	{"store not ready", gateway.StoreNotReady("it does not answer").Write, 503, retry,
		`{"error":"Unavailable","message":"The gateway cannot reach its store at the moment","details":{"missing":["store"],"store":"it does not answer"}}`},
	{"clock not ready", gateway.ClockNotReady("an hour apart", "set it").Write, 503, retry,
		`{"error":"Unavailable","message":"The gateway's clock and the database's are too far apart","details":{"clock":"an hour apart","mend":"set it","missing":["clock"]}}`},
}

func body(form gateway.Form, status int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { gateway.RefuseBody(w, form, status) }
}

// TestRefusals checks the answer of each refusal, byte for byte: clients read statuses, headers and bodies.
func TestRefusals(t *testing.T) {
	for _, tc := range refusals {
		t.Run(tc.name, func(t *testing.T) {
			w := httptest.NewRecorder()
			tc.refuse(w)
			wantAnswer(t, tc.name, w, tc.status, tc.body)
			for _, name := range []string{"Retry-After", "Www-Authenticate", "Allow"} {
				if got, want := w.Header().Get(name), tc.header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}

// TestRefusalsOnStreams checks what is said on a stream, or in place of one of several answers.
func TestRefusalsOnStreams(t *testing.T) {
	for want, made := range map[string]any{
		`{"error":"rate_limit","message":"Rate limit exceeded"}`:                           gateway.RateLimitedEvent(),
		`{"error":"Unavailable","message":"The rate limits cannot be read at the moment"}`: gateway.UncountedEvent(),
		`{"error":"UpstreamError","message":"It was silent"}`:                              gateway.UpstreamEvent("It was silent"),
		`{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"The upstream server did not give a usable answer","data":{"error":"UpstreamError","message":"The upstream server did not give a usable answer"}}}`: json.RawMessage(gateway.UpstreamFailure([]byte("7"))),
	} {
		if got, err := json.Marshal(made); err != nil || string(got) != want {
			t.Errorf("%s %v\nwant %s", got, err, want)
		}
	}
}
