package records

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	policyColumns = `p.id, p.organization_id, p.name, p.description, p.support_contact, p.tags, p.status, p.server_id,
		p.application_ids, p.rules, p.shadow, p.revision, p.created_at, p.updated_at, p.created_by, p.updated_by`
	policySelect           = `SELECT ` + policyColumns + ` FROM policies p`
	policySQL              = policySelect + ` WHERE p.organization_id = $1 AND p.id = $2`
	livePoliciesOfAgentSQL = policySelect + ` WHERE p.organization_id = $1 AND p.status <> 'ARCHIVED' AND p.id IN (
		SELECT n.policy_id FROM policy_agents n WHERE n.organization_id = $1 AND n.agent_id = $2) ORDER BY p.id`
	livePoliciesOfServerSQL = policySelect + ` WHERE p.organization_id = $1 AND p.server_id = $2 AND p.status <> 'ARCHIVED' ORDER BY p.created_at, p.id`

	insertPolicySQL = `INSERT INTO policies (id, organization_id, server_id, created_at, created_by, name, name_lower, description,
			description_lower, support_contact, support_contact_lower, tags, status, application_ids, rules, shadow, revision,
			updated_at, updated_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`
	updatePolicySQL = `UPDATE policies SET name = $6, name_lower = $7, description = $8, description_lower = $9,
			support_contact = $10, support_contact_lower = $11, tags = $12, status = $13, application_ids = $14, rules = $15,
			shadow = $16, revision = $17, updated_at = $18, updated_by = $19
		WHERE id = $1 AND organization_id = $2 AND server_id = $3 AND created_at = $4 AND created_by = $5`

	dropPolicyAgentsSQL  = `DELETE FROM policy_agents WHERE organization_id = $1 AND policy_id = $2`
	insertPolicyAgentSQL = `INSERT INTO policy_agents (organization_id, policy_id, position, agent_id) VALUES ($1, $2, $3, $4)`

	dropActiveSQL   = `DELETE FROM active_policies WHERE organization_id = $1 AND policy_id = $2`
	activeHolderSQL = `SELECT p.id, p.name FROM active_policies h JOIN policies p ON p.organization_id = h.organization_id AND p.id = h.policy_id
		WHERE h.organization_id = $1 AND h.server_id = $2 AND h.agent_id = $3`
	insertActiveSQL = `INSERT INTO active_policies (organization_id, server_id, agent_id, policy_id) VALUES ($1, $2, $3, $4)`

	insertRevisionSQL = `INSERT INTO policy_revisions (organization_id, policy_id, number, at, user_id, changes, policy)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`
)

// rulesColumn reads a result of storage.EncodeRules.
type rulesColumn struct{ to *[]storage.Rule }

func (c rulesColumn) Scan(v any) (err error) {
	text, ok := v.(string)
	if !ok {
		return fmt.Errorf("reading rules: got %T", v)
	}
	*c.to, err = storage.DecodeRules(text)
	return err
}

func policyFields(p *storage.Policy) []any {
	return []any{&p.ID, &p.OrganizationID, &p.Name, &p.Description, &p.SupportContact, jsonColumn{&p.Tags}, &p.Status, &p.ServerID,
		jsonColumn{&p.ApplicationIDs}, rulesColumn{&p.Rules}, flagColumn{&p.Shadow}, &p.Revision, timeColumn{&p.CreatedAt},
		timeColumn{&p.UpdatedAt}, &p.CreatedBy, &p.UpdatedBy}
}

func scanPolicy(r Row) (p storage.Policy, err error) {
	err = r.Scan(policyFields(&p)...)
	return p, err
}

