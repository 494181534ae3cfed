// Package mcpanswer holds what a server sends against what its client asked for. Of an answer only what belongs to its request
// passes: the response to each of the request's ids, once, notifications, and up to 2025-11-25 the requests that servers may
// make of clients. Everything else is dropped, because a client acts on whatever comes: a second answer, one to a request of
// another stream, a question that its revision does not know, an event that tells it where to send its messages.
//
// Text that is no message is dropped too. So nothing reaches a client that filters have not understood.
package mcpanswer
