package platformapi

import (
	"cmp"
	"errors"
	"strings"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// These are the bounds of a user's input for connecting.
const (
	maxReturnURL  = 2048
	maxCredential = 8 << 10
)

type connectView struct {
	AuthURL      *string `json:"auth_url"`
	ConnectionID string  `json:"connection_id"`
	State        *string `json:"state"`
	Message      string  `json:"message"`
}

func (q *request) who() connection.Who {
	return connection.Who{OrganizationID: q.Organization(), UserID: q.Call.Caller.UserID}
}

func (q *request) readServer(ref serverRef) (storage.Server, error) {
	var s storage.Server
	var err error
	if ref.id != "" {
		s, err = q.Core.Store.Server(q.Context(), q.Organization(), ref.id)
	} else {
		s, err = q.Core.Store.ServerBySlug(q.Context(), q.Organization(), ref.slug)
	}
	return s, routes.Missing(err, errNoServer)
}

// connect begins the caller's connection to a server, or makes it at once when no provider needs to be asked.
func connect(q *request) (any, error) {
	ref := q.server()
	var asked connection.ConnectRequest
	q.returnURL(&asked)
	if err := q.Read(true, func(o *validate.Object) {
		secret := func(name string) seal.Secret {
			return o.Secret(name, validate.Text{Max: maxCredential}).Value
		}
		asked.APIKey = secret("api_key")
		bearer, token := secret("bearer_token"), secret("token")
		asked.BearerToken = cmp.Or(bearer, token)
		asked.Username, asked.Password = secret("username"), secret("password")
	}); err != nil {
		return nil, err
	}
	s, err := q.readServer(ref)
	if err != nil {
		return nil, err
	}
	result, err := q.Core.Broker.Connect(q.Context(), q.who(), s, asked)
	if err != nil {
		return nil, routes.Missing(err, errNoServer)
	}
	if result.AuthURL == nil {
		q.Core.Metrics.Connections.WithLabelValues("connected").Inc()
	}
	return connectView{
		AuthURL: result.AuthURL, ConnectionID: result.ConnectionID, State: routes.Optional(result.State), Message: result.Message,
	}, nil
}

// returnURL reads the address at which the browser is to end up. An empty one counts as none.
func (q *request) returnURL(asked *connection.ConnectRequest) {
	field := q.Query.Text("return_url", validate.Text{Max: maxReturnURL})
	if field.Value == "" {
		return
	}
	asked.ReturnURL = field.Value
	var refused *connection.ReturnURLError
	if errors.As(q.Core.Broker.CheckReturnURL(field.Value), &refused) {
		q.Query.Report(validate.ValueError, "Value error, "+refused.Reason, "return_url")
	}
}

type connectionStatusView struct {
	Status storage.ConnectionStatus `json:"status"`
}

func connectionStatus(q *request) (any, error) {
	ref := q.server()
	if err := q.Shape(); err != nil {
		return nil, err
	}
	view, err := q.view(ref)
	if err != nil {
		return nil, err
	}
	return connectionStatusView{view.ConnectionStatus}, nil
}

// disconnect deletes the caller's own credential, and ends the streams that use it.
func disconnect(q *request) (any, error) {
	ref := q.server()
	if err := q.Shape(); err != nil {
		return nil, err
	}
	s, err := q.readServer(ref)
	if err != nil {
		return nil, err
	}
	key := storage.ConnectionKey{OrganizationID: q.Organization(), UserID: q.Call.Caller.UserID, ServerID: s.ID}
	return nil, routes.Missing(q.Core.Connections.Disconnect(q.Context(), key), errNoConnection)
}

var errNoUsersConnection = routes.Refused(gateway.ConnectionNotFound, "This user has no connection to this server")

// serverConnectionView is the view of a user's connection for those who manage the server. It has nothing of the
// credential.
type serverConnectionView struct {
	UserID      string                   `json:"user_id"`
	Name        *string                  `json:"name"`
	Email       *string                  `json:"email"`
	Status      storage.ConnectionStatus `json:"status"` // connected, or error
	Provider    storage.Provider         `json:"provider"`
	Scopes      []string                 `json:"scopes"`
	Reason      *string                  `json:"reason"` // of the error
	ConnectedAt routes.Instant           `json:"connected_at"`
	UpdatedAt   routes.Instant           `json:"updated_at"`
}

func viewServerConnection(c storage.UserConnection) serverConnectionView {
	return serverConnectionView{
		UserID: c.UserID, Name: routes.Optional(c.UserName), Email: routes.Optional(c.UserEmail), Status: c.Status, Provider: c.Kind,
		Scopes: routes.List(strings.Fields(c.Scope)), Reason: routes.Optional(c.Reason),
		ConnectedAt: routes.Instant(c.CreatedAt), UpdatedAt: routes.Instant(c.UpdatedAt),
	}
}

func listServerConnections(q *request) (any, error) {
	ref := q.server()
	after, limit := q.keyed()
	if err := q.Shape(); err != nil {
		return nil, err
	}
	s, err := q.readServer(ref)
	if err != nil {
		return nil, err
	}
	all, err := q.Core.Store.ServerConnections(q.Context(), storage.ConnectionFilter{OrganizationID: q.Organization(), ServerID: s.ID, After: after, Limit: limit + 1})
	if err != nil {
		return nil, err
	}
	return viewKeyed(all, limit, func(c storage.UserConnection) string { return c.UserID }, viewServerConnection), nil
}

// disconnectOther deletes a user's credential for a server as the user's own disconnecting does: at the provider too, and
// the streams that use it end.
func disconnectOther(q *request) (any, error) {
	ref := q.server()
	user := q.ID("user_id")
	if err := q.Shape(); err != nil {
		return nil, err
	}
	s, err := q.readServer(ref)
	if err != nil {
		return nil, err
	}
	key := storage.ConnectionKey{OrganizationID: q.Organization(), UserID: user, ServerID: s.ID}
	return nil, routes.Missing(q.Core.Connections.Disconnect(q.Context(), key), errNoUsersConnection)
}
