// Package exchange gets tokens for upstream servers on behalf of users: the identity provider that vouches for a user
// exchanges its proof of them for an access token of the server (RFC 8693). Users connect no account for that, and nothing
// is stored: tokens are kept in memory until they end.
//
// The proof of a user opens the gateway, too. So it goes to that identity provider and to nobody else, unless the
// operator's configuration names another token endpoint. The administrator of an organization cannot name one: users'
// tokens would be sent there, and with them the administrator could be any user of the gateway.
package exchange
