// Package exchange gets tokens for upstream servers to which users connect no account. Nothing is stored: tokens are kept in
// memory until they end.
//
//   - The identity provider that vouches for a user exchanges its proof of them for a token of the server (RFC 8693).
//   - Or it makes an assertion about them, for which the server's own authorization server gives a token (ID-JAG).
//   - Or the gateway gets a token for itself there: as the organization's client, or for a statement of the platform's.
//
// The proof of a user opens the gateway, too. So it goes to that identity provider and to nobody else, unless the
// operator's configuration names another token endpoint. The administrator of an organization cannot name one: users'
// tokens would be sent there, and with them the administrator could be any user of the gateway.
package exchange
