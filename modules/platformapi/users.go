package platformapi

import (
	"errors"
	"slices"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/credential/connection"
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

// userView is the API's view of a user. Roles and groups are null when no token has named any yet.
type userView struct {
	ID        string           `json:"id"`
	Name      *string          `json:"name"`
	Email     *string          `json:"email"`
	Kind      storage.UserKind `json:"kind"`
	Issuer    string           `json:"issuer"`
	Subject   string           `json:"subject"`
	Roles     *[]string        `json:"roles"`  // of the newest token that named them
	Groups    *[]string        `json:"groups"` // as for roles
	CreatedAt routes.Instant   `json:"created_at"`
	SeenAt    routes.Instant   `json:"seen_at"`    // up to a minute late
	RevokedAt *routes.Instant  `json:"revoked_at"` // tokens issued until then are refused
}

func viewUser(u storage.User) userView {
	return userView{
		ID: u.ID, Name: routes.Optional(u.Name), Email: routes.Optional(u.Email), Kind: u.Kind, Issuer: u.Issuer, Subject: u.Subject,
		Roles: factNames(u.Facts.Roles), Groups: factNames(u.Facts.Groups),
		CreatedAt: routes.Instant(u.CreatedAt), SeenAt: routes.Instant(u.SeenAt), RevokedAt: routes.OptionalInstant(u.RevokedAt),
	}
}

// factNames returns the names of a fact, nil when no token has contained it.
func factNames(f storage.Fact) *[]string {
	if f.At.IsZero() {
		return nil
	}
	names := routes.List(f.Names)
	return &names
}

func listUsers(q *request) (any, error) {
	filter := storage.UserFilter{OrganizationID: q.Organization(), Search: q.Search()}
	after, limit := q.keyed()
	if err := q.Shape(); err != nil {
		return nil, err
	}
	filter.After, filter.Limit = after, limit+1
	users, err := q.Core.Store.Users(q.Context(), filter)
	if err != nil {
		return nil, err
	}
	return viewKeyed(users, limit, func(u storage.User) string { return u.ID }, viewUser), nil
}

func getUser(q *request) (any, error) {
	id := q.ID("user_id")
	if err := q.Shape(); err != nil {
		return nil, err
	}
	u, err := q.Core.Store.User(q.Context(), q.Organization(), id)
	if err != nil {
		return nil, routes.Missing(err, errNoUser)
	}
	return viewUser(u), nil
}

// offboardingView shows what has ended with a user, or would.
type offboardingView struct {
	UserID      string          `json:"user_id"`
	DryRun      bool            `json:"dry_run"`
	RevokedAt   *routes.Instant `json:"revoked_at"` // tokens issued until then are refused
	Sessions    int             `json:"sessions"`   // logins with OAuth clients at this gateway
	APIKeys     int             `json:"api_keys"`   // that stand for the user
	Connections int             `json:"connections"`
	Streams     int             `json:"streams"` // open at the node that answers; those at others end too
	Approvals   int             `json:"approvals"`
	Tasks       int             `json:"tasks"`
}

func viewOffboarding(o *storage.Offboarding, running int, dry bool) offboardingView {
	return offboardingView{
		UserID: o.User.ID, DryRun: dry, RevokedAt: routes.OptionalInstant(o.User.RevokedAt), Sessions: o.Sessions, APIKeys: o.APIKeys,
		Connections: o.Connections, Streams: running, Approvals: o.Approvals, Tasks: o.Tasks,
	}
}

// offboardUser ends everything of a user in one transaction, whose audit record has the numbers, and then the streams. A
// misspelt parameter or a body is refused: what was to be a look would end everything.
func offboardUser(q *request) (any, error) {
	id := q.ID("user_id")
	dry := q.Query.Bool("dry_run", 0).Value
	if err := q.Read(true, func(o *validate.Object) { o.Only() }); err != nil {
		return nil, err
	}
	if !dry {
		if err := q.Fresh(q.handler.now()); err != nil {
			return nil, err
		}
	}
	own := streams.Owner{Organization: q.Organization(), User: id}
	running := q.Core.Streams.Count(own)
	at := q.Core.Clock.Shared(q.handler.now()).UTC()
	record := func(o *storage.Offboarding) {
		v := viewOffboarding(o, running, dry)
		q.Record.Detail["dry_run"], q.Record.Detail["ended"] = dry, map[string]int{
			"sessions": v.Sessions, "api_keys": v.APIKeys, "connections": v.Connections, "streams": v.Streams, "approvals": v.Approvals, "tasks": v.Tasks,
		}
	}
	if dry {
		o, err := q.Core.Store.Offboarding(q.Context(), q.Organization(), id, at)
		if err != nil {
			return nil, routes.Missing(err, errNoUser)
		}
		record(&o)
		return viewOffboarding(&o, running, dry), nil
	}
	o, err := connection.OffboardUser(q.Context(), q.Core.Broker, storage.OffboardRequest{OrganizationID: q.Organization(), UserID: id, At: at, Tell: record})
	if err != nil {
		return nil, routes.Missing(err, errNoUser)
	}
	q.Core.Tasks.Forget(q.Organization(), id)
	q.Core.Metrics.Connections.WithLabelValues("disconnected").Add(float64(len(o.Ended)))
	// Observers of the change may have ended some of them before this line does.
	return viewOffboarding(&o, max(q.Core.Streams.End(own, streams.Revoked), running), dry), nil
}

type organizationView struct {
	ID        string         `json:"id"`
	Slug      *string        `json:"slug"`
	Issuer    string         `json:"issuer"`
	CreatedAt routes.Instant `json:"created_at"`
	Own       bool           `json:"own"`   // the caller's
	Empty     bool           `json:"empty"` // no user made anything in it: it can be removed
}

type organizationsView struct {
	Organizations []organizationView `json:"organizations"`
}

// listOrganizations shows the caller's organization. Others are shown only when the configuration is for that
// organization alone: tokens named the others before it was configured so, and now they belong to nobody.
func listOrganizations(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	empty, err := q.Core.Store.EmptyOrganizations(q.Context())
	if err != nil {
		return nil, err
	}
	var all []storage.Organization
	if q.Core.Issuers.ServeOnly(q.Organization()) {
		all, err = q.Core.Store.Organizations(q.Context())
	} else {
		var own storage.Organization
		own, err = q.Core.Store.Organization(q.Context(), q.Organization())
		all = []storage.Organization{own}
	}
	if err != nil {
		return nil, err
	}
	view := organizationsView{Organizations: []organizationView{}}
	for _, o := range all {
		view.Organizations = append(view.Organizations, organizationView{
			ID: o.ID, Slug: routes.Optional(o.Slug), Issuer: o.Issuer, CreatedAt: routes.Instant(o.CreatedAt), Own: o.ID == q.Organization(),
			Empty: slices.ContainsFunc(empty, func(e storage.Organization) bool { return e.ID == o.ID }),
		})
	}
	return view, nil
}

// deleteOrganization removes an empty organization that is not the caller's.
func deleteOrganization(q *request) (any, error) {
	id := q.ID("organization_id")
	if err := q.Shape(); err != nil {
		return nil, err
	}
	if id == q.Organization() {
		return nil, routes.Conflict("organization_id", "This is your own organization")
	}
	if !q.Core.Issuers.ServeOnly(q.Organization()) {
		return nil, errNoOrganization
	}
	_, err := q.Core.Store.DeleteOrganization(q.Context(), id)
	if conflict := (*storage.ConflictError)(nil); errors.As(err, &conflict) {
		return nil, routes.Conflict("organization_id", "There is something in this organization: servers, policies, keys, limits, providers, usage. Only an empty one can be removed")
	}
	return nil, routes.Missing(err, errNoOrganization)
}
