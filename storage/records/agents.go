package records

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	applicationColumns = `a.id, a.organization_id, a.issuer, a.external_id, a.name, a.description, a.public, a.dcr,
		a.post_login_success, a.callbacks, a.created_at, a.updated_at`
	applicationSQL       = `SELECT ` + applicationColumns + ` FROM applications a WHERE a.organization_id = $1 AND a.id = $2`
	insertApplicationSQL = `INSERT INTO applications (id, organization_id, issuer, external_id, external_id_lower, name, name_key,
			name_lower, description, description_lower, public, dcr, post_login_success, callbacks, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`

	agentSelect = `SELECT g.id, g.organization_id, g.write_confirmations_required, g.llm_gateway_enabled, g.approval_channel,
			g.created_at, g.updated_at, ` + applicationColumns + agentsFrom
	agentsFrom       = ` FROM agents g JOIN applications a ON a.organization_id = g.organization_id AND a.id = g.application_id`
	agentSQL         = agentSelect + ` WHERE g.organization_id = $1 AND g.id = $2`
	agentByClientSQL = agentSelect + ` WHERE g.organization_id = $1 AND g.issuer = $2 AND g.external_id = $3`
	agentExistsSQL   = `SELECT 1 FROM agents WHERE organization_id = $1 AND id = $2`
	insertAgentSQL   = `INSERT INTO agents (id, organization_id, application_id, issuer, external_id, write_confirmations_required,
			llm_gateway_enabled, approval_channel, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	updateAgentSQL = `UPDATE agents SET write_confirmations_required = $3, approval_channel = $4, updated_at = $5 WHERE organization_id = $1 AND id = $2`
	// updateApplicationSQL changes the texts of an application that people read.
	updateApplicationSQL = `UPDATE applications SET name = $3, name_key = $4, name_lower = $5, description = $6, description_lower = $7, updated_at = $8
		WHERE organization_id = $1 AND id = $2`
	deleteAgentSQL = `DELETE FROM agents WHERE organization_id = $1 AND id = $2`

	agentCountsSQL = `SELECT count(*), COALESCE(sum(a.dcr), 0)` + agentsFrom + ` WHERE g.organization_id = $1`
)

func (t *texts) agents(d Dialect) {
	// $3 says whether the types narrow, $4 and $5 which of them are wanted.
	where := ` WHERE g.organization_id = $1
		AND ($2 = '' OR ` + d.has(`a.name_lower`, `$2`) + ` OR ` + d.has(`a.description_lower`, `$2`) + ` OR ` + d.has(`a.external_id_lower`, `$2`) + `)
		AND ($3 = 0 OR a.dcr = 0 AND $4 = 1 OR a.dcr = 1 AND $5 = 1)`
	t.countAgents = `SELECT count(*)` + agentsFrom + where
	t.listAgents = agentSelect + where + ` ORDER BY a.name_key, g.id LIMIT $6 OFFSET $7`
}

func applicationFields(a *storage.Application) []any {
	return []any{&a.ID, &a.OrganizationID, &a.Issuer, &a.ExternalID, &a.Name, &a.Description, flagColumn{&a.Public}, flagColumn{&a.DCR},
		flagColumn{&a.PostLoginSuccess}, jsonColumn{&a.Callbacks}, timeColumn{&a.CreatedAt}, timeColumn{&a.UpdatedAt}}
}

func scanApplication(r Row) (a storage.Application, err error) {
	err = r.Scan(applicationFields(&a)...)
	return a, err
}

func scanAgent(r Row) (a storage.Agent, err error) {
	err = r.Scan(append([]any{&a.ID, &a.OrganizationID, flagColumn{&a.WriteConfirmationsRequired}, flagColumn{&a.LLMGatewayEnabled}, &a.ApprovalChannel,
		timeColumn{&a.CreatedAt}, timeColumn{&a.UpdatedAt}}, applicationFields(&a.Application)...)...)
	return a, err
}

// CreateAgent implements storage.Agents.
func (s agentsStore) CreateAgent(ctx context.Context, a storage.Agent) error {
	return s.write(ctx, a.OrganizationID, func(ctx context.Context, tx Tx) error { return createAgent(ctx, tx, a) })
}

func createAgent(ctx context.Context, tx Tx, a storage.Agent) error {
	p := a.Application
	if _, err := tx.Exec(ctx, insertApplicationSQL, p.ID, a.OrganizationID, p.Issuer, p.ExternalID, strings.ToLower(p.ExternalID),
		p.Name, nameKey(p.Name), strings.ToLower(p.Name), p.Description, strings.ToLower(p.Description), boolean(p.Public),
		boolean(p.DCR), boolean(p.PostLoginSuccess), jsonText(p.Callbacks), p.CreatedAt.UnixMicro(), p.UpdatedAt.UnixMicro()); err != nil {
		return err
	}
	return insertAgent(ctx, tx, a)
}

// insertAgent stores an agent whose application exists.
func insertAgent(ctx context.Context, tx Tx, a storage.Agent) error {
	if _, err := tx.Exec(ctx, insertAgentSQL, a.ID, a.OrganizationID, a.Application.ID, a.Application.Issuer, a.Application.ExternalID,
		boolean(a.WriteConfirmationsRequired), boolean(a.LLMGatewayEnabled), a.ApprovalChannel, a.CreatedAt.UnixMicro(),
		a.UpdatedAt.UnixMicro()); err != nil {
		return err
	}
	_, err := tx.Change(ctx, a.OrganizationID)
	return err
}

// AdoptApplication implements storage.Agents.
func (s agentsStore) AdoptApplication(ctx context.Context, a storage.Agent) (storage.Agent, error) {
	err := s.write(ctx, a.OrganizationID, func(ctx context.Context, tx Tx) (err error) {
		if a.Application, err = One(ctx, tx, scanApplication, applicationSQL, a.OrganizationID, a.Application.ID); err != nil {
			return err
		}
		if err := insertAgent(ctx, tx, a); err != nil {
			return err
		}
		a, err = One(ctx, tx, scanAgent, agentSQL, a.OrganizationID, a.ID)
		return err
	})
	if err != nil {
		return storage.Agent{}, err
	}
	return a, nil
}

// RegisterAgent implements storage.Agents. For a registered agent it only reads.
func (s agentsStore) RegisterAgent(ctx context.Context, a storage.Agent, limit int) (storage.Agent, error) {
	registered, err := s.AgentByClient(ctx, a.OrganizationID, a.Application.Issuer, a.Application.ExternalID)
	if !errors.Is(err, storage.ErrNotFound) {
		return registered, err
	}
	err = s.write(ctx, a.OrganizationID, func(ctx context.Context, tx Tx) error {
		registered, err = One(ctx, tx, scanAgent, agentByClientSQL, a.OrganizationID, a.Application.Issuer, a.Application.ExternalID)
		if !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		counts, err := One(ctx, tx, scanAgentCounts, agentCountsSQL, a.OrganizationID)
		if err != nil {
			return err
		}
		if counts.All >= limit {
			return storage.ErrNotFound
		}
		if err := createAgent(ctx, tx, a); err != nil {
			return err
		}
		registered, err = One(ctx, tx, scanAgent, agentSQL, a.OrganizationID, a.ID)
		return err
	})
	if err != nil {
		return storage.Agent{}, err
	}
	return registered, nil
}

// Agent implements storage.Agents.
func (s agentsStore) Agent(ctx context.Context, organization, id string) (a storage.Agent, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		a, err = One(ctx, q, scanAgent, agentSQL, organization, id)
		return err
	})
	return a, err
}

// AgentByClient implements storage.Agents.
func (s agentsStore) AgentByClient(ctx context.Context, organization, issuer, externalID string) (a storage.Agent, err error) {
	err = s.readToAuthenticate(ctx, Of(organization), func(ctx context.Context, q Querier) (err error) {
		a, err = One(ctx, q, scanAgent, agentByClientSQL, organization, issuer, externalID)
		return err
	})
	return a, err
}

// Agents implements storage.Agents.
func (s agentsStore) Agents(ctx context.Context, f storage.AgentFilter) (page storage.Page[storage.Agent], err error) {
	args := []any{f.OrganizationID, strings.ToLower(f.Search), len(f.Types), boolean(slices.Contains(f.Types, storage.AgentInternal)),
		boolean(slices.Contains(f.Types, storage.AgentExternal))}
	limit, offset := window(f.Page)
	err = s.readSnapshot(ctx, f.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		if page.Total, err = One(ctx, q, ScanInt, s.texts.countAgents, args...); err != nil {
			return err
		}
		page.Items, err = Many(ctx, q, scanAgent, s.texts.listAgents, append(args, limit, offset)...)
		return err
	})
	return page, err
}

func scanAgentCounts(r Row) (c storage.AgentCounts, err error) {
	err = r.Scan(&c.All, &c.External)
	c.Internal = c.All - c.External
	return c, err
}

// AgentCounts implements storage.Agents.
func (s agentsStore) AgentCounts(ctx context.Context, organization string) (c storage.AgentCounts, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		c, err = One(ctx, q, scanAgentCounts, agentCountsSQL, organization)
		return err
	})
	return c, err
}

// UpdateAgent implements storage.Agents.
func (s agentsStore) UpdateAgent(ctx context.Context, organization, id string, now time.Time, edit func(*storage.Agent) error) (a storage.Agent, err error) {
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		if a, err = One(ctx, tx, scanAgent, agentSQL, organization, id); err != nil {
			return err
		}
		wanted := a
		if err := edit(&wanted); err != nil {
			return err
		}
		p := &wanted.Application
		described := p.Name != a.Application.Name || p.Description != a.Application.Description
		if !described && wanted.WriteConfirmationsRequired == a.WriteConfirmationsRequired && wanted.ApprovalChannel == a.ApprovalChannel {
			return nil
		}
		a.WriteConfirmationsRequired, a.ApprovalChannel, a.UpdatedAt = wanted.WriteConfirmationsRequired, wanted.ApprovalChannel, micros(now)
		if err := execOne(ctx, tx, updateAgentSQL, organization, id, boolean(a.WriteConfirmationsRequired), a.ApprovalChannel, a.UpdatedAt.UnixMicro()); err != nil {
			return err
		}
		if described {
			a.Application.Name, a.Application.Description, a.Application.UpdatedAt = p.Name, p.Description, a.UpdatedAt
			if err := execOne(ctx, tx, updateApplicationSQL, organization, a.Application.ID, p.Name, nameKey(p.Name), strings.ToLower(p.Name),
				p.Description, strings.ToLower(p.Description), a.UpdatedAt.UnixMicro()); err != nil {
				return err
			}
		}
		_, err := tx.Change(ctx, organization)
		return err
	})
	if err != nil {
		return storage.Agent{}, err
	}
	return a, nil
}

// DeleteAgent implements storage.Agents. Its approvals and credentials go with it, by their foreign keys.
func (s agentsStore) DeleteAgent(ctx context.Context, organization, id, by string, now time.Time) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		policies, err := Many(ctx, tx, scanPolicy, livePoliciesOfAgentSQL, organization, id)
		if err != nil {
			return err
		}
		if err := execOne(ctx, tx, deleteAgentSQL, organization, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, revokeKeysOfAgentSQL, organization, id, now.UnixMicro(), never()); err != nil {
			return err
		}
		for _, former := range policies {
			p := former
			p.ApplicationIDs = slices.DeleteFunc(slices.Clone(former.ApplicationIDs), func(named string) bool { return named == id })
			if len(p.ApplicationIDs) == 0 {
				p.ApplicationIDs, p.Status = former.ApplicationIDs, storage.PolicyArchived
			}
			if _, err := savePolicy(ctx, tx, former, p, by, now); err != nil {
				return err
			}
		}
		_, err = tx.Change(ctx, organization)
		return err
	})
}
