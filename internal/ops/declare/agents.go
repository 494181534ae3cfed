package declare

import (
	"context"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/identity/agentedit"
	"github.com/durward-gateway/durward/storage"
)

// foundAgent is an agent of a file: the one that is there, or the id of a new one.
type foundAgent struct {
	id      string
	issuer  string
	present *storage.Agent
}

// findAgents finds the agents of all documents by their clients: their names are free to change.
func (p *planner) findAgents(documents []*document) map[*yaml.Node]foundAgent {
	all, taken := make(map[*yaml.Node]foundAgent), make(map[[2]string]bool)
	for _, a := range p.agents {
		p.names.agentOf[a.ID], p.external[a.ID] = a.Application.Name, a.Application.ExternalID
	}
	for _, d := range documents {
		for i, n := range d.each(agentsMember) {
			external := textOf(n, "external_id")
			if external == "" {
				continue // its reader reports that
			}
			path := fmt.Sprintf("agents[%d]", i)
			named := textOf(n, "issuer")
			issuer, known := p.Issuer(named)
			if !known && named != "" && slices.ContainsFunc(p.agents, func(a storage.Agent) bool { return a.Application.Issuer == named }) {
				issuer, known = named, true // of a former configuration
			}
			if !known {
				at := n
				if v := member(n, "issuer"); v != nil {
					at = v
				}
				p.wrong(d, at, path+".issuer", "say which identity provider issues its tokens, by its issuer")
				continue
			}
			if taken[[2]string{issuer, external}] {
				p.wrong(d, member(n, "external_id"), path+".external_id", fmt.Sprintf("the client %q is declared already", external))
				continue
			}
			taken[[2]string{issuer, external}] = true
			found := foundAgent{id: newID(), issuer: issuer}
			for j, a := range p.agents {
				if a.Application.ExternalID == external && a.Application.Issuer == issuer {
					found.id, found.present = a.ID, &p.agents[j]
				}
			}
			name := textOf(n, "name")
			if name == "" {
				name = external
			}
			all[n], p.names.agentOf[found.id], p.external[found.id] = found, name, external
		}
	}
	return all
}

func readAgent(o *validate.Object) storage.Agent {
	a := storage.Agent{Application: agentedit.Application(o)}
	o.Text("issuer", validate.Text{Min: 1})
	agentedit.Settings(o, &a)
	return a
}

func (p *planner) planAgents(d *document, whole *validate.Object, found map[*yaml.Node]foundAgent) {
	read, nodes := objects(d, whole, agentsMember)
	for i, o := range read {
		if o == nil {
			continue
		}
		f, known := found[nodes[i]]
		a := readAgent(o)
		o.Only()
		a.ID, a.OrganizationID, a.CreatedAt, a.UpdatedAt = f.id, p.organization, p.now, p.now
		a.Application.Issuer = f.issuer
		if known {
			p.manages(KindAgent, a.ID)
		}
		switch {
		case !known:
		case f.present == nil:
			p.newAgent(o, a)
		default:
			p.changeAgent(o, a, *f.present)
		}
	}
}

func (p *planner) newAgent(o *validate.Object, a storage.Agent) {
	a.Application.ID, a.Application.OrganizationID = newID(), p.organization
	a.Application.CreatedAt, a.Application.UpdatedAt = p.now, p.now
	fields, err := differences(struct{}{}, formOfAgent(a))
	p.add(o, err, Change{Action: Create, Kind: KindAgent, Name: a.Application.Name, Fields: fields, id: a.ID, do: func(ctx context.Context) error {
		return p.Store.CreateAgent(ctx, a)
	}})
}

// changeAgent adds the change of an agent. The facts of its client's registration never change.
func (p *planner) changeAgent(o *validate.Object, a, present storage.Agent) {
	fields, err := differences(formOfAgent(present), formOfAgent(a))
	for _, f := range fields {
		switch f.Field {
		case "name", "description", "write_confirmations_required", "approval_channel":
		default:
			o.Report(validate.ValueError, "this never changes once the agent exists", f.Field)
		}
	}
	if len(fields) == 0 && err == nil {
		return
	}
	p.add(o, err, Change{Action: Update, Kind: KindAgent, Name: a.Application.Name, Fields: fields, id: a.ID, do: func(ctx context.Context) error {
		_, err := p.Store.UpdateAgent(ctx, p.organization, present.ID, p.now, func(v *storage.Agent) error {
			v.Application.Name, v.Application.Description = a.Application.Name, a.Application.Description
			v.WriteConfirmationsRequired, v.ApprovalChannel = a.WriteConfirmationsRequired, a.ApprovalChannel
			return nil
		})
		return err
	}})
}
