package platformapi

import (
	"encoding/json"
	"slices"

	"github.com/durward-gateway/durward/internal/ops/declare"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// policyView is the API's view of a policy.
type policyView struct {
	ID               string               `json:"id"`
	OrganizationID   string               `json:"organization_id"`
	Name             string               `json:"name"`
	Description      string               `json:"description"`
	SupportContact   string               `json:"support_contact"`
	Tags             []string             `json:"tags"`
	Status           storage.PolicyStatus `json:"status"`
	ServerID         string               `json:"mcp_server_id"`
	ServerName       string               `json:"mcp_server_name"`
	ApplicationIDs   []string             `json:"application_ids"`
	ApplicationNames []string             `json:"application_names"`
	Rules            []storage.Rule       `json:"rules"`
	RulesCount       int                  `json:"rules_count"`
	Shadow           bool                 `json:"shadow"`
	Revision         int                  `json:"revision"`
	CreatedAt        routes.Instant       `json:"created_at"`
	UpdatedAt        routes.Instant       `json:"updated_at"`
	CreatedBy        string               `json:"created_by_user_id"`
	CreatedByName    string               `json:"created_by_user_name"`
	UpdatedBy        string               `json:"updated_by_user_id"`
	UpdatedByName    string               `json:"updated_by_user_name"`
	ManagedByFile    bool                 `json:"managed_by_file,omitempty"` // an applied file declares it
}

func (q *request) viewPolicy(p storage.PolicyView) policyView {
	list := p.Rules
	if list == nil {
		list = []storage.Rule{}
	}
	return policyView{
		ManagedByFile: q.ManagedByFile(declare.KindPolicy, p.ID),
		ID:            p.ID, OrganizationID: p.OrganizationID, Name: p.Name, Description: p.Description, SupportContact: p.SupportContact,
		Tags: routes.List(p.Tags), Status: p.Status, ServerID: p.ServerID, ServerName: p.ServerName,
		ApplicationIDs: routes.List(p.ApplicationIDs), ApplicationNames: routes.List(p.ApplicationNames), Rules: list, RulesCount: len(list),
		Shadow: p.Shadow, Revision: p.Revision, CreatedAt: routes.Instant(p.CreatedAt), UpdatedAt: routes.Instant(p.UpdatedAt),
		CreatedBy: p.CreatedBy, CreatedByName: p.CreatedByName, UpdatedBy: p.UpdatedBy, UpdatedByName: p.UpdatedByName,
	}
}

// wrappedPolicy is the body of the operations on one policy.
type wrappedPolicy struct {
	Policy   policyView `json:"policy"`
	Warnings []string   `json:"warnings,omitempty"`
}

func (q *request) wrap(p storage.PolicyView) wrappedPolicy {
	return wrappedPolicy{q.viewPolicy(p), q.policyWarnings(&p.Policy)}
}

// savedPolicy is the body of create-or-update.
type savedPolicy struct {
	Success  struct{}   `json:"success"`
	Policy   policyView `json:"policy"`
	Created  bool       `json:"created"`
	Warnings []string   `json:"warnings,omitempty"`
}

// policyWarnings returns warnings about rules in an accepted policy that may surprise its author.
func (q *request) policyWarnings(p *storage.Policy) []string {
	warning := q.Core.ApprovalWarning()
	asks := func(r storage.Rule) bool {
		return r.Authorized && slices.ContainsFunc(r.Actions, engine.AsksForApproval)
	}
	if warning == "" || !slices.ContainsFunc(p.Rules, asks) {
		return nil
	}
	return []string{warning}
}

// policyItem is a policy in a list.
type policyItem struct {
	ID               string               `json:"id"`
	Name             string               `json:"name"`
	Status           storage.PolicyStatus `json:"status"`
	ServerID         string               `json:"mcp_server_id"`
	UpdatedAt        routes.Instant       `json:"updated_at"`
	UpdatedBy        string               `json:"updated_by_user_id"`
	ServerName       string               `json:"mcp_server_name"`
	ApplicationIDs   []string             `json:"application_ids"`
	ApplicationNames []string             `json:"application_names"`
	Tags             []string             `json:"tags"`
	UpdatedByName    string               `json:"updated_by_user_name"`
	Description      string               `json:"description"`
	RulesCount       int                  `json:"rules_count"`
	ManagedByFile    bool                 `json:"managed_by_file,omitempty"` // an applied file declares it
}

func (q *request) viewPolicyItem(p storage.PolicyView) policyItem {
	return policyItem{
		ManagedByFile: q.ManagedByFile(declare.KindPolicy, p.ID),
		ID:            p.ID, Name: p.Name, Status: p.Status, ServerID: p.ServerID, UpdatedAt: routes.Instant(p.UpdatedAt), UpdatedBy: p.UpdatedBy,
		ServerName: p.ServerName, ApplicationIDs: routes.List(p.ApplicationIDs), ApplicationNames: routes.List(p.ApplicationNames),
		Tags: routes.List(p.Tags), UpdatedByName: p.UpdatedByName, Description: p.Description, RulesCount: len(p.Rules),
	}
}

// changeView is one member of a policy before and after a write.
type changeView struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// revisionView shows the changes of one write to a policy. The user is empty when the gateway itself wrote it.
type revisionView struct {
	Number    int            `json:"revision"`
	PolicyID  string         `json:"policy_id"`
	CreatedAt routes.Instant `json:"created_at"`
	UserID    string         `json:"user_id"`
	UserName  string         `json:"user_name"`
	Changes   []changeView   `json:"changes"`
}

func viewRevision(r storage.PolicyRevision) revisionView {
	changes := make([]changeView, len(r.Changes))
	for i, c := range r.Changes {
		changes[i] = changeView{Field: c.Field, Before: orNull(c.Before), After: orNull(c.After)}
	}
	return revisionView{Number: r.Number, PolicyID: r.PolicyID, CreatedAt: routes.Instant(r.At), UserID: r.UserID, UserName: r.UserName, Changes: changes}
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
