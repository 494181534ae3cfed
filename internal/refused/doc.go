// Package refused remembers the last access tokens that were refused, and says which line of the configuration refused each
// and which would accept it. It keeps what a token claims, never its signature or the token: nothing here can be used.
//
// What it holds was written by whoever sent it. Verified tells claims that an identity provider has signed from those that
// anybody can make up. Everything is bounded: entries, their age, what one address can put in, and the size of each.
package refused
