package records

import (
	"context"
	"errors"

	"github.com/durward-gateway/durward/storage"
)

const (
	// emptyOrganizationsSQL checks the tables of objects that people make. Rows that can only refer to such objects
	// (connections, revisions) need no check. Audit records are ignored: organizations that tokens named by mistake
	// have some too.
	emptyOrganizationsSQL = `SELECT id, issuer, slug, created_at FROM organizations o
		WHERE NOT EXISTS (SELECT 1 FROM servers WHERE organization_id = o.id)
		AND NOT EXISTS (SELECT 1 FROM directory_entries WHERE organization_id = o.id)
		AND NOT EXISTS (SELECT 1 FROM policies WHERE organization_id = o.id)
		AND NOT EXISTS (SELECT 1 FROM approvals WHERE organization_id = o.id)
		AND NOT EXISTS (SELECT 1 FROM agent_credentials WHERE organization_id = o.id)
		AND NOT EXISTS (SELECT 1 FROM api_keys WHERE organization_id = o.id)
		AND NOT EXISTS (SELECT 1 FROM rate_limits WHERE organization_id = o.id)
		AND NOT EXISTS (SELECT 1 FROM llm_providers WHERE organization_id = o.id)
		AND NOT EXISTS (SELECT 1 FROM model_mappings WHERE organization_id = o.id)
		AND NOT EXISTS (SELECT 1 FROM smart_models WHERE organization_id = o.id)
		AND NOT EXISTS (SELECT 1 FROM budgets WHERE organization_id = o.id)
		AND NOT EXISTS (SELECT 1 FROM provisioned_users WHERE organization_id = o.id)
		AND NOT EXISTS (SELECT 1 FROM provisioned_groups WHERE organization_id = o.id)
		AND NOT EXISTS (SELECT 1 FROM usage_hours WHERE organization_id = o.id)`
	listEmptyOrganizationsSQL = emptyOrganizationsSQL + ` ORDER BY id`
	emptyOrganizationSQL      = emptyOrganizationsSQL + ` AND o.id = $1`

	deleteAgentsSQL       = `DELETE FROM agents WHERE organization_id = $1`
	deleteApplicationsSQL = `DELETE FROM applications WHERE organization_id = $1`
	deleteUsersSQL        = `DELETE FROM users WHERE organization_id = $1`
	deleteOrganizationSQL = `DELETE FROM organizations WHERE id = $1`
)

// EmptyOrganizations implements [storage.Identities].
func (s identitiesStore) EmptyOrganizations(ctx context.Context) (empty []storage.Organization, err error) {
	err = s.readAcross(ctx, func(ctx context.Context, q Querier) (err error) {
		empty, err = Many(ctx, q, scanOrganization, listEmptyOrganizationsSQL)
		return err
	})
	return empty, err
}

// DeleteOrganization implements [storage.Identities]. It works across organizations because its audit record belongs
// to the caller's. A row that another node makes in the organization at the same moment refers to it, and the
// database refuses one of the two.
func (s identitiesStore) DeleteOrganization(ctx context.Context, id string) (o storage.Organization, err error) {
	err = s.writeAcross(ctx, IdentityLock, func(ctx context.Context, tx Tx) (err error) {
		if o, err = One(ctx, tx, scanOrganization, organizationByIDSQL, id); err != nil {
			return err
		}
		switch _, err = One(ctx, tx, scanOrganization, emptyOrganizationSQL, id); {
		case errors.Is(err, storage.ErrNotFound):
			return &storage.ConflictError{Field: "organization"}
		case err != nil:
			return err
		}
		_, agents := tx.Exec(ctx, deleteAgentsSQL, id)
		_, applications := tx.Exec(ctx, deleteApplicationsSQL, id)
		_, users := tx.Exec(ctx, deleteUsersSQL, id)
		if err := errors.Join(agents, applications, users); err != nil {
			return err
		}
		if err := execOne(ctx, tx, deleteOrganizationSQL, id); err != nil {
			return err
		}
		_, err = tx.Change(ctx, id) // nodes forget its users
		return err
	})
	if err != nil {
		return storage.Organization{}, err
	}
	return o, nil
}

// Organizations implements [storage.Identities].
func (s identitiesStore) Organizations(ctx context.Context) (all []storage.Organization, err error) {
	err = s.readAcross(ctx, func(ctx context.Context, q Querier) (err error) {
		all, err = Many(ctx, q, scanOrganization, organizationsSQL)
		return err
	})
	return all, err
}

// Organization implements [storage.Identities].
func (s identitiesStore) Organization(ctx context.Context, id string) (o storage.Organization, err error) {
	err = s.readToAuthenticate(ctx, Of(id), func(ctx context.Context, q Querier) (err error) {
		o, err = One(ctx, q, scanOrganization, organizationByIDSQL, id)
		return err
	})
	return o, err
}
