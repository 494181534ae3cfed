package platformapi

import (
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/modules/app/authorization"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

var (
	errNoSession = routes.Refused(gateway.NotFound, "Session not found")
	// errOtherSession keeps a client that a user let act for them from logging out the user's other clients.
	errOtherSession = routes.Refused(gateway.Forbidden,
		"A client that logged in at the gateway ends its own login only; users end others at /clients, or with a token of a client that the configuration names for it (approval_clients)")
	errNotOwnFilter = routes.Refused(gateway.Forbidden, "Only administrators and auditors see the sessions of others: leave user_id out")
)

// sessionView is the API's view of a user's login with an OAuth client at this gateway.
type sessionView struct {
	ID         string         `json:"id"`
	UserID     string         `json:"user_id"`
	ClientID   string         `json:"client_id"`
	ClientName string         `json:"client_name"`
	Resource   string         `json:"resource"` // the audience of its tokens: a server's address, or the gateway's
	Issuer     string         `json:"issuer"`   // the identity provider at which the user logged in
	CreatedAt  routes.Instant `json:"created_at"`
	UsedAt     routes.Instant `json:"used_at"`    // the client last got tokens
	ExpiresAt  routes.Instant `json:"expires_at"` // when the client gets no tokens before
	EndsAt     routes.Instant `json:"ends_at"`    // even so
	FactsAt    routes.Instant `json:"facts_at"`   // the identity provider last named the user's roles and groups
	Current    bool           `json:"current"`    // the request's own token came of it
}

func (q *request) sessionView(l storage.Login) sessionView {
	return sessionView{
		ID: l.ID, UserID: l.UserID, ClientID: l.ClientID, ClientName: l.ClientName, Resource: l.Resource, Issuer: l.Issuer,
		CreatedAt: routes.Instant(l.CreatedAt), UsedAt: routes.Instant(l.UsedAt), ExpiresAt: routes.Instant(l.ExpiresAt), EndsAt: routes.Instant(l.EndsAt),
		FactsAt: routes.Instant(l.FactsAt), Current: l.ID == q.Call.Caller.Login,
	}
}

// listSessions lists the caller's sessions; an administrator or auditor names another user to see that one's.
func listSessions(q *request) (any, error) {
	filter := storage.LoginFilter{
		OrganizationID: q.Organization(), UserID: q.Call.Caller.UserID, Now: q.Core.Clock.Shared(q.handler.now()), Page: q.Page(),
	}
	named := q.Query.UUID("user_id", 0)
	if err := q.Shape(); err != nil {
		return nil, err
	}
	if named.Set() && named.Value != filter.UserID {
		if !q.May(routes.Auditor) {
			return nil, errNotOwnFilter
		}
		filter.UserID = named.Value
	}
	if filter.UserID == "" { // without a user the filter selects everybody's
		return nil, errNotOwnFilter
	}
	page, err := q.Core.Store.Logins(q.Context(), filter)
	if err != nil {
		return nil, err
	}
	return viewPage(filter.Page, page, q.sessionView), nil
}

// endSession ends a session of the caller's; an administrator ends those of all users. A client that logged in at the
// gateway itself ends no other session than its own. Its tokens are refused from then
// on, on every node, and the streams that use them end.
func endSession(q *request) (any, error) {
	id := q.ID("session_id")
	if err := q.Shape(); err != nil {
		return nil, err
	}
	l, err := q.Core.Store.Login(q.Context(), q.Organization(), id, q.Core.Clock.Shared(q.handler.now()))
	if err != nil {
		return nil, routes.Missing(err, errNoSession)
	}
	if l.UserID != q.Call.Caller.UserID && !q.May(routes.Admin) {
		return nil, errNoSession
	}
	if own := q.Call.Caller.Login; own != "" && own != l.ID && !q.Call.Caller.Console && q.Core.Approvals.MayDecide(q.Call.Party().Decider()) != nil {
		return nil, errOtherSession
	}
	return nil, routes.Missing(authorization.End(q.Context(), q.Core.Store, q.Core.Audit, &l, q.Call.Caller.UserID), errNoSession)
}
