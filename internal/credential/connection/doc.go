// Package connection keeps users' connections to third parties. It makes them (OAuth 2.1 with PKCE, or a credential that
// the user types), keeps them fresh, returns the credential for a request, and ends them.
//
// Stored credentials are sealed (internal/seal) and tied to the place that they were made for: the origins, the
// resource and the issuer of the upstream. If one of these has changed since then, no matter who changed it, the
// credential is not sent.
//
// A refresh happens once, however many callers need it. Callers of one process share it. The store's lock on the
// connection separates nodes, and the holder of the lock reads the connection again before it asks the provider. The
// provider's answer is durable before anybody uses it.
package connection
