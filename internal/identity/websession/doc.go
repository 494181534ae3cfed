// Package websession keeps login sessions in the browser: a session is a sealed cookie, and every form on a page
// carries a token that is valid for that session and that form only.
//
// There is no table of sessions. A session ends everywhere by its age, or by two times that are stored with its user.
// The opener of a session must look these up: the time until which sessions were revoked, and the time until which
// sessions ended by a logout.
package websession
