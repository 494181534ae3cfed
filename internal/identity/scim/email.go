package scim

import (
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// setEmails changes the addresses of a user.
func (u *User) setEmails(op operation) error {
	if op.at.filtered {
		return u.setMatching(op)
	}
	if op.at.part != "" {
		return unknownPath(op)
	}
	if op.kind != "add" {
		u.Emails = nil
	}
	if op.kind == "remove" || isUnset(op.value) {
		return nil
	}
	values := []strictjson.Value{op.value}
	if op.value.Kind() == strictjson.Array {
		values = op.value.Elems()
	}
	for _, v := range values {
		var e Email
		if err := e.read(v); err != nil {
			return err
		}
		if e.Value == "" { // providers write empty ones for users without an address
			continue
		}
		if err := u.addEmail(e); err != nil {
			return err
		}
	}
	return nil
}

// addEmail adds an address, or changes what is said of one. There is one primary address at most. Each is compared with all
// others, so the first one too many ends the work.
func (u *User) addEmail(e Email) error {
	if e.Primary {
		for i := range u.Emails {
			u.Emails[i].Primary = false
		}
	}
	same := func(o Email) bool { return strings.EqualFold(o.Value, e.Value) && strings.EqualFold(o.Type, e.Type) }
	if i := slices.IndexFunc(u.Emails, same); i >= 0 {
		u.Emails[i] = e
		return nil
	}
	if len(u.Emails) >= maxEmails {
		return wrong(TypeInvalidValue, "A user may have %d addresses", maxEmails)
	}
	u.Emails = append(u.Emails, e)
	return nil
}

// read reads the parts of an address that a value names.
func (e *Email) read(v strictjson.Value) error {
	if v.Kind() == strictjson.String {
		return e.set("value", v)
	}
	parts, err := members(v, "An address of emails")
	if err != nil {
		return err
	}
	for name, value := range parts {
		if err := e.set(name, value); err != nil {
			return err
		}
	}
	return nil
}

func (e *Email) set(part string, v strictjson.Value) (err error) {
	switch part {
	case "value":
		e.Value, err = text(v, "emails.value")
	case "type":
		e.Type, err = text(v, "emails.type")
	case "display":
		e.Display, err = text(v, "emails.display")
	case "primary":
		e.Primary = false
		if !isUnset(v) {
			e.Primary, err = flag(v, "emails.primary")
		}
	case "$ref":
	default:
		return wrong(TypeInvalidPath, "There is no attribute %.100q of emails", part)
	}
	return err
}

func (e *Email) matches(terms []term) bool {
	for _, t := range terms {
		of := map[string]string{"value": e.Value, "type": e.Type, "display": e.Display, "primary": "false"}
		if e.Primary {
			of["primary"] = "true"
		}
		if have, ok := of[t.name]; !ok || !strings.EqualFold(have, t.value) {
			return false
		}
	}
	return true
}

// setMatching changes the addresses that all terms of a path match. Where none does, one that they describe is made: Entra ID
// writes the only address of a user as emails[type eq "work"].value, with replace too.
func (u *User) setMatching(op operation) error {
	matches := func(e Email) bool { return e.matches(op.at.terms) }
	empty := isUnset(op.value) || op.value.Kind() == strictjson.String && op.value.Str() == ""
	if op.kind == "remove" && (op.at.part == "" || op.at.part == "value") || op.kind != "remove" && empty && op.at.part == "value" {
		u.Emails = slices.DeleteFunc(u.Emails, matches)
		return nil
	}
	if op.kind != "remove" && !slices.ContainsFunc(u.Emails, matches) {
		return u.addDescribed(op)
	}
	for i := range u.Emails {
		if !matches(u.Emails[i]) {
			continue
		}
		if err := u.Emails[i].change(op); err != nil {
			return err
		}
		if u.Emails[i].Primary {
			for j := range u.Emails {
				u.Emails[j].Primary = j == i
			}
		}
	}
	u.Emails = slices.DeleteFunc(u.Emails, func(e Email) bool { return e.Value == "" })
	return nil
}

// addDescribed adds the address that the terms of a path describe.
func (u *User) addDescribed(op operation) error {
	var made Email
	for _, t := range op.at.terms {
		switch t.name {
		case "type":
			made.Type = t.value
		case "value":
			made.Value = t.value
		case "primary":
			made.Primary = t.value == "true"
		default:
			return wrong(TypeNoTarget, "No address matches %.100q", op.text)
		}
	}
	if err := made.change(op); err != nil {
		return err
	}
	if made.Value == "" {
		return wrong(TypeNoTarget, "No address matches %.100q", op.text)
	}
	return u.addEmail(made)
}

// change carries out an operation on one address, or on a part of it.
func (e *Email) change(op operation) error {
	switch {
	case op.at.part == "":
		return e.read(op.value)
	case op.kind == "remove":
		return e.set(op.at.part, strictjson.Value{})
	}
	return e.set(op.at.part, op.value)
}
