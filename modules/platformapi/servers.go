package platformapi

import (
	"crypto/rand"
	"errors"
	"slices"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/credential/serveredit"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// notConnected is the filter word that stands for every connection status but connected.
const notConnected = "not_connected"

func listServers(q *request) (any, error) {
	filter := q.serverFilter()
	filter.Search, filter.Page = q.Search(), q.Page()
	for _, word := range q.Query.Enums("status", string(storage.ServerPending), string(storage.ServerActive), string(storage.ServerError)) {
		filter.Status = append(filter.Status, storage.ServerStatus(word))
	}
	filter.ConnectionStatuses = connectionStatuses(q.Query.Enums("connection_status", string(storage.ConnectionAvailable),
		string(storage.ConnectionPending), string(storage.ConnectionConnected), string(storage.ConnectionError), notConnected))
	if err := q.Shape(); err != nil {
		return nil, err
	}
	page, err := q.Core.Store.Servers(q.Context(), filter)
	if err != nil {
		return nil, err
	}
	return viewPage(filter.Page, page, q.serverView), nil
}

func connectionStatuses(words []string) []storage.ConnectionStatus {
	var statuses []storage.ConnectionStatus
	for _, word := range words {
		if word == notConnected {
			statuses = append(statuses, storage.ConnectionPending, storage.ConnectionError, storage.ConnectionAvailable)
			continue
		}
		statuses = append(statuses, storage.ConnectionStatus(word))
	}
	slices.Sort(statuses)
	return slices.Compact(statuses)
}

// serverFilter selects the caller's organization and shows the caller's own connections.
func (q *request) serverFilter() storage.ServerFilter {
	return storage.ServerFilter{OrganizationID: q.Organization(), UserID: q.Call.Caller.UserID, Now: q.handler.now()}
}

// view reads one server with the caller's view of it.
func (q *request) view(ref serverRef) (storage.ServerView, error) {
	filter := q.serverFilter()
	filter.ID, filter.Slug, filter.Page = ref.id, ref.slug, storage.PageRequest{Number: 1, Limit: 1}
	page, err := q.Core.Store.Servers(q.Context(), filter)
	switch {
	case err != nil:
		return storage.ServerView{}, err
	case len(page.Items) == 0:
		return storage.ServerView{}, errNoServer
	}
	return page.Items[0], nil
}

func getServer(q *request) (any, error) {
	ref := q.server()
	if err := q.Shape(); err != nil {
		return nil, err
	}
	view, err := q.view(ref)
	if err != nil {
		return nil, err
	}
	return q.serverView(view), nil
}

type createdView struct {
	ID           string  `json:"id"`
	ConnectionID *string `json:"connection_id"`
	AuthURL      *string `json:"auth_url"`
	// Test holds the result of trying the server; null when it was not tried.
	Test *testView `json:"test"`
}

func createServer(q *request) (any, error) {
	s := storage.Server{OrganizationID: q.Organization(), CreatedBy: q.Call.Caller.UserID, CreatedAt: q.handler.now().UTC()}
	s.UpdatedAt = s.CreatedAt
	var chosen string
	var secret seal.Secret
	var keyed bool
	tried := q.Query.Bool("test", 0)
	if err := q.Read(false, func(o *validate.Object) {
		// Clients write null for members that they leave out.
		s.Name = o.Name(validate.Required, directory.MaxName).Value
		s.DirectoryID = o.UUID("mcp_server_directory_id", validate.Required).Value
		chosen = serveredit.Slug(o, validate.Nullable).Value
		s.ClientID = serveredit.ClientID(o).Value
		if serveredit.LooksObfuscated(s.ClientID) {
			o.Report(validate.ValueError, serveredit.MsgObfuscated, "client_id")
		}
		given, isKey := serveredit.ClientProof(o)
		secret, keyed = given.Value, isKey
		s.Meta = o.Document("meta", validate.Nullable, int(q.Core.Sizes.Meta)).Value
	}); err != nil {
		return nil, err
	}
	var err error
	if s.Entry, err = q.Core.Store.DirectoryEntry(q.Context(), s.OrganizationID, s.DirectoryID); err != nil {
		return nil, routes.Missing(err, errNoTemplate)
	}
	if err := serveredit.CheckProof(s.Entry, !secret.Empty(), keyed); err != nil {
		return nil, err
	}
	s.Status = serveredit.Lifecycle(s.Entry, s.ClientID != "", !secret.Empty())
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	s.ID = id.String()
	if s.SealedClientSecret, err = q.sealClientSecret(s.ID, secret); err != nil {
		return nil, err
	}
	if err := withFreeSlug(chosen, s.Name, func(slug string) error {
		s.Slug = slug
		return q.Core.Store.CreateServer(q.Context(), s)
	}); err != nil {
		return nil, serverConflict(routes.Missing(err, errNoTemplate))
	}
	created := q.connectCreator(s)
	if tried.Value || !tried.Present {
		created.Test = q.testNew(s)
	}
	return created, nil
}

// connectCreator begins the creator's own connection when all necessary facts are known. The server exists whatever the
// result is.
func (q *request) connectCreator(s storage.Server) createdView {
	created := createdView{ID: s.ID}
	known := s.Entry.OAuth.AuthorizationEndpoint != "" && s.Entry.OAuth.TokenEndpoint != ""
	if !serveredit.UsesOAuth(s.Entry) || !known || s.ClientID == "" || s.SealedClientSecret == nil {
		return created
	}
	result, err := q.Core.Broker.Connect(q.Context(), q.who(), s, connection.ConnectRequest{})
	if err != nil {
		q.handler.logger.Warn("connecting the creator of a server", zap.String("server", s.Slug), zap.Error(err))
		return created
	}
	created.ConnectionID, created.AuthURL = &result.ConnectionID, result.AuthURL
	return created
}

func (q *request) sealClientSecret(serverID string, secret seal.Secret) ([]byte, error) {
	if secret.Empty() {
		return nil, nil
	}
	return q.Core.Keyring.Seal([]byte(secret.Reveal()), connection.ClientSecretAD(q.Organization(), serverID))
}

// suffixes is the number of random suffixes that are tried for an automatic slug. Each has 32 bits.
const suffixes = 3

// withFreeSlug stores an object under a slug: the chosen one, or one made of its name, with a suffix when that is
// reserved or when store reports that it is taken.
func withFreeSlug(chosen, name string, store func(slug string) error) error {
	if chosen != "" {
		return store(chosen)
	}
	base := slug.FromName(name)
	candidate := base
	for try := 0; ; try++ {
		err := storage.ErrConflict
		if !slug.Reserved(candidate) {
			if err = store(candidate); conflictingField(err) != "slug" {
				return err
			}
		}
		if try == suffixes {
			return err
		}
		if candidate, err = slug.WithSuffix(base, rand.Reader); err != nil {
			return err
		}
	}
}

// conflictingField returns the field of a record whose value is taken, "" when err is no conflict.
func conflictingField(err error) string {
	var taken *storage.ConflictError
	if errors.As(err, &taken) {
		return taken.Field
	}
	return ""
}

// serverConflict returns an answer that names the field of a server whose value is taken.
func serverConflict(err error) error {
	switch {
	case !errors.Is(err, storage.ErrConflict):
		return err
	case conflictingField(err) == "name":
		return routes.Conflict("name", "A server of that name exists already")
	}
	return routes.Conflict("slug", "A server with that slug exists already")
}

// forgetRegistration deletes the OAuth client that the gateway registered with a server's provider: the next user who
// connects registers another.
func forgetRegistration(q *request) (any, error) {
	id := q.ID("server_id")
	if err := q.Shape(); err != nil {
		return nil, err
	}
	s, err := q.readServer(serverRef{id: id})
	if err != nil {
		return nil, err
	}
	return nil, routes.Missing(q.Core.Broker.ForgetClient(q.Context(), s), errNoRegistration)
}

func deleteServer(q *request) (any, error) {
	id := q.ID("server_id")
	if err := q.Shape(); err != nil {
		return nil, err
	}
	last, err := q.view(serverRef{id: id})
	if err != nil {
		return nil, err
	}
	deleted, err := q.Core.Broker.DeleteServer(q.Context(), q.Organization(), id, q.Call.Caller.UserID, q.handler.now())
	if err != nil {
		return nil, routes.Missing(err, errNoServer)
	}
	q.Core.Streams.End(streams.Owner{Organization: q.Organization(), Server: id}, streams.ServerDeleted)
	last.Server = deleted.Server
	return q.serverView(last), nil
}
