package scim

import (
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// Group describes a group as a provider writes it. Members are ids of users.
type Group struct {
	Name, ExternalID string
	Members          []string
}

// ReadGroup reads a whole group, of a POST or PUT.
func ReadGroup(body strictjson.Value) (Group, error) {
	named, err := members(body, "The group")
	if err != nil {
		return Group{}, err
	}
	if err := checkSchema(named["schemas"], SchemaGroup); err != nil {
		return Group{}, err
	}
	var c GroupChange
	for _, m := range body.Members() {
		name, part := attribute(m.Name)
		if err := c.set(operation{kind: "replace", at: path{name: name, part: part}, text: m.Name, value: m.Value}, ""); err != nil {
			return Group{}, err
		}
	}
	if c.Name == nil {
		return Group{}, wrong(TypeInvalidValue, "displayName is required")
	}
	g := Group{Name: *c.Name, Members: c.Add}
	if c.ExternalID != nil {
		g.ExternalID = *c.ExternalID
	}
	return g, nil
}

// GroupChange holds the changes of a PATCH: those that are not nil, and of the members. With Replace, Add holds all members.
type GroupChange struct {
	Name, ExternalID *string
	Replace          bool
	Add, Remove      []string
}

// ReadGroupPatch reads a PATCH of the group with an id.
func ReadGroupPatch(id string, body strictjson.Value) (c GroupChange, err error) {
	all, err := operations(body)
	if err != nil {
		return c, err
	}
	for _, op := range all {
		if err := c.set(op, id); err != nil {
			return GroupChange{}, err
		}
	}
	return c, nil
}

func (c *GroupChange) set(op operation, id string) error {
	switch name := op.at.name; {
	case name == "members":
		return c.setMembers(op)
	case readOnly[name] && name != "groups":
		return checkReadOnly(op, id)
	case strings.HasPrefix(name, urnPrefix):
		return nil
	case op.at.filtered || op.at.part != "":
		return unknownPath(op)
	case name == "displayname":
		value, err := text(op.value, "displayName")
		if err == nil && (op.kind == "remove" || strings.TrimSpace(value) == "") {
			err = wrong(TypeInvalidValue, "displayName is required")
		}
		c.Name = &value
		return err
	case name == "externalid":
		value := ""
		if op.kind != "remove" {
			var err error
			if value, err = text(op.value, "externalId"); err != nil {
				return err
			}
		}
		c.ExternalID = &value
		return nil
	}
	return unknownPath(op)
}

// setMembers changes members. Okta and RFC 7644 remove one by members[value eq "id"], Entra ID by the path members and a list of
// values.
func (c *GroupChange) setMembers(op operation) error {
	if op.at.filtered {
		return c.setMatchingMember(op)
	}
	if op.at.part != "" {
		return unknownPath(op)
	}
	ids, err := memberIDs(op.value)
	if err != nil {
		return err
	}
	switch {
	case op.kind == "replace":
		c.Replace, c.Add, c.Remove = true, ids, nil
	case op.kind == "add":
		c.add(ids)
	case len(ids) > 0:
		c.remove(ids)
	case isUnset(op.value):
		c.Replace, c.Add, c.Remove = true, nil, nil
	}
	if len(c.Add) > MaxMembers || len(c.Remove) > MaxMembers {
		return wrong(TypeTooMany, "A group may have %d members", MaxMembers)
	}
	return nil
}

func (c *GroupChange) setMatchingMember(op operation) error {
	if len(op.at.terms) != 1 || op.at.terms[0].name != "value" || op.at.part != "" {
		return wrong(TypeInvalidPath, "The path %.100q cannot be read; write it as in members[value eq \"id\"]", op.text)
	}
	id := []string{op.at.terms[0].value}
	if op.kind == "remove" {
		c.remove(id)
	} else {
		c.add(id)
	}
	return nil
}

func (c *GroupChange) add(ids []string) {
	c.Remove = without(c.Remove, ids)
	c.Add = append(without(c.Add, ids), ids...)
}

func (c *GroupChange) remove(ids []string) {
	c.Add = without(c.Add, ids)
	if !c.Replace {
		c.Remove = append(without(c.Remove, ids), ids...)
	}
}

// without returns a list without some ids.
func without(list, ids []string) []string {
	gone := make(map[string]bool, len(ids))
	for _, id := range ids {
		gone[id] = true
	}
	return slices.DeleteFunc(list, func(id string) bool { return gone[id] })
}

func memberIDs(v strictjson.Value) (ids []string, err error) {
	values := []strictjson.Value{v}
	switch v.Kind() {
	case strictjson.Null, strictjson.Invalid:
		return nil, nil
	case strictjson.Array:
		values = v.Elems()
	}
	if len(values) > MaxMembers {
		return nil, wrong(TypeTooMany, "A group may have %d members", MaxMembers)
	}
	for _, each := range values {
		id := each
		if each.Kind() == strictjson.Object {
			parts, err := members(each, "A member")
			if err != nil {
				return nil, err
			}
			if kind := parts["type"].Str(); kind != "" && !strings.EqualFold(kind, "User") {
				return nil, wrong(TypeInvalidValue, "A member has to be a user; the gateway has no groups of groups")
			}
			id = parts["value"]
		}
		text, err := text(id, "members.value")
		if err != nil {
			return nil, err
		}
		if text == "" {
			return nil, wrong(TypeInvalidValue, "A member has no value")
		}
		ids = append(ids, text)
	}
	return ids, nil
}
