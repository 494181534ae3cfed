package platformapi

import (
	"errors"
	"slices"

	"github.com/durward-gateway/durward/internal/api/validate"
	policyedit "github.com/durward-gateway/durward/internal/policy/edit"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// policyTarget is the policy that create-or-update works on: the one with the id of the body, otherwise the one of its
// name.
type policyTarget struct {
	policy storage.PolicyView
	found  bool
	place  []any // the place in the body that names it
	taken  bool  // the name belongs to a policy of another server
	err    error // the reason why the required policy does not exist
}

// savePolicy makes a policy, or changes the one that the body names.
func savePolicy(q *request) (any, error) {
	var edit policyedit.Edit
	var target policyTarget
	if err := q.Read(false, func(o *validate.Object) {
		id := o.UUID("id", 0)
		required := validate.Required
		if id.Present {
			required = 0
		}
		edit = policyedit.Read(o, required)
		target = q.policyTarget(id, &edit)
		q.reportPolicy(o, &edit, target.problems(&edit))
	}); err != nil {
		return nil, err
	}
	if target.taken {
		q.noteReferences(&edit)
		if err := q.Wrong(); err != nil {
			return nil, err
		}
	}
	if target.err != nil {
		return nil, target.err
	}
	if !target.found {
		made, err := q.storePolicy(&edit)
		if err == nil {
			return savedPolicy{Policy: q.viewPolicy(made), Created: true, Warnings: q.policyWarnings(&made.Policy)}, nil
		}
		if !takenName(err) {
			return nil, policyRefusal(err, &edit)
		}
		// Another request took the name since it was looked up: this request then changes the policy that the other made.
		if target = q.policyTarget(validate.Field[string]{}, &edit); target.err != nil || !target.found {
			return nil, policyRefusal(err, &edit)
		}
	}
	p, err := q.changePolicy(target.policy.ID, &edit, target.place...)
	if err != nil {
		return nil, err
	}
	return savedPolicy{Policy: q.viewPolicy(p), Warnings: q.policyWarnings(&p.Policy)}, nil
}

func takenName(err error) bool {
	var overlap *storage.OverlapError
	return errors.Is(err, storage.ErrConflict) && !errors.As(err, &overlap)
}

func (q *request) policyTarget(id validate.Field[string], edit *policyedit.Edit) policyTarget {
	var t policyTarget
	var err error
	switch {
	case id.Present:
		t.place = []any{"body", "id"}
		t.policy, err = q.presentPolicy(id.Value)
		t.err = routes.Missing(err, errNoPolicy)
		t.found = err == nil
	case edit.Name.Value != "":
		t.place = []any{"body", "name"}
		t.policy, err = q.Core.Store.PolicyByName(q.Context(), q.Organization(), edit.Name.Value)
		switch {
		case errors.Is(err, storage.ErrNotFound):
		case err != nil:
			t.err = err
		case t.policy.ServerID != edit.ServerID.Value:
			t.taken, t.err = true, routes.Conflict("name", "A policy of that name exists already, for another server")
		default:
			t.found = true
		}
	}
	return t
}

// problems returns the problems of applying the edit to the target.
func (t *policyTarget) problems(edit *policyedit.Edit) validate.Problems {
	switch {
	case t.found:
		changed := t.policy.Policy
		return edit.Apply(&changed, t.place...)
	case t.err == nil || t.taken:
		_, problems := edit.New()
		return problems
	}
	return nil
}

type enabledView struct {
	Enabled int `json:"enabledPolicies"`
}

type disabledView struct {
	Disabled int `json:"disabledPolicies"`
}

func enablePolicies(q *request) (any, error) {
	n, err := q.setStatus(storage.PolicyActive)
	if err != nil {
		return nil, err
	}
	return enabledView{n}, nil
}

func disablePolicies(q *request) (any, error) {
	n, err := q.setStatus(storage.PolicyInactive)
	if err != nil {
		return nil, err
	}
	return disabledView{n}, nil
}

// setStatus gives all policies in the query another status, or none of them (attack O03).
func (q *request) setStatus(status storage.PolicyStatus) (int, error) {
	named := q.Query.UUIDs("id", validate.List{Hold: true})
	if err := q.Read(true, func(o *validate.Object) {
		o.Only() // ids in the body would be overlooked: they belong in the query
	}); err != nil || len(named) == 0 {
		return 0, err
	}
	var ids []string
	for i, id := range named {
		if slices.Contains(ids, id) {
			continue
		}
		ids = append(ids, id)
		p, err := q.Core.Store.Policy(q.Context(), q.Organization(), id)
		if err != nil {
			return 0, routes.Missing(err, errNoPolicy)
		}
		q.Note(policyedit.Become(&p.Policy, status, "query", "id", i).Err())
	}
	if err := q.Wrong(); err != nil {
		return 0, err
	}
	if err := q.mayDecide(status); err != nil {
		return 0, err
	}
	err := q.Core.Store.UpdatePolicies(q.Context(), q.Organization(), ids, q.Call.Caller.UserID, q.handler.now().UTC(), func(p *storage.Policy) error {
		return policyedit.Become(p, status, "query", "id").Err()
	})
	return len(ids), policyRefusal(err, &policyedit.Edit{}, "query", "id")
}
