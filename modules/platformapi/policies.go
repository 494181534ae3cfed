package platformapi

import (
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway"
	policyedit "github.com/durward-gateway/durward/internal/policy/edit"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

func listPolicies(q *request) (any, error) {
	filter := storage.PolicyFilter{OrganizationID: q.Organization(), Search: q.Search(), Page: q.Page()}
	for _, word := range q.Query.Enums("status", policyedit.Statuses...) {
		filter.Status = append(filter.Status, storage.PolicyStatus(word))
	}
	filter.ServerIDs = q.Query.UUIDs("mcp_server_id", validate.List{})
	filter.AgentIDs = q.Query.UUIDs("agent_id", validate.List{})
	if err := q.Shape(); err != nil {
		return nil, err
	}
	page, err := q.Core.Store.Policies(q.Context(), filter)
	if err != nil {
		return nil, err
	}
	return viewPage(filter.Page, page, q.viewPolicyItem), nil
}

func getPolicy(q *request) (any, error) {
	id := q.ID("policy_id")
	if err := q.Shape(); err != nil {
		return nil, err
	}
	p, err := q.Core.Store.Policy(q.Context(), q.Organization(), id)
	if err != nil {
		return nil, routes.Missing(err, errNoPolicy)
	}
	return q.wrap(p), nil
}

func createPolicy(q *request) (any, error) {
	var edit policyedit.Edit
	if err := q.Read(false, func(o *validate.Object) {
		edit = policyedit.Read(o, validate.Required)
		_, problems := edit.New()
		q.reportPolicy(o, &edit, problems)
	}); err != nil {
		return nil, err
	}
	p, err := q.storePolicy(&edit)
	if err != nil {
		return nil, policyRefusal(err, &edit)
	}
	return routes.Created{Body: q.wrap(p)}, nil
}

// storePolicy makes a policy from an edit without problems.
func (q *request) storePolicy(edit *policyedit.Edit) (storage.PolicyView, error) {
	p, problems := edit.New()
	if err := problems.Err(); err != nil {
		return storage.PolicyView{}, err
	}
	return q.newPolicy(p)
}

// newPolicy stores a policy of the caller, with a new id.
func (q *request) newPolicy(p storage.Policy) (storage.PolicyView, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return storage.PolicyView{}, err
	}
	if err := q.mayDecide(p.Status); err != nil {
		return storage.PolicyView{}, err
	}
	p.ID, p.OrganizationID, p.Revision = id.String(), q.Organization(), 1
	p.CreatedAt = q.handler.now().UTC()
	p.UpdatedAt, p.CreatedBy, p.UpdatedBy = p.CreatedAt, q.Call.Caller.UserID, q.Call.Caller.UserID
	return q.Core.Store.CreatePolicy(q.Context(), p)
}

func updatePolicy(q *request) (any, error) {
	id := q.ID("policy_id")
	// The problems of a change depend on the policy that it changes; they are still reported before whether the policy
	// exists.
	present, lookup := q.presentPolicy(id)
	var edit policyedit.Edit
	if err := q.Read(false, func(o *validate.Object) {
		edit = policyedit.Read(o, 0)
		var problems validate.Problems
		if lookup == nil {
			changed := present.Policy
			problems = edit.Apply(&changed, "path", "policy_id")
		}
		q.reportPolicy(o, &edit, problems)
	}); err != nil {
		return nil, err
	}
	if lookup != nil {
		return nil, routes.Missing(lookup, errNoPolicy)
	}
	p, err := q.changePolicy(id, &edit, "path", "policy_id")
	if err != nil {
		return nil, err
	}
	return q.wrap(p), nil
}

// presentPolicy returns a policy of the organization. No policy has an id that was no uuid.
func (q *request) presentPolicy(id string) (storage.PolicyView, error) {
	if id == "" {
		return storage.PolicyView{}, storage.ErrNotFound
	}
	return q.Core.Store.Policy(q.Context(), q.Organization(), id)
}

