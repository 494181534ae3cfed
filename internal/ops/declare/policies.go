package declare

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/durward-gateway/durward/internal/api/validate"
	policyedit "github.com/durward-gateway/durward/internal/policy/edit"
	"github.com/durward-gateway/durward/storage"
)

// nobody stands for an object whose name is wrong, which is reported already.
const nobody = "00000000-0000-0000-0000-000000000000"

// resolvePolicies puts ids in the place of the names of servers and agents, so that the API's reader reads the policies.
func (p *planner) resolvePolicies(d *document) {
	servers := make(map[string]string)
	for id, name := range p.names.serverOf {
		servers[name] = id
	}
	agents := p.agentIDs()
	for i, n := range d.each(policiesMember) {
		if n.Kind != yaml.MappingNode {
			continue
		}
		path := fmt.Sprintf("policies[%d]", i)
		for j := 0; j < len(n.Content); j += 2 {
			key, value := n.Content[j], n.Content[j+1]
			switch key.Value {
			case "mcp_server_id", "application_ids", "id":
				p.wrong(d, key, below(path, key.Value), "objects are named here, with server and agents: no member has an id")
			case "server":
				key.Value = "mcp_server_id"
				if value.Tag != "!!str" {
					continue
				}
				id, ok := servers[value.Value]
				if !ok {
					id = nobody
					p.wrong(d, value, path+".server", fmt.Sprintf("there is no server of the name %q", value.Value))
				}
				p.uses(KindServer, id)
				value.Value = id
			case "agents":
				key.Value = "application_ids"
				for k, e := range value.Content {
					if e.Tag == "!!str" {
						e.Value = p.agentID(d, e, fmt.Sprintf("%s.agents[%d]", path, k), agents)
					}
				}
			}
		}
	}
}

// agentIDs lists the ids of the agents that a name, or the id of a client, stands for.
func (p *planner) agentIDs() map[string][]string {
	ids := make(map[string][]string)
	put := func(name, id string) {
		if name != "" && !slices.Contains(ids[name], id) {
			ids[name] = append(ids[name], id)
		}
	}
	for id, name := range p.names.agentOf {
		put(name, id)
	}
	for id, external := range p.external {
		put(external, id)
	}
	return ids
}

func (p *planner) agentID(d *document, n *yaml.Node, path string, agents map[string][]string) string {
	switch ids := agents[n.Value]; len(ids) {
	case 0:
		p.wrong(d, n, path, fmt.Sprintf("there is no agent of the name %q", n.Value))
	case 1:
		p.uses(KindAgent, ids[0])
		return ids[0]
	default:
		p.wrong(d, n, path, fmt.Sprintf("%d agents have the name %q: write the external_id of the one that is meant", len(ids), n.Value))
	}
	return nobody
}

// readPolicy reads a policy whose names are replaced by ids.
func readPolicy(o *validate.Object) (was string, edit policyedit.Edit) {
	was = o.Text("was", validate.Text{Min: 1}).Value
	return was, policyedit.Read(o, validate.Required)
}

func (p *planner) planPolicies(d *document, whole *validate.Object) {
	read, nodes := objects(d, whole, policiesMember)
	for i, o := range read {
		if o == nil {
			continue
		}
		was, edit := readPolicy(o)
		if edit.Name.Value == "" {
			continue
		}
		if p.policyNames[edit.Name.Value] {
			o.Report(validate.ValueError, fmt.Sprintf("a policy of the name %q is declared already", edit.Name.Value), "name")
			continue
		}
		p.policyNames[edit.Name.Value] = true
		present, former := p.policyNamed(edit.Name.Value), p.policyNamed(was)
		if was != "" && former != nil {
			if present != nil {
				p.wrong(d, member(nodes[i], "was"), fmt.Sprintf("policies[%d].was", i), fmt.Sprintf("there are policies of both names: %q cannot become %q", was, edit.Name.Value))
				continue
			}
			present = former
		}
		if present != nil && p.isManaged(KindPolicy, present.ID) {
			o.Report(validate.ValueError, fmt.Sprintf("the policy %q is declared already, under another name", present.Name), "name")
			continue
		}
		p.planPolicy(o, edit, present)
	}
}

