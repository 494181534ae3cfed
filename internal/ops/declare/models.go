package declare

import (
	"context"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/llm/llmedit"
	"github.com/durward-gateway/durward/storage"
)

// These are the kinds of changes of models.
const (
	KindMapping = "model_mapping"
	KindSmart   = "smart_model"
)

// foundModels holds the aliases of all documents.
type foundModels struct {
	mappings map[*yaml.Node]found[storage.ModelMapping]
	smart    map[*yaml.Node]found[storage.SmartModel]
	aliases  llmedit.Aliases // of the organization, as they will be
}

// findModels finds the aliases of all documents. Aliases for models and smart models share their names.
func (p *planner) findModels(documents []*document) (all foundModels) {
	taken, same := make(map[string]bool), func(a, b string) bool { return a == b }
	all.mappings = find(p, documents, kind[storage.ModelMapping]{
		list: mappingsMember, member: "model_alias", what: "a model", all: p.models.Mappings,
		id: func(v *storage.ModelMapping) string { return v.ID }, name: func(v *storage.ModelMapping) string { return v.Alias }, same: same,
	}, taken)
	all.smart = find(p, documents, kind[storage.SmartModel]{
		list: smartMember, member: "model_alias", what: "a model", all: p.models.Smart,
		id: func(v *storage.SmartModel) string { return v.ID }, name: func(v *storage.SmartModel) string { return v.Alias }, same: same,
	}, taken)
	mappings, smart := make(map[string]string), make(map[string]string)
	for _, m := range p.models.Mappings {
		mappings[m.ID] = m.Alias
	}
	for _, f := range all.mappings {
		mappings[f.id] = f.name
	}
	for _, m := range p.models.Smart {
		smart[m.ID] = m.Alias
	}
	for _, f := range all.smart {
		smart[f.id] = f.name
	}
	var will storage.ModelSet
	for _, alias := range mappings {
		will.Mappings = append(will.Mappings, storage.ModelMapping{Alias: alias})
	}
	for _, alias := range smart {
		will.Smart = append(will.Smart, storage.SmartModel{Alias: alias})
	}
	all.aliases = llmedit.AliasesOf(&will, p.configured)
	return all
}

// isFree reports a new alias that the configuration or a model of the other kind has.
func (p *planner) isFree(o *validate.Object, alias string, taken bool) bool {
	if _, configured := p.configured.Aliases[alias]; configured {
		o.Report(validate.ValueError, fmt.Sprintf("the alias %q is the configuration's: give this one another name", alias), "model_alias")
		return false
	}
	if taken {
		o.Report(validate.ValueError, fmt.Sprintf("the organization has a model of the alias %q, of the other kind", alias), "model_alias")
		return false
	}
	return true
}

// refers reports a reference that would keep a model from being saved.
func refers(o *validate.Object, wrong *storage.TargetError) {
	if wrong != nil {
		noted(o, llmedit.TargetProblems(wrong).Err())
	}
}

func readMapping(o *validate.Object) llmedit.MappingEdit {
	o.Text("was", llmedit.Alias)
	return llmedit.ReadMapping(o, true)
}

func (p *planner) planMappings(d *document, whole *validate.Object, all foundModels) {
	read, nodes := objects(d, whole, mappingsMember)
	for i, o := range read {
		if o == nil {
			continue
		}
		f, known := all.mappings[nodes[i]]
		v := storage.ModelMapping{ID: f.id, OrganizationID: p.organization, CreatedAt: p.now, UpdatedAt: p.now}
		readMapping(o).Apply(&v)
		o.Only()
		if known {
			p.planMapping(o, v, f, all.aliases)
		}
	}
}

