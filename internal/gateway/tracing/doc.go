// Package tracing makes the spans of a request for OpenTelemetry. Caddy's handler `tracing` begins the span of the
// request as a whole and sends all of them to a collector; this package makes those of the gateway's steps and of the
// requests to upstreams within it. It is the only one that knows their names and attributes, which follow the semantic
// conventions for MCP and GenAI where there are some. docs/observability.md lists them, and a test compares the list.
//
// No argument, prompt, answer, token or other secret is ever an attribute. Texts of a client that are attributes, such
// as the name of a tool, are cut off.
//
// A request that is not traced has a nil *[Trace]. All methods can be called on it, do nothing and need no memory.
package tracing
