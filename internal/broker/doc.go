// Package broker keeps users' connections to third parties: it makes them (OAuth 2.1 with PKCE, or a credential that the
// user types), keeps them fresh, hands out the credential of a request, and ends them.
//
// What is stored is sealed (internal/seal) and tied to the place it was made for: the origins, the resource and the
// issuer of the upstream. When one of them has changed since, whoever changed it, the credential is not sent.
//
// A refresh happens once however many callers need it: callers of one process share it, nodes are kept apart by the
// store's lock on the connection, and whoever gets the lock looks again before speaking to the provider. What the provider
// answers is durable before anybody uses it.
package broker
