package commands

import (
	"context"
	"slices"

	"github.com/durward-gateway/durward/internal/ops/doctor"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

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
