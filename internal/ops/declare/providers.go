package declare

import (
	"context"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/llm/llmedit"
	"github.com/durward-gateway/durward/storage"
)

// KindProvider is the kind of changes of providers of models.
const KindProvider = "llm_provider"

// findProviders finds the providers of all documents.
func (p *planner) findProviders(documents []*document) map[*yaml.Node]found[storage.LLMProvider] {
	all := find(p, documents, kind[storage.LLMProvider]{
		list: providersMember, member: "name", what: "a provider", all: p.models.Providers,
		id: func(v *storage.LLMProvider) string { return v.ID }, name: func(v *storage.LLMProvider) string { return v.Name }, same: strings.EqualFold,
	}, make(map[string]bool))
	for _, f := range all {
		p.names.providerOf[f.id] = f.name
	}
	return all
}

// providerID returns the id of a provider of the organization or of the configuration.
func (p *planner) providerID(d *document, n *yaml.Node, path string) string {
	for id, name := range p.names.providerOf {
		if strings.EqualFold(name, n.Value) {
			p.uses(KindProvider, id)
			return id
		}
	}
	p.wrong(d, n, path, fmt.Sprintf("there is no provider of the name %q", n.Value))
	return nobody
}

// resolveTargets puts ids in the place of the names of providers.
func (p *planner) resolveTargets(d *document) {
	for i, n := range d.each(mappingsMember) {
		targets := member(n, "targets")
		if targets == nil {
			continue
		}
		for j, target := range targets.Content {
			path := fmt.Sprintf("%s[%d].targets[%d]", mappingsMember, i, j)
			if id := keyOf(target, "provider_id"); id != nil {
				p.wrong(d, id, path+".provider_id", "objects are named here, with provider: no member has an id")
				id.Value = "provider"
			}
			if key, value := keyOf(target, "provider"), member(target, "provider"); key != nil {
				if key.Value = "provider_id"; value.Tag == "!!str" {
					value.Value = p.providerID(d, value, path+".provider")
				}
			}
		}
	}
}

func readProvider(o *validate.Object, models *accounts.Base) llmedit.ProviderEdit {
	o.Text("was", validate.Text{Min: 1})
	return llmedit.ReadProvider(o, true, models)
}

func (p *planner) planProviders(d *document, whole *validate.Object, all map[*yaml.Node]found[storage.LLMProvider]) {
	read, nodes := objects(d, whole, providersMember)
	for i, o := range read {
		if o == nil {
			continue
		}
		f, known := all[nodes[i]]
		v := storage.LLMProvider{ID: f.id, OrganizationID: p.organization, CreatedAt: p.now, UpdatedAt: p.now}
		noted(o, readProvider(o, p.Models).Apply(p.Models, p.Keyring, &v))
		o.Only()
		if known {
			p.planProvider(o, v, f)
		}
	}
}

func (p *planner) planProvider(o *validate.Object, v storage.LLMProvider, f found[storage.LLMProvider]) {
	p.manages(KindProvider, v.ID)
	if f.present == nil || !strings.EqualFold(f.present.Name, v.Name) {
		for _, name := range p.configured.Providers {
			if strings.EqualFold(name, v.Name) {
				o.Report(validate.ValueError, fmt.Sprintf("the provider %q is the configuration's: give this one another name", name), "name")
				return
			}
		}
	}
	if f.present == nil {
		fields, err := differences(struct{}{}, formOfProvider(v))
		if v.SealedSecret != nil {
			fields = append(fields, FieldChange{Field: "api_key"})
		}
		p.add(o, err, Change{Action: Create, Kind: KindProvider, Name: v.Name, Fields: fields, id: v.ID, do: func(ctx context.Context) error {
			return p.Store.CreateLLMProvider(ctx, p.configured, v)
		}})
		return
	}
	same, err := p.sameProviderSecret(f.present, &v)
	if err != nil {
		o.Report(validate.ValueError, "the provider's key cannot be compared: "+err.Error(), "api_key")
		return
	}
	if same && v.Kind == f.present.Kind && v.BaseURL == f.present.BaseURL { // to which a secret is bound
		v.SealedSecret = f.present.SealedSecret
	}
	fields, err := differences(formOfProvider(*f.present), formOfProvider(v))
	if !same {
		fields = append(fields, FieldChange{Field: "api_key"})
	}
	if len(fields) == 0 && err == nil {
		return
	}
	p.add(o, err, Change{Action: Update, Kind: KindProvider, Name: v.Name, Was: f.renamed(f.present.Name), Fields: fields, id: v.ID, do: func(ctx context.Context) error {
		_, err := p.Store.UpdateLLMProvider(ctx, p.configured, p.organization, v.ID, func(is *storage.LLMProvider) error {
			*is = v
			return nil
		})
		return err
	}})
}

// sameProviderSecret reports whether two states of a provider have the same secret.
func (p *planner) sameProviderSecret(a, b *storage.LLMProvider) (bool, error) {
	before, err := accounts.StoredSecret(p.Keyring, a)
	if err != nil {
		return false, err
	}
	after, err := accounts.StoredSecret(p.Keyring, b)
	return before.Reveal() == after.Reveal(), err
}
