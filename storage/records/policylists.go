package records

import (
	"context"
	"strings"

	"github.com/durward-gateway/durward/storage"
)

const (
	viewSelect = `SELECT ` + policyColumns + `, COALESCE(s.name, ''), COALESCE(c.name, ''), COALESCE(u.name, '') FROM policies p
		LEFT JOIN servers s ON s.organization_id = p.organization_id AND s.id = p.server_id
		LEFT JOIN users c ON c.organization_id = p.organization_id AND c.id = p.created_by
		LEFT JOIN users u ON u.organization_id = p.organization_id AND u.id = p.updated_by`
	policyViewSQL       = viewSelect + ` WHERE p.organization_id = $1 AND p.id = $2`
	policyViewByNameSQL = viewSelect + ` WHERE p.organization_id = $1 AND p.name = $2 AND p.status <> 'ARCHIVED'`

	agentNamesJoin = ` JOIN policy_agents n ON n.organization_id = p.organization_id AND n.policy_id = p.id
		LEFT JOIN agents g ON g.organization_id = n.organization_id AND g.id = n.agent_id
		LEFT JOIN applications a ON a.organization_id = g.organization_id AND a.id = g.application_id
		ORDER BY n.policy_id, n.position`
	agentNamesSQL = `SELECT p.id, COALESCE(a.name, '') FROM (SELECT q.organization_id, q.id FROM policies q
		WHERE q.organization_id = $1 AND q.id = $2) p` + agentNamesJoin

	policySummarySQL  = `SELECT status, count(*) FROM policies WHERE organization_id = $1 GROUP BY status`
	serverPoliciesSQL = policySelect + ` WHERE p.organization_id = $1 AND p.server_id = $2
		AND (p.status = 'ACTIVE' OR p.status = 'DRAFT' AND p.shadow = 1) ORDER BY p.created_at, p.id`

	policyExistsSQL   = `SELECT 1 FROM policies WHERE organization_id = $1 AND id = $2`
	countRevisionsSQL = `SELECT count(*) FROM policy_revisions WHERE organization_id = $1 AND policy_id = $2`
	listRevisionsSQL  = `SELECT r.organization_id, r.policy_id, r.number, r.at, r.user_id, COALESCE(u.name, ''), r.changes, r.policy
		FROM policy_revisions r LEFT JOIN users u ON u.organization_id = r.organization_id AND u.id = r.user_id
		WHERE r.organization_id = $1 AND r.policy_id = $2 ORDER BY r.number DESC LIMIT $3 OFFSET $4`
)

func (t *texts) policies(d Dialect) {
	// $8 and $10 say whether the lists of ids narrow, $3 whether the statuses in their fixed places do.
	where := ` WHERE p.organization_id = $1
		AND ($2 = '' OR p.id = $2 OR ` + d.has(`p.name_lower`, `$2`) + ` OR ` + d.has(`p.description_lower`, `$2`) + ` OR ` + d.has(`p.support_contact_lower`, `$2`) + `)
		AND ($3 = 0 OR p.status IN ($4, $5, $6, $7))
		AND ($8 = 0 OR p.server_id` + d.in(`$9`) + `)
		AND ($10 = 0 OR EXISTS (SELECT 1 FROM policy_agents n WHERE n.organization_id = p.organization_id AND n.policy_id = p.id
			AND n.agent_id` + d.in(`$11`) + `))`
	order := ` ORDER BY p.updated_at DESC, p.id LIMIT $12 OFFSET $13`
	t.countPolicies = `SELECT count(*) FROM policies p` + where
	t.listPolicies = viewSelect + where + order
	t.listAgentNames = `SELECT p.id, COALESCE(a.name, '') FROM (SELECT p.organization_id, p.id FROM policies p` + where + order + `) p` + agentNamesJoin
	t.overlapping = policySelect + ` WHERE p.organization_id = $1 AND p.id <> $3 AND p.id IN (
		SELECT h.policy_id FROM active_policies h WHERE h.organization_id = $1 AND h.server_id = $2
			AND h.agent_id` + d.in(`$4`) + `) ORDER BY p.name, p.id`
}

func scanPolicyView(r Row) (v storage.PolicyView, err error) {
	err = r.Scan(append(policyFields(&v.Policy), &v.ServerName, &v.CreatedByName, &v.UpdatedByName)...)
	return v, err
}

// agentName holds the name of one of a policy's agents.
type agentName struct{ policy, name string }

func scanAgentName(r Row) (n agentName, err error) {
	err = r.Scan(&n.policy, &n.name)
	return n, err
}

// readPolicy reads a policy with its names.
func readPolicy(ctx context.Context, q Querier, organization, id string) (storage.PolicyView, error) {
	v, err := One(ctx, q, scanPolicyView, policyViewSQL, organization, id)
	if err != nil {
		return storage.PolicyView{}, err
	}
	return nameAgents(ctx, q, v)
}