func (p *planner) policyNamed(name string) *storage.Policy {
	for i := range p.policies {
		if p.policies[i].Name == name {
			return &p.policies[i]
		}
	}
	return nil
}

// planPolicy adds the change that makes a policy so. What the file leaves out has its default, but for the status,
// which stays.
func (p *planner) planPolicy(o *validate.Object, edit policyedit.Edit, present *storage.Policy) {
	note := func(problems validate.Problems) {
		for _, problem := range problems {
			if len(problem.Loc) > 0 {
				problem.Loc = problem.Loc[1:]
			}
			o.Note(problem)
		}
	}
	if present == nil {
		status := storage.PolicyStatus(edit.Status.Or(string(storage.PolicyDraft)))
		if status == storage.PolicyInactive { // it enforces nothing, as a draft
			edit.Status.Value = string(storage.PolicyDraft)
		}
		made, problems := edit.New()
		note(problems)
		made.ID, made.OrganizationID, made.Revision, made.Status = newID(), p.organization, 1, status
		made.CreatedAt, made.UpdatedAt, made.CreatedBy, made.UpdatedBy = p.now, p.now, p.By, p.By
		p.manages(KindPolicy, made.ID)
		fields, err := differences(struct{}{}, p.names.formOfPolicy(made))
		p.add(o, err, Change{Action: Create, Kind: KindPolicy, Name: made.Name, Fields: fields, id: made.ID, do: func(ctx context.Context) error {
			_, err := p.Store.CreatePolicy(ctx, made)
			return err
		}})
		return
	}
	whole := func(f *validate.Field[string]) { f.Present = true }
	whole(&edit.Description)
	whole(&edit.SupportContact)
	edit.Tags, edit.ApplicationIDs, edit.Rules = complete(edit.Tags), complete(edit.ApplicationIDs), complete(edit.Rules)
	edit.Shadow.Present = true
	p.manages(KindPolicy, present.ID)
	changed := *present
	note(edit.Apply(&changed))
	keepConditions(changed.Rules, present.Rules)
	fields, err := differences(p.former.formOfPolicy(*present), p.names.formOfPolicy(changed))
	if slices.Equal(present.ApplicationIDs, changed.ApplicationIDs) {
		fields = slices.DeleteFunc(fields, func(f FieldChange) bool { return f.Field == "agents" }) // it has another name only
	}
	if present.ServerID == changed.ServerID {
		fields = slices.DeleteFunc(fields, func(f FieldChange) bool { return f.Field == "server" })
	}
	if len(fields) == 0 && err == nil {
		return
	}
	change := Change{Action: Update, Kind: KindPolicy, Name: changed.Name, Fields: fields, id: changed.ID, first: changed.Status != storage.PolicyActive, do: func(ctx context.Context) error {
		_, err := p.Store.UpdatePolicy(ctx, p.organization, present.ID, p.By, p.now, func(v *storage.Policy) error {
			v.Name, v.Description, v.SupportContact, v.Tags, v.Status = changed.Name, changed.Description, changed.SupportContact, changed.Tags, changed.Status
			v.ApplicationIDs, v.Rules, v.Shadow = changed.ApplicationIDs, changed.Rules, changed.Shadow
			return nil
		})
		return err
	}}
	if present.Name != changed.Name {
		change.Was = present.Name
	}
	p.add(o, err, change)
}

func complete[T any](f validate.Field[[]T]) validate.Field[[]T] {
	if !f.Set() {
		return validate.Field[[]T]{Present: true, Value: []T{}}
	}
	return f
}

// keepConditions leaves conditions as they were written where a file says the same with other blanks.
func keepConditions(rules, former []storage.Rule) {
	for i, r := range rules {
		if i < len(former) && r.Condition != nil && former[i].Condition != nil && bytes.Equal(compacted(r.Condition), compacted(former[i].Condition)) {
			rules[i].Condition = former[i].Condition
		}
	}
}

func compacted(text json.RawMessage) []byte {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return text
	}
	return b.Bytes()
}
