package edit

import (
	"fmt"
	"slices"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// Bounds of a policy's members, in characters or elements.
const (
	MaxName         = 255
	maxContact      = 1_024
	maxTag          = 255
	maxTags         = 100
	maxApplications = 1_000
	maxRules        = 1_000
	maxCondition    = 64 << 10 // bytes
)

// readOnly lists the members of a policy that the API shows and no client sets: a record can be read, changed and sent
// back.
var readOnly = []string{
	"id", "organization_id", "org_id", "mcp_server_name", "application_names", "rules_count", "revision", "created_at", "updated_at",
	"created_by_user_id", "created_by_user_name", "updated_by_user_id", "updated_by_user_name",
}

// Edit holds the content of a body about a policy. For an existing policy, only the members that are present change.
type Edit struct {
	Name           validate.Field[string]
	Description    validate.Field[string]
	SupportContact validate.Field[string]
	Tags           validate.Field[[]string]
	Status         validate.Field[string]
	ServerID       validate.Field[string]
	// ApplicationIDs has no repetitions. Null means the same as absent: only an explicit list can empty it.
	ApplicationIDs validate.Field[[]string]
	Rules          validate.Field[[]storage.Rule]
	Shadow         validate.Field[bool]

	places []int // positions of the elements of ApplicationIDs in the body's list
}

// Read reads a policy from a body. Besides these members, the body may have only members that the caller has read
// already. required holds the flags of the members that a new policy needs.
func Read(o *validate.Object, required validate.Flags) Edit {
	var e Edit
	e.Name = Name(o, required)
	e.Description = o.Text("description", validate.Text{})
	e.SupportContact = o.Text("support_contact", validate.Text{Max: maxContact})
	e.Tags = o.Texts("tags", validate.List{Max: maxTags}, validate.Text{Min: 1, Max: maxTag})
	e.Status = o.Text("status", validate.Text{Enum: Statuses})
	e.ServerID = o.UUID("mcp_server_id", required)
	e.ApplicationIDs = o.UUIDs("application_ids", validate.List{Flags: validate.Nullable, Max: maxApplications, Hold: true})
	e.compact()
	e.Rules = readRules(o)
	e.Shadow = o.Bool("shadow", 0)
	ignored := readOnly
	if o.Has("policies") {
		o.Note(validate.Problem{
			Loc: []any{"policies"}, Type: validate.ExtraForbidden,
			Msg: "Extra inputs are not permitted: send one policy object, not the older wrapper policies[].resourcePolicy",
		})
		ignored = slices.Concat(ignored, []string{"policies"})
	}
	o.Only(ignored...)
	return e
}

// Statuses lists the statuses of a policy's lifecycle.
var Statuses = []string{string(storage.PolicyDraft), string(storage.PolicyActive), string(storage.PolicyInactive), string(storage.PolicyArchived)}

// Name reads a policy's name.
func Name(o *validate.Object, required validate.Flags) validate.Field[string] {
	return o.Name(required, MaxName)
}

// compact drops repetitions and invalid ids, and records the positions of the others.
func (e *Edit) compact() {
	if e.ApplicationIDs.Value == nil {
		return
	}
	ids := []string{}
	for i, id := range e.ApplicationIDs.Value {
		if id != "" && !slices.Contains(ids, id) {
			ids, e.places = append(ids, id), append(e.places, i)
		}
	}
	e.ApplicationIDs.Value = ids
}

// readRules reads the rules and adds the problems that internal/policy/engine finds, except for members whose form is wrong
// already.
func readRules(o *validate.Object) validate.Field[[]storage.Rule] {
	objects := o.Objects("rules", validate.List{Max: maxRules, Hold: true})
	field := validate.Field[[]storage.Rule]{Present: objects.Present, Null: objects.Null}
	if objects.Value == nil {
		return field
	}
	field.Value = make([]storage.Rule, len(objects.Value))
	for i, object := range objects.Value {
		if object != nil {
			field.Value[i] = readRule(object)
		}
	}
	found := slices.DeleteFunc(engine.Check(field.Value), func(p engine.Problem) bool { return o.Wrong(p.Loc...) })
	for _, p := range found {
		problem := validate.Problem{Loc: p.Loc, Msg: p.Message, Type: p.Type, Input: p.Input}
		if p.Type == validate.ValueError {
			problem.Msg = "Value error, " + p.Message
		}
		if p.Line > 0 {
			problem.Msg += fmt.Sprintf(" (line %d, column %d)", p.Line, p.Column)
			problem.Ctx = map[string]any{"line": p.Line, "column": p.Column}
		}
		o.Note(problem)
	}
	return field
}

func readRule(o *validate.Object) storage.Rule {
	everything := []string{"*"}
	r := storage.Rule{
		Name:        o.Text("name", validate.Text{Flags: validate.Required, Min: 1, Max: MaxName}).Value,
		Description: o.Text("description", validate.Text{}).Value,
		Active:      o.Bool("active", 0).Or(true),
		Authorized:  o.Bool("authorized", validate.Required).Value,
		Actions:     o.Texts("actions", validate.List{Min: 1, Hold: true}, validate.Text{}).Or(everything),
		RolesGroups: o.Texts("roles_groups", validate.List{Min: 1, Hold: true}, validate.Text{}).Or(everything),
		Condition:   o.Document("condition", 0, maxCondition).Value,
		Approval:    readApproval(o),
	}
	o.Only()
	return r
}

// readApproval reads the channel that a rule demands, or an object with the people who decide in place of the caller.
func readApproval(o *validate.Object) storage.RuleApproval {
	channel := validate.Text{Enum: []string{string(storage.ChannelOutOfBand)}}
	text, object := validate.TextOrObject(o, "approval", channel)
	if object == nil {
		return storage.RuleApproval{Channel: storage.ApprovalChannel(text.Value)}
	}
	by := object.Texts("by", validate.List{Flags: validate.Required, Min: 1, Max: engine.MaxApprovers, Hold: true}, validate.Text{})
	out := object.Text("channel", channel).Or(string(storage.ChannelOutOfBand))
	object.Only()
	return storage.RuleApproval{Channel: storage.ApprovalChannel(out), By: by.Value}
}
