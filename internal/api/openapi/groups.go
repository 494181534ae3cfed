package openapi

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Group holds the operations of a tag, for a page that shows them.
type Group struct {
	Tag
	// Anchor is the name of the group inside the page.
	Anchor     string
	Operations []Shown
}

// Shown is an operation in the form of a page.
type Shown struct {
	ID, Method, Path, Summary, Description string
	Parameters                             []ShownParameter
	// Body and Answer are schemas as JSON, "" for none. Status is that of the answer.
	Body, Answer, Status string
}

// ShownParameter is a parameter in the form of a page. Rule is its schema as JSON.
type ShownParameter struct {
	Name, In, Rule string
	Required       bool
}

// Schema is a named schema in the form of a page.
type Schema struct{ Name, Text string }

// Groups returns the operations by their tags, in the order of the tags, paths and methods.
func (d *Document) Groups() ([]Group, error) {
	groups := make([]Group, len(d.Tags))
	for i, tag := range d.Tags {
		groups[i] = Group{Tag: tag, Anchor: strings.ReplaceAll(tag.Name, " ", "-")}
	}
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			o := d.Paths[path][method]
			shown, err := o.shown(strings.ToUpper(method), path)
			if err != nil {
				return nil, err
			}
			at := slices.IndexFunc(groups, func(g Group) bool { return g.Name == o.Tags[0] })
			groups[at].Operations = append(groups[at].Operations, shown)
		}
	}
	return groups, nil
}

// Schemas returns the named schemas in the order of their names.
func (d *Document) Schemas() ([]Schema, error) {
	var all []Schema
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		text, err := indented(d.Components.Schemas[name])
		if err != nil {
			return nil, err
		}
		all = append(all, Schema{name, text})
	}
	return all, nil
}

func (o *operation) shown(method, path string) (Shown, error) {
	s := Shown{ID: o.ID, Method: method, Path: path, Summary: o.Summary, Description: cmp.Or(o.Description, "Without a token.")}
	for _, p := range o.Parameters {
		rule, err := json.Marshal(p.Schema)
		if err != nil {
			return s, err
		}
		s.Parameters = append(s.Parameters, ShownParameter{Name: p.Name, In: p.In, Rule: string(rule), Required: p.Required})
	}
	var err error
	if o.Body != nil {
		if s.Body, err = indented(o.Body.Content[jsonMedia].Schema); err != nil {
			return s, err
		}
	}
	for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
		if r := o.Responses[status]; r.Ref == "" {
			s.Status = status
			for kind, content := range r.Content {
				if s.Answer, err = indented(content.Schema); kind != jsonMedia {
					s.Answer = kind
				}
			}
		}
	}
	return s, err
}

func indented(value any) (string, error) {
	text, err := json.MarshalIndent(value, "", "  ")
	return string(text), err
}
