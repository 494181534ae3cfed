package platformapi

import (
	"errors"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// revokedUserView shows the result of revoking a user. Their connections at third parties are untouched unless the request
// says so.
type revokedUserView struct {
	Revoked     bool           `json:"revoked"`
	UserID      string         `json:"user_id"`
	RevokedAt   routes.Instant `json:"revoked_at"`
	Streams     int            `json:"streams_ended"`
	Connections int            `json:"connections_removed"`
}

// revokeUser refuses all present tokens of a user, and ends the streams and calls that use them. Tokens are refused
// first, so that no new stream can begin while the old ones are ended.
func revokeUser(q *request) (any, error) {
	id := q.ID("user_id")
	var connections bool
	if err := q.Read(true, func(o *validate.Object) { connections = o.Bool("connections", 0).Value }); err != nil {
		return nil, err
	}
	own := streams.Owner{Organization: q.Organization(), User: id}
	running := q.Core.Streams.Count(own)
	u, err := q.Core.Store.RevokeUser(q.Context(), q.Organization(), id, q.Core.Clock.Shared(q.handler.now()).UTC())
	if err != nil {
		return nil, routes.Missing(err, errNoUser)
	}
	// Observers of the change may have ended some of them before this line does.
	ended := max(q.Core.Streams.End(own, streams.Revoked), running)
	view := revokedUserView{Revoked: true, UserID: u.ID, RevokedAt: routes.Instant(u.RevokedAt), Streams: ended}
	if connections {
		if view.Connections, err = q.disconnectUser(u.ID); err != nil {
			return nil, err
		}
	}
	return view, nil
}

// disconnectUser deletes all credentials of a user, and asks the providers to do the same.
func (q *request) disconnectUser(id string) (int, error) {
	filter := q.serverFilter()
	filter.UserID = id
	filter.ConnectionStatuses = []storage.ConnectionStatus{storage.ConnectionPending, storage.ConnectionConnected, storage.ConnectionError}
	servers, err := q.Core.Store.Servers(q.Context(), filter)
	if err != nil {
		return 0, err
	}
	removed := 0
	for _, s := range servers.Items {
		key := storage.ConnectionKey{OrganizationID: q.Organization(), UserID: id, ServerID: s.ID}
		switch err := q.Core.Broker.Disconnect(q.Context(), key); {
		case errors.Is(err, storage.ErrNotFound): // at most a connection attempt, which is gone now too
		case err != nil:
			return removed, err
		default:
			removed++
			q.Core.Metrics.Connections.WithLabelValues("disconnected").Inc()
		}
	}
	return removed, nil
}
