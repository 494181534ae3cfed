package commands

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/ops/doctor"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// recordStore reads the records for the examinations.
type recordStore interface {
	policyStore
	serverStore
	organizationStore
}

// examineRecords looks for records that cannot work with the present configuration.
func examineRecords(ctx context.Context, config *gatewayConfig, store recordStore, r *doctor.Report) error {
	return errors.Join(examineConnections(ctx, config, store, r), examineApprovals(ctx, config, store, r), examineOrganizations(ctx, config, store, r))
}

// hasPages reports whether browsers can log in.
func (c *gatewayConfig) hasPages() bool {
	for _, identity := range c.Identities {
		if identity.Kind == "dev" || identity.LoginClient != "" {
			return true
		}
	}
	return false
}

// everywhere passes every record of a kind to see: those of all organizations, page by page.
func everywhere[T any](
	ctx context.Context, organizations func(context.Context) ([]storage.Organization, error),
	list func(organization string, page storage.PageRequest) (storage.Page[T], error), see func(*T),
) error {
	const limit = 100
	all, err := organizations(ctx)
	if err != nil {
		return err
	}
	for _, o := range all {
		for page := 1; ; page++ {
			found, err := list(o.ID, storage.PageRequest{Number: page, Limit: limit})
			if err != nil {
				return err
			}
			for i := range found.Items {
				see(&found.Items[i])
			}
			if page*limit >= found.Total {
				break
			}
		}
	}
	return nil
}

// policyStore reads policies.
type policyStore interface {
	Organizations(ctx context.Context) ([]storage.Organization, error)
	Policies(ctx context.Context, f storage.PolicyFilter) (storage.Page[storage.PolicyView], error)
}

// examineApprovals looks for active policies that ask for approval where no page exists on which to give it.
func examineApprovals(ctx context.Context, config *gatewayConfig, store policyStore, r *doctor.Report) error {
	if config.hasPages() {
		return nil
	}
	var asking []string
	err := everywhere(ctx, store.Organizations, func(organization string, page storage.PageRequest) (storage.Page[storage.PolicyView], error) {
		return store.Policies(ctx, storage.PolicyFilter{OrganizationID: organization, Status: []storage.PolicyStatus{storage.PolicyActive}, Page: page})
	}, func(p *storage.PolicyView) {
		if asks(&p.Policy) {
			asking = append(asking, p.Name)
		}
	})
	if err != nil {
		return err
	}
	r.Add("approvals", doctor.Approvals(asking, len(config.ApprovalClients) > 0)...)
	return nil
}

// asks reports whether a policy grants something only after a human's approval.
func asks(p *storage.Policy) bool {
	return slices.ContainsFunc(p.Rules, func(r storage.Rule) bool {
		return r.Authorized && slices.ContainsFunc(r.Actions, engine.AsksForApproval)
	})
}

// serverStore reads servers.
type serverStore interface {
	Organizations(ctx context.Context) ([]storage.Organization, error)
	Servers(ctx context.Context, f storage.ServerFilter) (storage.Page[storage.ServerView], error)
}

// examineConnections looks for servers that need an account of each user where no page exists on which to connect
// one.
func examineConnections(ctx context.Context, config *gatewayConfig, store serverStore, r *doctor.Report) error {
	if config.hasPages() {
		return nil
	}
	var wanting []string
	err := everywhere(ctx, store.Organizations, func(organization string, page storage.PageRequest) (storage.Page[storage.ServerView], error) {
		return store.Servers(ctx, storage.ServerFilter{OrganizationID: organization, Now: time.Now(), Page: page})
	}, func(s *storage.ServerView) {
		if connection.NeedsAccount(&s.Entry) {
			wanting = append(wanting, visible.Text(s.Name))
		}
	})
	if err != nil {
		return err
	}
	r.Add("connections", doctor.Connections(wanting)...)
	return nil
}

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
