// Package integration tests the gateway from outside: it builds the binary once, starts it with configurations of its
// own, and speaks to it as clients, identity providers and upstream servers do. It imports no package of the gateway.
package integration
