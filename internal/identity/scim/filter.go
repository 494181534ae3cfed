package scim

import (
	"strings"

	"github.com/durward-gateway/durward/storage"
)

// Filter narrows a list: texts that are not "" and flags that are not nil all have to match.
type Filter struct {
	ID, Name, ExternalID, Member string
	Email                        EmailFilter
	Active                       *bool
	// Nothing reports that no resource can match.
	Nothing bool
}

// EmailFilter selects addresses. Type is "" for any.
type EmailFilter struct{ Value, Type string }

// term is a comparison for equality. Terms within brackets have the attribute before them.
type term struct{ name, part, value string }

const takes = "the gateway takes `eq`, joined by `and`, as in userName eq \"ada@example.com\""

// UserFilter reads a filter of users: userName, externalId, id, emails and active.
func UserFilter(text string) (Filter, error) {
	return filter(text, func(f *Filter, t term) bool {
		switch t.name {
		case "username":
			return f.text(&f.Name, t)
		case "emails":
			switch t.part {
			case "", "value":
				return f.text(&f.Email.Value, term{value: t.value})
			case "type":
				return f.text(&f.Email.Type, term{value: t.value})
			}
			return false
		case "active":
			if t.part != "" {
				return false
			}
			active := strings.EqualFold(t.value, "true")
			if !active && !strings.EqualFold(t.value, "false") {
				return false
			}
			f.Nothing = f.Nothing || f.Active != nil && *f.Active != active
			f.Active = &active
			return true
		}
		return f.common(t)
	})
}

// GroupFilter reads a filter of groups: displayName, externalId, id and members.
func GroupFilter(text string) (Filter, error) {
	return filter(text, func(f *Filter, t term) bool {
		switch t.name {
		case "displayname":
			return f.text(&f.Name, t)
		case "members":
			if t.part == "value" {
				t.part = ""
			}
			return f.text(&f.Member, t)
		}
		return f.common(t)
	})
}

func (f *Filter) common(t term) bool {
	switch t.name {
	case "id":
		return f.text(&f.ID, t)
	case "externalid":
		return f.text(&f.ExternalID, t)
	}
	return false
}

// text narrows a member. Nothing equals two texts, and no resource has an empty one.
func (f *Filter) text(to *string, t term) bool {
	if t.part != "" {
		return false
	}
	f.Nothing = f.Nothing || t.value == "" || *to != "" && *to != t.value
	*to = t.value
	return true
}

func filter(text string, take func(*Filter, term) bool) (f Filter, err error) {
	if strings.TrimSpace(text) == "" {
		return f, nil
	}
	if len(text) > maxExpression {
		return Filter{}, wrong(TypeInvalidFilter, "The filter is longer than %d bytes", maxExpression)
	}
	s := &scanner{text}
	terms, ok := s.terms()
	if !ok || !s.ended() {
		return Filter{}, wrong(TypeInvalidFilter, "The filter cannot be read: %s", takes)
	}
	for _, t := range terms {
		if !take(&f, t) {
			return Filter{}, wrong(TypeInvalidFilter, "There is no filter by %.100q: %s", t.name, takes)
		}
	}
	if f.Email.Type != "" && f.Email.Value == "" {
		return Filter{}, wrong(TypeInvalidFilter, "A filter by the type of an address needs its value too")
	}
	return f, nil
}

// terms reads comparisons that are joined by `and`.
func (s *scanner) terms() (all []term, ok bool) {
	for {
		some, ok := s.comparison()
		if !ok {
			return nil, false
		}
		all = append(all, some...)
		before := s.rest
		if !strings.EqualFold(s.word(), "and") {
			s.rest = before
			return all, true
		}
	}
}

// comparison reads `name eq value` or `name[terms]`, the latter also before `.part eq value`.
func (s *scanner) comparison() (all []term, ok bool) {
	name, part := attribute(s.word())
	if name == "" {
		return nil, false
	}
	if !strings.HasPrefix(s.rest, "[") {
		value, ok := s.equal()
		return []term{{name, part, value}}, ok
	}
	inner, ok := s.bracket()
	if !ok || part != "" {
		return nil, false
	}
	for _, t := range inner {
		all = append(all, term{name, t.name, t.value})
	}
	if !strings.HasPrefix(s.rest, ".") {
		return all, true
	}
	part = strings.ToLower(strings.TrimPrefix(s.word(), "."))
	value, ok := s.equal()
	return append(all, term{name, part, value}), ok && part != ""
}

// bracket reads the comparisons of parts of a value.
func (s *scanner) bracket() (inner []term, ok bool) {
	if !s.mark('[') {
		return nil, false
	}
	for {
		name, part := attribute(s.word())
		value, ok := s.equal()
		if !ok || name == "" || part != "" {
			return nil, false
		}
		inner = append(inner, term{name: name, value: value})
		if s.mark(']') {
			return inner, true
		}
		if !strings.EqualFold(s.word(), "and") {
			return nil, false
		}
	}
}

func (s *scanner) equal() (value string, ok bool) {
	if !strings.EqualFold(s.word(), "eq") {
		return "", false
	}
	return s.value()
}

// Store returns the part of the filter that the store searches by.
func (f *Filter) Store(organization string) storage.ProvisionedFilter {
	return storage.ProvisionedFilter{
		OrganizationID: organization, ID: f.ID, Name: f.Name, ExternalID: f.ExternalID, Email: f.Email.Value, Member: f.Member, Active: f.Active,
	}
}
