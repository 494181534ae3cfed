// Package websession keeps who is logged in with a browser, in the browser: a session is a sealed cookie, and every form
// on a page carries a token that is good for that session and that form only.
//
// There is no table of sessions. What ends one everywhere is its age, and what is kept with its user, which whoever opens a
// session must look up: until when sessions were revoked, and until when those ended that somebody logged out of.
package websession
