// Package websession keeps who is logged in with a browser, in the browser: a session is a sealed cookie, and every form
// on a page carries a token that is good for that session and that form only.
//
// There is no table of sessions, so logging out takes the cookie out of the browser and no more; what ends a session
// everywhere is its age, and revoking its user, which whoever opens a session must look up.
package websession
