package commands

import (
	"context"
	"slices"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/ops/doctor"
	"github.com/durward-gateway/durward/storage"
)

// organizationStore reads organizations.
type organizationStore interface {
	Organizations(ctx context.Context) ([]storage.Organization, error)
	EmptyOrganizations(ctx context.Context) ([]storage.Organization, error)
}

// examineOrganizations looks for organizations that a token made in addition to the configured or the first one, and
// in which nothing was created.
func examineOrganizations(ctx context.Context, config *gatewayConfig, store organizationStore, r *doctor.Report) error {
	all, err := store.Organizations(ctx)
	if err != nil || len(all) < 2 {
		return err
	}
	first := slices.MinFunc(all, func(a, b storage.Organization) int { return a.CreatedAt.Compare(b.CreatedAt) })
	meant := func(o storage.Organization) bool { return o.ID == first.ID }
	if slices.ContainsFunc(config.Identities, func(i configuredIdentity) bool { return i.Organization != "" }) {
		meant = func(o storage.Organization) bool {
			return slices.ContainsFunc(config.Identities, func(i configuredIdentity) bool { return i.isFor(o) })
		}
	}
	named := func(o storage.Organization) string {
		if o.Slug == "" {
			return o.ID
		}
		return visible.Text(o.Slug) + " (" + o.ID + ")"
	}
	empty, err := store.EmptyOrganizations(ctx)
	if err != nil {
		return err
	}
	var names, unreachable []string
	for _, o := range empty {
		if !meant(o) {
			names = append(names, named(o))
		}
	}
	if !slices.ContainsFunc(config.Identities, func(i configuredIdentity) bool { return i.Organization == "" }) {
		for _, o := range all {
			if !meant(o) && !slices.ContainsFunc(empty, func(e storage.Organization) bool { return e.ID == o.ID }) {
				unreachable = append(unreachable, named(o))
			}
		}
	}
	r.Add("organizations", doctor.Organizations(names, unreachable)...)
	return nil
}
