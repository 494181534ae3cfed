package commands

import (
	"context"
	"errors"

	"github.com/durward-gateway/durward/internal/ops/doctor"
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
