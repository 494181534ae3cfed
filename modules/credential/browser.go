package credential

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/identity/websession"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/browsers"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// heldAge is the time for which the browser keeps the handle of an attempt that waits for a login. The attempt itself
// is deleted at that time at the latest.
const heldAge = 2 * time.Minute

// browser is the browser that came back from a provider.
type browser struct {
	core    *app.Core
	request *http.Request
	issuer  string // the issuer at which its user must log in, once whose has found that a login is needed
}

// whose checks whether the browser belongs to the user who began to connect: a connection.BrowserCheck.
func (b *browser) whose(ctx context.Context, user storage.ConnectionKey) (connection.Whose, error) {
	known, sessions := browsers.BrowserOf(b.request)
	if sessions && known.User != nil {
		if known.User.OrganizationID == user.OrganizationID && known.User.UserID == user.UserID {
			return connection.Own, nil
		}
		return connection.Foreign, nil
	}
	person, err := b.core.Store.User(ctx, user.OrganizationID, user.UserID)
	if errors.Is(err, storage.ErrNotFound) {
		return connection.Foreign, nil
	}
	if err != nil {
		return connection.Foreign, err
	}
	check, issuer, ok := b.core.Logins.ConnectCheck(person)
	switch {
	case !ok: // the user, known or not, cannot log in any more
		return connection.Foreign, nil
	case check == settings.ConnectByState:
		return connection.Own, nil
	case !sessions:
		return connection.Foreign, errors.New("connect_check login needs durward_session in the configuration, before durward_auth")
	}
	b.issuer = issuer
	return connection.Unproven, nil
}

// loginFirst sends the browser to log in, and back. It answers with a page instead of a redirect: the browser came here
// by a form of the provider, whose policy would forbid the target of a redirect (CSP level 3, form-action).
func (h *Handler) loginFirst(w http.ResponseWriter, b *browser, result connection.CallbackResult) {
	b.core.Cookies.Set(w, websession.CookieHeld, result.Held, heldAge)
	address := paths.Login + "?" + url.Values{"issuer": {b.issuer}, "return": {paths.Held}}.Encode()
	w.Header().Set("Refresh", "0; url="+address)
	page{Status: http.StatusOK, Title: "Log in to finish", Text: "The account will be connected once you have logged in.", Link: address}.write(w, b.core.Brand)
}

// refuseBrowser answers when the browser does not belong to the attempt's user (A02, A03). The page does not name the
// attempt's user.
func (h *Handler) refuseBrowser(w http.ResponseWriter, r *http.Request, core *app.Core, result connection.CallbackResult) {
	h.logger.Warn("refusing a callback in somebody else's browser", zap.String("organization", result.OrganizationID),
		zap.String("user", result.UserID), zap.String("server", result.Server.Slug))
	event := storage.AuditEntry{
		Kind: storage.AuditLogin, Event: "connect.refused", UserID: result.UserID, ServerID: result.ServerID, Server: result.Server.Slug,
		Outcome: "refused", Detail: map[string]any{"reason": "the browser is not the user's"},
	}
	// The user of the browser is named only in the log of their own organization.
	if known, ok := browsers.BrowserOf(r); ok && known.User != nil && known.User.OrganizationID == result.OrganizationID {
		event.Detail["browser_user_id"] = known.User.UserID
	}
	if err := core.Audit.Event(r.Context(), result.OrganizationID, event); err != nil {
		h.logger.Error("recording a refused callback", zap.Error(err)) // the browser is refused in any case
	}
	text := "It was not begun by whoever is logged in with this browser, and nothing was stored. Somebody else may have sent you here. " +
		"If it was you, log in as the user who connects, and start again."
	page{Status: http.StatusForbidden, Title: titleFailed, Text: text}.write(w, core.Brand)
}
