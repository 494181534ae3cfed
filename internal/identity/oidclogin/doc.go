// Package oidclogin logs a browser's user in at an OpenID provider. It uses the authorization code flow with PKCE
// (S256), state and nonce. Where the provider promises it, the issuer in the answer is checked too (OpenID Connect
// Core section 3.1, RFC 7636, RFC 9207).
//
// Nothing is stored between the two halves of a login: Begin returns an Attempt, which its caller seals into the
// browser, and Finish takes it back. Every answer of the provider is untrusted; it is read by internal/credential/oauth, and
// the ID token is verified by internal/identity/token.
package oidclogin
