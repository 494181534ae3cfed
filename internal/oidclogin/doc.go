// Package oidclogin logs a browser's user in at an OpenID provider: the authorization code flow with PKCE (S256), state,
// nonce and, where the provider says that it does so, the issuer in its answer (OpenID Connect Core section 3.1, RFC 7636,
// RFC 9207).
//
// Nothing is kept between the two halves of a login: Begin returns an Attempt, which its caller seals into the browser, and
// Finish takes it back. Everything that the provider answers is untrusted; it is read by internal/oauthflow, and the ID
// token is verified by internal/token.
package oidclogin
