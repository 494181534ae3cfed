// Package legacysse implements the gateway's part in MCP's HTTP+SSE transport of revision 2024-11-05. A client opens
// an event stream whose first event, `endpoint`, says where to POST messages; answers come on the stream. The event
// is replaced by one that names the gateway, because otherwise a client would send its messages, and its token for
// the gateway, to the address that the upstream announces.
//
// Nothing tells in advance whether a stream is one of these, so [Reader] is for every stream that may be one; it does
// not change the others.
package legacysse