// CreatePolicy implements storage.Policies.
func (s policiesStore) CreatePolicy(ctx context.Context, p storage.Policy) (view storage.PolicyView, err error) {
	err = s.write(ctx, p.OrganizationID, func(ctx context.Context, tx Tx) error {
		if err := checkReferences(ctx, tx, p, true, true); err != nil {
			return err
		}
		p.Revision, p.CreatedAt, p.UpdatedAt = 1, micros(p.CreatedAt), micros(p.UpdatedAt)
		changes, err := storage.PolicyChanges(nil, p)
		if err != nil {
			return err
		}
		if err := storePolicy(ctx, tx, insertPolicySQL, p, changes, p.CreatedBy, p.CreatedAt); err != nil {
			return err
		}
		if _, err := tx.Change(ctx, p.OrganizationID); err != nil {
			return err
		}
		view, err = readPolicy(ctx, tx, p.OrganizationID, p.ID)
		return err
	})
	if err != nil {
		return storage.PolicyView{}, err
	}
	return view, nil
}

// UpdatePolicy implements storage.Policies.
func (s policiesStore) UpdatePolicy(ctx context.Context, organization, id, by string, now time.Time, edit func(*storage.Policy) error) (view storage.PolicyView, err error) {
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		if err := updatePolicy(ctx, tx, organization, id, by, now, edit); err != nil {
			return err
		}
		view, err = readPolicy(ctx, tx, organization, id)
		return err
	})
	if err != nil {
		return storage.PolicyView{}, err
	}
	return view, nil
}

// UpdatePolicies implements storage.Policies.
func (s policiesStore) UpdatePolicies(ctx context.Context, organization string, ids []string, by string, now time.Time, edit func(*storage.Policy) error) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		for _, id := range ids {
			if err := updatePolicy(ctx, tx, organization, id, by, now, edit); err != nil {
				return err
			}
		}
		return nil
	})
}

func updatePolicy(ctx context.Context, tx Tx, organization, id, by string, now time.Time, edit func(*storage.Policy) error) error {
	former, err := One(ctx, tx, scanPolicy, policySQL, organization, id)
	if err != nil {
		return err
	}
	p := former
	p.Tags, p.ApplicationIDs, p.Rules = slices.Clone(p.Tags), slices.Clone(p.ApplicationIDs), cloneRules(p.Rules)
	if err := tx.Edit(func() error { return edit(&p) }); err != nil {
		return err
	}
	p.ID, p.OrganizationID, p.ServerID = former.ID, former.OrganizationID, former.ServerID
	if !former.Status.CanBecome(p.Status) {
		return fmt.Errorf("a policy that is %s cannot become %s", former.Status, p.Status)
	}
	activated := p.Status == storage.PolicyActive && former.Status != storage.PolicyActive
	if err := checkReferences(ctx, tx, p, activated, activated || !slices.Equal(p.ApplicationIDs, former.ApplicationIDs)); err != nil {
		return err
	}
	changed, err := savePolicy(ctx, tx, former, p, by, now)
	if err == nil && changed {
		_, err = tx.Change(ctx, organization)
	}
	return err
}

func cloneRules(rules []storage.Rule) []storage.Rule {
	rules = slices.Clone(rules)
	for i, r := range rules {
		rules[i].Actions, rules[i].RolesGroups, rules[i].Condition = slices.Clone(r.Actions), slices.Clone(r.RolesGroups), slices.Clone(r.Condition)
	}
	return rules
}

// checkReferences returns a ReferenceError when the server or an agent that p names is not a live one of its organization.
func checkReferences(ctx context.Context, q Querier, p storage.Policy, server, agents bool) error {
	var missing storage.ReferenceError
	if server {
		found, err := exists(ctx, q, serverExistsSQL, p.OrganizationID, p.ServerID)
		if err != nil {
			return err
		}
		missing.Server = !found
	}
	if agents {
		for i, id := range p.ApplicationIDs {
			found, err := exists(ctx, q, agentExistsSQL, p.OrganizationID, id)
			if err != nil {
				return err
			}
			if !found {
				missing.Applications = append(missing.Applications, i)
			}
		}
	}
	if missing.Server || missing.Applications != nil {
		return &missing
	}
	return nil
}

