// Package handover lets servers that follow one another on an address share its socket, and passes connections from the
// one that ends to the one that goes on.
//
// Without it, a server that shuts down loses requests that nobody has seen: the kernel resets connections that wait for
// its socket, and net/http closes kept connections while a request is on its way and drops what it reads once its
// shutdown has begun. Here the socket stays open, and Retire, called before the shutdown, moves every connection on which
// no request has begun to the next listener: the client does not notice.
//
// A connection is passed on only when the server that gives it up holds no byte of a request. net/http says in its
// ConnState hook that a connection is idle, and shows by the room it offers to the next Read that nothing is in its
// buffer. Connections with TLS or HTTP/2 have state above the socket: they are passed on before their first byte only.
//
// Clients of HTTP/2 are told which requests were not taken. Those of HTTP/1.1 are not, when an idle connection is closed
// while a request is on its way. Over TLS, Retire waits for idle connections, and handlers should answer meanwhile with
// "Connection: close" (RFC 9112 section 9.6): a client that goes on calling leaves by itself.
package handover
