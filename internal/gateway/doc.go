// Package gateway makes the errors of the gateway, and its refusals of requests on /mcp and /sse. It knows nothing of
// Caddy, so that every service below the handlers can refuse.
//
// The names of errors, their statuses and bodies are in error.go, and their form in JSON-RPC is in rpc.go. Each refusal
// has one function, which takes plain values and writes the answer. What is counted, logged and recorded about it is the
// caller's. They are sorted by what is refused:
//
//   - refusal_caller.go: the caller's host, origin, token and agent.
//   - refusal_order.go: requests that have not passed one of the gateway's handlers.
//   - refusal_request.go: headers, bodies and messages.
//   - refusal_session.go: sessions of MCP.
//   - refusal_limit.go: rate limits, memory and open streams.
//   - refusal_policy.go: policies and held calls. The verdict on a message, and what is said of a held call, are
//     modules/policy's.
//   - refusal_server.go: the server, the account that is connected there, and the server's answer.
//   - refusal_end.go: the end of a right or of the gateway, and the store.
//
// Clients of models have error forms of their own, which internal/llm/wire makes. Where they say the same as a refusal
// here, they use its words.
package gateway
