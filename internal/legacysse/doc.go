// Package legacysse is the gateway's part in MCP's HTTP+SSE transport of revision 2024-11-05: a client opens an event
// stream whose first event, `endpoint`, says where to POST messages; answers come on the stream. The event is replaced by
// one that names the gateway, because a client would otherwise take its messages, and its token for the gateway, to the
// address that the upstream says.
//
// Nothing tells in advance whether a stream is one of these, so [Reader] is for every stream that may be; it leaves the
// others as they are.
package legacysse
