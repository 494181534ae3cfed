package platformapi

import (
	"cmp"
	"errors"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/credential/connection"
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
