package platformapi

import (
	"errors"
	"slices"

	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

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
