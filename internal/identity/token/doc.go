// Package token verifies access tokens and ID tokens: JWTs in compact serialization (RFC 7519, RFC 9068) signed by an
// OpenID Connect issuer. The keys are given (StaticKeys) or fetched from the issuer (KeySet), with a client that the
// caller provides. The package uses no store, and does not decide what a caller may do.
//
// Parsing is done here and not by golang-jwt, of which only signature methods are used: version 5 accepts duplicate
// members, "crit" and any "typ". The rules are those of RFC 8725 (JWT best current practices):
//
//   - The raw token is capped at MaxSize before anything is decoded. Three parts, strict base64url, strict JSON.
//   - The algorithm is in an allow-list of asymmetric algorithms and fits the key's type, curve and "alg".
//   - Key material in the header (jwk, jku, x5u, x5c) is never read.
//   - iss and aud are compared byte by byte. exp is required; nbf, iat and the lifetime are checked.
//   - Other kinds of JWTs of the same issuer (ID tokens, logout tokens, security events, DPoP proofs) are refused.
//
// Claims are checked before the key is looked up, so that a token that is refused in any case never causes a fetch.
// An error is always an *Error: its text is safe for users, its Reason is for the log. No error comes with claims.
package token