// changePolicy applies an edit to a policy, which the request names at place.
func (q *request) changePolicy(id string, edit *policyedit.Edit, place ...any) (storage.PolicyView, error) {
	p, err := q.Core.Store.UpdatePolicy(q.Context(), q.Organization(), id, q.Call.Caller.UserID, q.handler.now().UTC(), func(p *storage.Policy) error {
		if err := edit.Apply(p, place...).Err(); err != nil {
			return err
		}
		return q.mayDecide(p.Status)
	})
	return p, policyRefusal(err, edit, place...)
}

// mayDecide refuses a policy that would decide from now on to a browser whose login is not fresh.
func (q *request) mayDecide(status storage.PolicyStatus) error {
	if status != storage.PolicyActive {
		return nil
	}
	return q.Fresh(q.handler.now())
}

// reportPolicy adds problems that are about more than one member. When there are problems, references are looked up
// too, so that a client sees all problems at once; otherwise the store does that in the transaction of the write.
func (q *request) reportPolicy(o *validate.Object, edit *policyedit.Edit, problems validate.Problems) {
	q.Note(problems.Err())
	if q.Sound() && o.Err() == nil {
		return
	}
	if slices.ContainsFunc(problems, func(p validate.Problem) bool { return slices.Equal(p.Loc, []any{"body", "mcp_server_id"}) }) {
		without := *edit
		without.ServerID.Value = ""
		edit = &without
	}
	q.noteReferences(edit)
}

// noteReferences looks up the references of an edit, and notes those that do not exist.
func (q *request) noteReferences(edit *policyedit.Edit) {
	broken := &storage.ReferenceError{}
	if id := edit.ServerID.Value; id != "" {
		_, err := q.Core.Store.Server(q.Context(), q.Organization(), id)
		broken.Server = errors.Is(err, storage.ErrNotFound)
		q.noteFailure(err)
	}
	for i, id := range edit.ApplicationIDs.Value {
		_, err := q.Core.Store.Agent(q.Context(), q.Organization(), id)
		if errors.Is(err, storage.ErrNotFound) {
			broken.Applications = append(broken.Applications, i)
		}
		q.noteFailure(err)
	}
	q.Note(edit.References(broken).Err())
}

// noteFailure keeps an error that is not the client's fault.
func (q *request) noteFailure(err error) {
	if !errors.Is(err, storage.ErrNotFound) {
		q.Note(err)
	}
}

// policyRefusal returns the answer for an error of the store. place is the place in the request that names the policy.
func policyRefusal(err error, edit *policyedit.Edit, place ...any) error {
	var broken *storage.ReferenceError
	var overlap *storage.OverlapError
	switch {
	case errors.As(err, &broken):
		return edit.References(broken, place...)
	case errors.As(err, &overlap):
		return overlapping(overlap)
	case errors.Is(err, storage.ErrConflict):
		return routes.Conflict("name", "A policy of that name exists already")
	}
	return routes.Missing(err, errNoPolicy)
}

// overlapping returns a 409 with the policy that already covers the same agents.
func overlapping(err *storage.OverlapError) error {
	return &routes.Refusal{ServiceError: gateway.ServiceError{
		Name: gateway.Conflict, Message: fmt.Sprintf("The active policy %q governs this server and one of these agents already, and only one can: disable it, or name other agents", err.PolicyName),
		Details: map[string]any{"field": "status", "policy_id": err.PolicyID, "policy_name": err.PolicyName},
	}}
}

// clonePolicy makes a draft from a copy of an existing policy.
func clonePolicy(q *request) (any, error) {
	id := q.ID("policy_id")
	var name string
	if err := q.Read(true, func(o *validate.Object) { name = policyedit.Name(o, validate.Nullable).Value }); err != nil {
		return nil, err
	}
	was, err := q.Core.Store.Policy(q.Context(), q.Organization(), id)
	if err != nil {
		return nil, routes.Missing(err, errNoPolicy)
	}
	p := was.Policy
	p.Status, p.Shadow, p.Name = storage.PolicyDraft, false, name
	if name == "" {
		p.Name = policyedit.CopyName(was.Name)
	}
	made, err := q.newPolicy(p)
	switch {
	case err == nil:
	case name == "" && takenName(err):
		return nil, routes.Conflict("name", fmt.Sprintf("A policy of the name %q exists already: send {\"name\": ...} with another", p.Name))
	default:
		return nil, policyRefusal(err, &policyedit.Edit{}, "path", "policy_id")
	}
	return q.wrap(made), nil
}

