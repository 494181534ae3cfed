// Package oauth speaks OAuth 2.1 as a client: it finds the authorization server of an MCP server, obtains a client
// there, makes authorization URLs, and exchanges, refreshes and revokes tokens. It keeps nothing between calls; what must
// be kept (attempts, clients, tokens) is the caller's.
//
// Every answer is untrusted. All requests go through netguard, follow no redirect and read at most 1 MiB
// in 5 seconds; all JSON goes through the strict reader. A document is used only when it names the expected object:
// the resource (RFC 9728 section 3.3), the issuer (RFC 8414 section 3.3, RFC 9207).
//
// The order of calls, for one connection:
//
//	Discover          where does this MCP server's authorization happen
//	ObtainClient      configured client, else client-id metadata document, else registration
//	NewState, NewPKCE, AuthorizationURL
//	ParseCallback     then take the attempt by its state
//	ValidateIssuer    before anything of the callback is used or shown
//	Exchange          later Refresh, at the end Revoke
//
// Without a browser, after Discover and ObtainClient: ClientCredentials, RedeemAssertion, or ExchangeToken at the identity
// provider.
//
// Sources: draft OAuth 2.1, RFC 6749, 7009, 7521, 7523, 7591, 7636, 8414, 8693, 8707, 9207, 9728;
// draft-ietf-oauth-identity-assertion-authz-grant; MCP authorization 2025-03-26 to 2026-07-28.
package oauth
