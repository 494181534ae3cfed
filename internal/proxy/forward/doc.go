// Package forward sends authorized requests to upstream servers and providers of models, and their answers back. No
// other code carries a client's request upstream. The package decides nothing: who may call is decided before, and it
// gets the credential from its caller.
//
// It keeps these rules for every caller:
//
//   - The upstream request is built from an allow-list of headers, never by deleting from the client's. So a Connection
//     header cannot remove other headers, and internal or tracking headers cannot pass.
//   - The body is in memory before the first byte is sent. Streaming a POST body through a Go proxy loses answers at
//     random (golang/go#40747), and a body of a type that net/http knows goes out in one write with the headers.
//   - The credential is put on the request at the last moment, by a [Credential], and redirects are never followed.
//   - Nothing is retried. The clients themselves replay a POST only when not one byte of it was written (see the test of
//     W11). Idempotency-Key, which would change that for net/http, is not on the allow-list.
//   - The answer's headers have an allow-list too. Redirects, partial content, protocol switches and encodings
//     other than gzip and zstd are upstream errors. Answers in these two are decoded.
//   - Every wait is bounded: dialling, the whole wait for the answer's headers, and each silence inside a body.
//
// Requests go to the network through one [Sender], which [NewUpstreams] makes: internal/proxy/http1, or net/http.
package forward