// savePolicy writes the next revision of a policy, when p differs from its former state. The caller reports the
// change.
func savePolicy(ctx context.Context, tx Tx, former, p storage.Policy, by string, now time.Time) (changed bool, err error) {
	changes, err := storage.PolicyChanges(&former, p)
	if err != nil || len(changes) == 0 {
		return false, err
	}
	p.CreatedAt, p.CreatedBy = former.CreatedAt, former.CreatedBy
	p.Revision, p.UpdatedAt, p.UpdatedBy = former.Revision+1, micros(now), by
	return true, storePolicy(ctx, tx, updatePolicySQL, p, changes, by, p.UpdatedAt)
}

// storePolicy writes a policy by query, with everything derived from it, and its revision.
func storePolicy(ctx context.Context, tx Tx, query string, p storage.Policy, changes []storage.FieldChange, by string, at time.Time) error {
	rules, err := storage.EncodeRules(p.Rules)
	if err != nil {
		return err
	}
	text, err := storage.EncodePolicy(p)
	if err != nil {
		return err
	}
	changed, err := storage.EncodeChanges(changes)
	if err != nil {
		return err
	}
	if err := execOne(ctx, tx, query, p.ID, p.OrganizationID, p.ServerID, p.CreatedAt.UnixMicro(), p.CreatedBy, p.Name,
		strings.ToLower(p.Name), p.Description, strings.ToLower(p.Description), p.SupportContact, strings.ToLower(p.SupportContact),
		jsonText(p.Tags), p.Status, jsonText(p.ApplicationIDs), rules, boolean(p.Shadow), p.Revision, p.UpdatedAt.UnixMicro(), p.UpdatedBy); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, dropPolicyAgentsSQL, p.OrganizationID, p.ID); err != nil {
		return err
	}
	for position, id := range p.ApplicationIDs {
		if _, err := tx.Exec(ctx, insertPolicyAgentSQL, p.OrganizationID, p.ID, position, id); err != nil {
			return err
		}
	}
	if err := govern(ctx, tx, p); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, insertRevisionSQL, p.OrganizationID, p.ID, p.Revision, at.UnixMicro(), by, changed, text)
	return err
}

// govern claims the agents of an active policy, and releases them when the policy is not active. It returns
// OverlapError when another policy has one; the table's primary key ensures that too (M23).
func govern(ctx context.Context, tx Tx, p storage.Policy) error {
	if _, err := tx.Exec(ctx, dropActiveSQL, p.OrganizationID, p.ID); err != nil || p.Status != storage.PolicyActive {
		return err
	}
	agents := slices.Compact(slices.Sorted(slices.Values(p.ApplicationIDs)))
	if len(agents) == 0 {
		agents = []string{""}
	}
	for _, id := range agents {
		holder, err := One(ctx, tx, scanHolder, activeHolderSQL, p.OrganizationID, p.ServerID, id)
		if err == nil {
			return &holder
		}
		if !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		if _, err := tx.Exec(ctx, insertActiveSQL, p.OrganizationID, p.ServerID, id, p.ID); err != nil {
			return err
		}
	}
	return nil
}

func scanHolder(r Row) (e storage.OverlapError, err error) {
	err = r.Scan(&e.PolicyID, &e.PolicyName)
	return e, err
}

// archivePolicies archives the policies of a deleted server.
func archivePolicies(ctx context.Context, tx Tx, organization, serverID, by string, now time.Time) error {
	policies, err := Many(ctx, tx, scanPolicy, livePoliciesOfServerSQL, organization, serverID)
	if err != nil {
		return err
	}
	for _, former := range policies {
		p := former
		p.Status = storage.PolicyArchived
		if _, err := savePolicy(ctx, tx, former, p, by, now); err != nil {
			return err
		}
	}
	return nil
}