func listRevisions(q *request) (any, error) {
	id, page := q.ID("policy_id"), q.Page()
	if err := q.Shape(); err != nil {
		return nil, err
	}
	revisions, err := q.Core.Store.PolicyRevisions(q.Context(), q.Organization(), id, page)
	if err != nil {
		return nil, routes.Missing(err, errNoPolicy)
	}
	return viewPage(page, revisions, viewRevision), nil
}

type summaryView struct {
	Active   int `json:"active"`
	Draft    int `json:"draft"`
	Inactive int `json:"inactive"`
	Archived int `json:"archived"`
	Total    int `json:"total"`
}

func summarizePolicies(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	counts, err := q.Core.Store.PolicySummary(q.Context(), q.Organization())
	if err != nil {
		return nil, err
	}
	s := summaryView{
		Active: counts[storage.PolicyActive], Draft: counts[storage.PolicyDraft], Inactive: counts[storage.PolicyInactive],
		Archived: counts[storage.PolicyArchived],
	}
	s.Total = s.Active + s.Draft + s.Inactive + s.Archived
	return s, nil
}

type validationView struct {
	NameIsUnique     bool     `json:"name_is_unique"`
	NoOverlap        bool     `json:"no_overlap_if_active"`
	OverlappingNames []string `json:"overlapping_policy_names"`
}

// validatePolicy checks a policy without storing it. Its result is advice: the facts can have changed by the time of
// the write, which enforces the rules.
func validatePolicy(q *request) (any, error) {
	var name, server, excluded string
	var applications []string
	if err := q.Read(false, func(o *validate.Object) {
		// Clients write null for members that they leave out.
		name = policyedit.Name(o, validate.Required).Value
		server = o.UUID("mcp_server_id", validate.Nullable).Value
		applications = o.UUIDs("application_ids", validate.List{Flags: validate.Nullable}).Value
		excluded = o.UUID("exclude_policy_id", validate.Nullable).Value
	}); err != nil {
		return nil, err
	}
	v := validationView{NoOverlap: true, OverlappingNames: []string{}}
	holder, err := q.Core.Store.PolicyByName(q.Context(), q.Organization(), name)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		v.NameIsUnique = true
	case err != nil:
		return nil, err
	default:
		v.NameIsUnique = holder.ID == excluded
	}
	if server == "" {
		return v, nil
	}
	found, err := q.Core.Store.OverlappingPolicies(q.Context(), q.Organization(), server, applications, excluded)
	if err != nil {
		return nil, err
	}
	for _, p := range found {
		v.OverlappingNames = append(v.OverlappingNames, p.Name)
	}
	v.NoOverlap = len(found) == 0
	return v, nil
}

type filterOption struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

type filterDefinition struct {
	ID      string         `json:"id"`
	Label   string         `json:"label"`
	Options []filterOption `json:"options"`
}

// policyFilters returns the filters for the list of policies, with their present values.
func policyFilters(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	status := filterDefinition{ID: "status", Label: "Status", Options: []filterOption{
		{string(storage.PolicyDraft), "Draft"}, {string(storage.PolicyActive), "Active"},
		{string(storage.PolicyInactive), "Inactive"}, {string(storage.PolicyArchived), "Archived"},
	}}
	servers := filterDefinition{ID: "mcp_server_id", Label: "MCP server", Options: []filterOption{}}
	all, err := q.Core.Store.Servers(q.Context(), q.serverFilter())
	if err != nil {
		return nil, err
	}
	for _, s := range all.Items {
		servers.Options = append(servers.Options, filterOption{s.ID, s.Name})
	}
	agents := filterDefinition{ID: "agent_id", Label: "Agent", Options: []filterOption{}}
	known, err := q.Core.Store.Agents(q.Context(), storage.AgentFilter{OrganizationID: q.Organization()})
	if err != nil {
		return nil, err
	}
	for _, a := range known.Items {
		agents.Options = append(agents.Options, filterOption{a.ID, a.Application.Name})
	}
	return []filterDefinition{status, servers, agents}, nil
}
