package edit

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/storage"
)

// New returns the policy that the edit describes, and the problems of making it. The caller must set ids, times and
// users.
func (e *Edit) New() (storage.Policy, validate.Problems) {
	p := storage.Policy{
		Name: e.Name.Value, Description: e.Description.Value, SupportContact: e.SupportContact.Value, Tags: orEmpty(e.Tags.Value),
		Status: storage.PolicyStatus(e.Status.Or(string(storage.PolicyDraft))), ServerID: e.ServerID.Value,
		ApplicationIDs: orEmpty(e.ApplicationIDs.Value), Rules: orEmpty(e.Rules.Value), Shadow: e.Shadow.Value,
	}
	var problems validate.Problems
	if p.Status == storage.PolicyInactive || p.Status == storage.PolicyArchived {
		problems = append(problems, wrong(fmt.Sprintf("a policy is made as DRAFT or ACTIVE, not as %s", p.Status), "status"))
	}
	return p, append(problems, e.checkShadow(p.Status)...)
}

// Apply changes p as the edit says, and returns the problems. id is the place in the request that names the policy.
// Apply changes no slice of p in place.
func (e *Edit) Apply(p *storage.Policy, id ...any) validate.Problems {
	was := *p
	set(&p.Name, e.Name)
	set(&p.Description, e.Description)
	set(&p.SupportContact, e.SupportContact)
	set(&p.Tags, e.Tags)
	set(&p.ApplicationIDs, e.ApplicationIDs)
	set(&p.Rules, e.Rules)
	set(&p.Shadow, e.Shadow)
	if e.Status.Value != "" {
		p.Status = storage.PolicyStatus(e.Status.Value)
	}
	if p.Status != storage.PolicyDraft {
		p.Shadow = false // only a draft has a shadow mode
	}
	var problems validate.Problems
	if e.ServerID.Value != "" && e.ServerID.Value != was.ServerID {
		problems = append(problems, wrong("the server of a policy never changes", "mcp_server_id"))
	}
	switch {
	case !was.Status.CanBecome(p.Status):
		problems = append(problems, wrong(fmt.Sprintf("a policy that is %s cannot become %s", was.Status, p.Status), "status"))
	case was.Status == storage.PolicyArchived && !same(was, *p):
		problem := wrong(textArchived)
		problem.Loc = id
		problems = append(problems, problem)
	}
	return append(problems, e.checkShadow(p.Status)...)
}

const textArchived = "an archived policy never changes"

// Become gives p another status, and returns the problems; id is the place in the request that names the policy.
func Become(p *storage.Policy, status storage.PolicyStatus, id ...any) validate.Problems {
	e := Edit{Status: validate.Field[string]{Present: true, Value: string(status)}}
	problems := e.Apply(p)
	for i := range problems {
		problems[i].Loc = id
	}
	return problems
}

func (e *Edit) checkShadow(status storage.PolicyStatus) validate.Problems {
	if e.Shadow.Value && status != storage.PolicyDraft {
		return validate.Problems{wrong(fmt.Sprintf("only a DRAFT has a shadow, and the policy would be %s", status), "shadow")}
	}
	return nil
}

// References returns the problems of references to missing objects, in an edit or in the policy that the request names
// at id. Another organization's objects count as missing too (attack O02).
func (e *Edit) References(err *storage.ReferenceError, id ...any) validate.Problems {
	var problems validate.Problems
	if err.Server {
		problems = append(problems, e.reference(textNoServer, e.ServerID.Set(), id, "mcp_server_id"))
	}
	for _, i := range err.Applications {
		if i < len(e.places) {
			problems = append(problems, e.reference(textNoAgent, true, id, "application_ids", e.places[i]))
		} else {
			problems = append(problems, e.reference(textNoAgent, false, id))
		}
	}
	return problems
}

const (
	textNoServer = "there is no server with this id"
	textNoAgent  = "there is no agent with this id"
)

func (e *Edit) reference(text string, inBody bool, id []any, place ...any) validate.Problem {
	if inBody {
		return wrong(text, place...)
	}
	problem := wrong("the policy is for a server or an agent that does not exist any more: make a new one")
	problem.Loc = id
	return problem
}

// wrong makes a problem in the body.
func wrong(text string, place ...any) validate.Problem {
	return validate.Problem{Loc: slices.Concat([]any{"body"}, place), Type: validate.ValueError, Msg: "Value error, " + text}
}

func same(a, b storage.Policy) bool {
	return a.Name == b.Name && a.Description == b.Description && a.SupportContact == b.SupportContact && a.Status == b.Status &&
		a.Shadow == b.Shadow && slices.Equal(a.Tags, b.Tags) && slices.Equal(a.ApplicationIDs, b.ApplicationIDs) &&
		slices.EqualFunc(a.Rules, b.Rules, sameRule)
}

func sameRule(a, b storage.Rule) bool {
	return a.Name == b.Name && a.Description == b.Description && a.Active == b.Active && a.Authorized == b.Authorized &&
		a.Approval.Equal(b.Approval) && slices.Equal(a.Actions, b.Actions) && slices.Equal(a.RolesGroups, b.RolesGroups) &&
		bytes.Equal(a.Condition, b.Condition)
}

func set[T any](to *T, field validate.Field[T]) {
	if field.Set() {
		*to = field.Value
	}
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// copied is added to the name of a cloned policy.
const copied = " Copy"

// CopyName returns the name of a clone without a chosen name.
func CopyName(name string) string {
	if letters := []rune(name); len(letters) > MaxName-len(copied) {
		name = string(letters[:MaxName-len(copied)])
	}
	return name + copied
}
