// Package answer compares a server's messages with the request of its client. Of an answer only the messages pass
// that belong to its request: the response to each of the request's ids, once, notifications, and up to 2025-11-25
// the requests that servers may send to clients. Everything else is dropped, because a client acts on any message: a
// second answer, one to a request of another stream, a request that its revision does not know, an event that tells
// it where to send its messages.
//
// Text that is no message is dropped too. So no message reaches a client that filters have not understood.
package answer
