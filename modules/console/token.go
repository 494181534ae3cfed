package console

import (
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/logins"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/paths"
)

// tokenAnswer is the answer to a request for a token.
type tokenAnswer struct {
	AccessToken string `json:"access_token"`
	ExpiresIn   int64  `json:"expires_in"`
	// User is the id of the user whose token it is. A page stays one user's.
	User string `json:"user"`
	// Logout is the token of the form that logs the browser out.
	Logout string `json:"logout"`
}

// token gives the console's script an access token for the API. The session alone proves the user. So nothing but a page
// of this very site may ask (CWE-352), which browsers say in headers that no script can set.
func (h *Handler) token(w http.ResponseWriter, r *http.Request, core *app.Core) {
	secure(w.Header())
	w.Header().Set("Cache-Control", "no-store")
	if !fromHere(r, core.PublicURL) {
		gateway.RefuseConsolePage(w)
		return
	}
	if core.Authorization == nil {
		gateway.WriteNotFound(w)
		return
	}
	user, err := core.BrowserUser(r)
	if err == nil && user == nil {
		err = logins.ErrNoLogin
	}
	var made *logins.Tokens
	if err == nil {
		made, err = core.Authorization.BrowserToken(r.Context(), user)
	}
	switch {
	case errors.Is(err, logins.ErrNoLogin):
		gateway.RefuseConsoleLogin(w)
	case err != nil:
		core.LogFailure(h.logger, "making a token for the console", err)
		gateway.RefuseConsoleUnread(w)
	default:
		h.logger.Debug("a token for the console", zap.String("user", user.UserID))
		gateway.WriteJSON(w, http.StatusOK, tokenAnswer{
			AccessToken: made.Access.Reveal(), ExpiresIn: int64(made.ExpiresIn / time.Second), User: user.UserID,
			Logout: core.Logins.Browsers.FormToken(user.Session, paths.Logout),
		})
	}
}

// fromHere reports whether a page of this site sent a request. Each of the headers must be there, once: every browser that
// can run the console sends both.
func fromHere(r *http.Request, publicURL string) bool {
	site, origin := r.Header.Values("Sec-Fetch-Site"), r.Header.Values("Origin")
	return len(site) == 1 && site[0] == "same-origin" && len(origin) == 1 && origin[0] == publicURL
}
