// Package world holds the gateway to software that others wrote: MCP servers, MCP clients, identity providers, clients of
// models, unmodified, from npm, Debian and Go modules. What a server gives directly and through the gateway must be the
// same. README.md says how to add to it.
package world
