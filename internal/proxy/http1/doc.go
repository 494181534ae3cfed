// Package http1 is an HTTP/1.1 client without goroutines of its own: the caller's goroutine writes the request and
// reads the answer. An idle connection and a waiting stream cost no goroutine and hold no buffer. In other clients
// these take most of the CPU and memory of a proxy's upstream side.
//
// [Client] is for plain and TLS upstreams: requests of the kind a gateway makes (a body in memory, no trailers, no
// upgrade), answers from untrusted servers. Both are lists of fields ([Request], [Answer]): headers that are only
// passed on become neither a map nor an http.Request. The client guarantees:
//
//   - A request is checked before its first byte leaves; body and headers leave in one write when they fit into 16 KiB.
//   - Nothing is sent twice once a byte of it was written. One exception, which net/http makes too: a GET or HEAD whose
//     kept connection died before a byte of the answer came is sent once more. A POST or DELETE never is.
//   - A connection serves again only when the last exchange was completely clean: both sides keep it, the request
//     was written whole before the answer came, the answer was read to its end and not a byte more came, the context had
//     not ended. Before it is reused, a check that does not wait finds out whether the upstream has closed it or sent
//     unrequested bytes.
//   - When the request's context ends the connection is closed at once, whatever the caller is doing at that moment.
//   - The cost of an answer is bounded: the headers of an answer and of all 1xx before it, their number, chunk lines,
//     trailers. Trailers are checked and dropped.
//
// Only a body that does not fit into the first write is written by a goroutine, because an upstream may answer, or at
// least begin to, before it has read everything. The goroutine ends with the write, and before the answer's Close
// returns.
//
// # Which HTTP
//
// The client offers only "http/1.1" by ALPN and speaks only HTTP/1.1. It never hands a connection over to HTTP/2: an
// upstream that speaks nothing else refuses the handshake (a *[HandshakeError]) and belongs on net/http. The
// configuration decides which upstreams use this client: all of plain http, where no upstream speaks anything else,
// and https where one connection for many calls is not worth more than cheap calls.
//
// # Differences from net/http
//
// Requests. The bytes are those that http.Transport writes, in the same order, with these exceptions. There is no
// default User-Agent. Refused, with nothing sent: Expect, Upgrade, TE, Connection and other fields of the connection;
// CONNECT; opaque URLs, a path that does not begin with a slash, white space in the target; an invalid Host (net/http
// sends an empty one). Host, Content-Length, Transfer-Encoding and Trailer among the fields are left out, or refused
// when they are not spelled exactly so. Only the context ends a request, and its dial.
//
// Answers. Every answer that is accepted is one that http.Transport accepts, with the same status, fields and body.
// Refused although http.Transport takes it: lines that end in a bare LF; folded fields; a blank before the colon;
// versions other than HTTP/1.0 and HTTP/1.1; a status outside 100 to 999, or more than one blank around it; control
// characters in the reason; Transfer-Encoding beside Content-Length, or in an HTTP/1.0 answer; chunk sizes of more
// than 15 digits, chunk lines above 256 bytes or with control characters; malformed trailers; more than 256 fields or
// 256 interim answers; 101. Never kept for another request although http.Transport does: connections that spoke
// HTTP/1.0, 204 and 304 with a Transfer-Encoding, 204 with a length. An [Answer] holds nothing of its request, and no
// trailers.
package http1
