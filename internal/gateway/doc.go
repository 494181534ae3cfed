// Package gateway makes the errors of the gateway, and its refusals of requests. It knows nothing of Caddy, so that
// every service below the handlers can refuse.
//
// The names of errors, their statuses and bodies are in error.go, and their forms in JSON-RPC in rpc.go.
package gateway