func nameAgents(ctx context.Context, q Querier, v storage.PolicyView) (storage.PolicyView, error) {
	names, err := Many(ctx, q, scanAgentName, agentNamesSQL, v.OrganizationID, v.ID)
	for _, n := range names {
		v.ApplicationNames = append(v.ApplicationNames, n.name)
	}
	return v, err
}

// Policy implements storage.Policies.
func (s policiesStore) Policy(ctx context.Context, organization, id string) (v storage.PolicyView, err error) {
	err = s.readSnapshot(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		v, err = readPolicy(ctx, q, organization, id)
		return err
	})
	return v, err
}

// PolicyByName implements storage.Policies.
func (s policiesStore) PolicyByName(ctx context.Context, organization, name string) (v storage.PolicyView, err error) {
	err = s.readSnapshot(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		if v, err = One(ctx, q, scanPolicyView, policyViewByNameSQL, organization, name); err != nil {
			return err
		}
		v, err = nameAgents(ctx, q, v)
		return err
	})
	return v, err
}

// Policies implements storage.Policies.
func (s policiesStore) Policies(ctx context.Context, f storage.PolicyFilter) (page storage.Page[storage.PolicyView], err error) {
	var status [4]string
	places(status[:], f.Status, storage.PolicyDraft, storage.PolicyActive, storage.PolicyInactive, storage.PolicyArchived)
	args := []any{f.OrganizationID, strings.ToLower(f.Search), len(f.Status), status[0], status[1], status[2], status[3],
		len(f.ServerIDs), f.ServerIDs, len(f.AgentIDs), f.AgentIDs}
	limit, offset := window(f.Page)
	window := append(args[:len(args):len(args)], limit, offset)
	err = s.readSnapshot(ctx, f.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		if page.Total, err = One(ctx, q, ScanInt, s.texts.countPolicies, args...); err != nil {
			return err
		}
		if page.Items, err = Many(ctx, q, scanPolicyView, s.texts.listPolicies, window...); err != nil {
			return err
		}
		names, err := Many(ctx, q, scanAgentName, s.texts.listAgentNames, window...)
		if err != nil {
			return err
		}
		of := make(map[string][]string, len(page.Items))
		for _, n := range names {
			of[n.policy] = append(of[n.policy], n.name)
		}
		for i := range page.Items {
			page.Items[i].ApplicationNames = of[page.Items[i].ID]
		}
		return nil
	})
	return page, err
}

// PolicySummary implements storage.Policies.
func (s policiesStore) PolicySummary(ctx context.Context, organization string) (map[storage.PolicyStatus]int, error) {
	type group struct {
		status storage.PolicyStatus
		count  int
	}
	summary := make(map[storage.PolicyStatus]int)
	err := s.read(ctx, organization, func(ctx context.Context, q Querier) error {
		groups, err := Many(ctx, q, func(r Row) (g group, err error) {
			err = r.Scan(&g.status, &g.count)
			return g, err
		}, policySummarySQL, organization)
		for _, g := range groups {
			summary[g.status] = g.count
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return summary, nil
}

// ServerPolicies implements storage.Policies.
func (s policiesStore) ServerPolicies(ctx context.Context, organization, serverID string) (policies []storage.Policy, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		policies, err = Many(ctx, q, scanPolicy, serverPoliciesSQL, organization, serverID)
		return err
	})
	return policies, err
}

// OverlappingPolicies implements storage.Policies.
func (s policiesStore) OverlappingPolicies(ctx context.Context, organization, serverID string, applicationIDs []string, exclude string) (policies []storage.Policy, err error) {
	if len(applicationIDs) == 0 {
		applicationIDs = []string{""}
	}
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		policies, err = Many(ctx, q, scanPolicy, s.texts.overlapping, organization, serverID, exclude, applicationIDs)
		return err
	})
	return policies, err
}

// snapshotColumn reads a result of storage.EncodePolicy.
type snapshotColumn struct{ to *storage.Policy }

func (c snapshotColumn) Scan(v any) (err error) {
	text, _ := v.(string)
	*c.to, err = storage.DecodePolicy(text)
	return err
}

func scanRevision(r Row) (v storage.PolicyRevision, err error) {
	err = r.Scan(&v.OrganizationID, &v.PolicyID, &v.Number, timeColumn{&v.At}, &v.UserID, &v.UserName, jsonColumn{&v.Changes},
		snapshotColumn{&v.Policy})
	return v, err
}

// PolicyRevisions implements storage.Policies.
func (s policiesStore) PolicyRevisions(ctx context.Context, organization, id string, page storage.PageRequest) (revisions storage.Page[storage.PolicyRevision], err error) {
	limit, offset := window(page)
	err = s.readSnapshot(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		found, err := exists(ctx, q, policyExistsSQL, organization, id)
		if err != nil {
			return err
		}
		if !found {
			return storage.ErrNotFound
		}
		if revisions.Total, err = One(ctx, q, ScanInt, countRevisionsSQL, organization, id); err != nil {
			return err
		}
		revisions.Items, err = Many(ctx, q, scanRevision, listRevisionsSQL, organization, id, limit, offset)
		return err
	})
	return revisions, err
}