func (p *planner) planMapping(o *validate.Object, v storage.ModelMapping, f found[storage.ModelMapping], aliases llmedit.Aliases) {
	p.manages(KindMapping, v.ID)
	p.usesAliases(v.Fallbacks...)
	if f.present == nil || f.present.Alias != v.Alias {
		smart := slices.ContainsFunc(p.models.Smart, func(m storage.SmartModel) bool { return m.Alias == v.Alias })
		if !p.isFree(o, v.Alias, smart) {
			return
		}
	}
	put := func(ctx context.Context) error {
		_, err := p.Store.UpdateModelMapping(ctx, p.configured, p.organization, v.ID, func(is *storage.ModelMapping) error {
			*is = v
			return nil
		})
		return err
	}
	if f.present == nil {
		refers(o, aliases.CheckMapping(&v))
		fields, err := differences(struct{}{}, p.names.formOfMapping(v))
		// Two new aliases may be each other's fallback: no order of making them would do.
		early := v
		early.Fallbacks = slices.DeleteFunc(slices.Clone(v.Fallbacks), func(alias string) bool { return !p.hasAlias(alias) })
		change := Change{Action: Create, Kind: KindMapping, Name: v.Alias, Fields: fields, id: v.ID, first: true, do: func(ctx context.Context) error {
			return p.Store.CreateModelMapping(ctx, p.configured, early)
		}}
		if len(early.Fallbacks) < len(v.Fallbacks) {
			change.finish = put
		}
		p.add(o, err, change)
		return
	}
	fields, err := differences(p.former.formOfMapping(*f.present), p.names.formOfMapping(v))
	if slices.Equal(f.present.Targets, v.Targets) {
		fields = slices.DeleteFunc(fields, func(c FieldChange) bool { return c.Field == "targets" }) // a provider has another name only
	}
	if len(fields) == 0 && err == nil {
		return
	}
	refers(o, aliases.CheckMapping(&v))
	was := f.renamed(f.present.Alias)
	p.add(o, err, Change{Action: Update, Kind: KindMapping, Name: v.Alias, Was: was, Fields: fields, id: v.ID, first: was != "", do: put})
}

// hasAlias reports whether there is an alias for models before anything is changed.
func (p *planner) hasAlias(alias string) bool {
	_, configured := p.configured.Aliases[alias]
	return configured || slices.ContainsFunc(p.models.Mappings, func(m storage.ModelMapping) bool { return m.Alias == alias })
}

func readSmart(o *validate.Object) llmedit.SmartEdit {
	o.Text("was", llmedit.Alias)
	return llmedit.ReadSmart(o, true)
}

func (p *planner) planSmart(d *document, whole *validate.Object, all foundModels) {
	read, nodes := objects(d, whole, smartMember)
	for i, o := range read {
		if o == nil {
			continue
		}
		f, known := all.smart[nodes[i]]
		v := llmedit.NewSmart(p.organization, p.now)
		v.ID = f.id
		noted(o, readSmart(o).Apply(&v).Err())
		o.Only()
		if known {
			p.planSmartModel(o, v, f, all.aliases)
		}
	}
}

func (p *planner) planSmartModel(o *validate.Object, v storage.SmartModel, f found[storage.SmartModel], aliases llmedit.Aliases) {
	p.manages(KindSmart, v.ID)
	p.usesAliases(v.DeterminerAlias)
	for _, slot := range v.Slots {
		p.usesAliases(slot.Alias)
	}
	if f.present == nil || f.present.Alias != v.Alias {
		plain := slices.ContainsFunc(p.models.Mappings, func(m storage.ModelMapping) bool { return m.Alias == v.Alias })
		if !p.isFree(o, v.Alias, plain) {
			return
		}
	}
	if f.present == nil {
		refers(o, aliases.CheckSmart(&v))
		fields, err := differences(struct{}{}, formOfSmart(v))
		p.add(o, err, Change{Action: Create, Kind: KindSmart, Name: v.Alias, Fields: fields, id: v.ID, do: func(ctx context.Context) error {
			return p.Store.CreateSmartModel(ctx, p.configured, v)
		}})
		return
	}
	fields, err := differences(formOfSmart(*f.present), formOfSmart(v))
	if len(fields) == 0 && err == nil {
		return
	}
	refers(o, aliases.CheckSmart(&v))
	p.add(o, err, Change{Action: Update, Kind: KindSmart, Name: v.Alias, Was: f.renamed(f.present.Alias), Fields: fields, id: v.ID, do: func(ctx context.Context) error {
		_, err := p.Store.UpdateSmartModel(ctx, p.configured, p.organization, v.ID, func(is *storage.SmartModel) error {
			*is = v
			return nil
		})
		return err
	}})
}
