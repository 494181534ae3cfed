package gateway

import "net/http"

// RefuseConsolePage refuses a token to what is not the console's own page.
func RefuseConsolePage(w http.ResponseWriter) {
	WriteError(w, Forbidden, "Only the console's own page gets a token here")
}

// RefuseConsoleLogin refuses a token for the console to a browser in which nobody is logged in any more.
func RefuseConsoleLogin(w http.ResponseWriter) {
	WriteError(w, Unauthorized, "Your login has ended: log in again")
}

// RefuseConsoleUnread refuses a token for the console while nobody knows who is logged in.
func RefuseConsoleUnread(w http.ResponseWriter) {
	WriteError(w, Unavailable, "The gateway cannot find out who you are just now. Try again in a moment")
}
