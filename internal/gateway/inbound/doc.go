// Package inbound reads a client's request on /mcp once, for all the handlers that need it. It checks the method, memory,
// tracking tag, body, session, and the agreement of headers and body, and it answers what must not be carried.
package inbound
