package platformapi

import (
	"errors"

	"github.com/durward-gateway/durward/internal/validate"
	"github.com/durward-gateway/durward/storage"
)

// revokedView says what revoking a user did. Their connections at third parties are untouched unless the request says so.
type revokedView struct {
	Revoked     bool    `json:"revoked"`
	UserID      string  `json:"user_id"`
	RevokedAt   instant `json:"revoked_at"`
	Streams     int     `json:"streams_ended"`
	Connections int     `json:"connections_removed"`
}

// revokeUser refuses the tokens that a user has by now, and ends what runs on them. Tokens are refused first: nothing can
// begin anew behind what is being ended.
func revokeUser(q *request) (any, error) {
	id := q.id("user_id")
	var connections bool
	if err := q.read(true, func(o *validate.Object) { connections = o.Bool("connections", 0).Value }); err != nil {
		return nil, err
	}
	u, err := q.core.Store.RevokeUser(q.context(), q.organization(), id, q.handler.now().UTC())
	if err != nil {
		return nil, missing(err, errNoUser)
	}
	view := revokedView{Revoked: true, UserID: u.ID, RevokedAt: instant(u.RevokedAt), Streams: q.core.EndUser(q.organization(), u.ID)}
	if connections {
		if view.Connections, err = q.disconnectUser(u.ID); err != nil {
			return nil, err
		}
	}
	return view, nil
}

// disconnectUser forgets all credentials of a user, and asks the providers to.
func (q *request) disconnectUser(id string) (int, error) {
	filter := q.serverFilter()
	filter.UserID = id
	filter.ConnectionStatuses = []storage.ConnectionStatus{storage.ConnectionPending, storage.ConnectionConnected, storage.ConnectionError}
	servers, err := q.core.Store.Servers(q.context(), filter)
	if err != nil {
		return 0, err
	}
	removed := 0
	for _, s := range servers.Items {
		key := storage.ConnectionKey{OrganizationID: q.organization(), UserID: id, ServerID: s.ID}
		switch err := q.core.Broker.Disconnect(q.context(), key); {
		case errors.Is(err, storage.ErrNotFound): // an attempt at the most, which is gone now too
		case err != nil:
			return removed, err
		default:
			removed++
			q.core.Metrics.Connections.WithLabelValues("disconnected").Inc()
		}
	}
	return removed, nil
}
