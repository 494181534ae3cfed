// Package refused remembers the last access tokens that were refused. For each it says which line of the
// configuration refused it and which would accept it. It keeps a token's claims, never its signature or the token:
// nothing here can be used.
//
// The contents were written by the senders. Verified distinguishes claims that an identity provider has signed from
// those that anybody can make up. Everything is bounded: entries, their age, the share of one address, and the size
// of each.
package refused
