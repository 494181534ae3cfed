package scim

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// User holds the facts about a user that the gateway keeps.
type User struct {
	UserName, ExternalID string
	Active               bool
	Attributes
}

// Attributes holds what a provider wrote about a user, and on which nothing depends.
type Attributes struct {
	Name        Name    `json:"name,omitzero"`
	DisplayName string  `json:"displayName,omitempty"`
	Emails      []Email `json:"emails,omitempty"`
}

// Name is the name of a person.
type Name struct {
	Formatted  string `json:"formatted,omitempty"`
	FamilyName string `json:"familyName,omitempty"`
	GivenName  string `json:"givenName,omitempty"`
	MiddleName string `json:"middleName,omitempty"`
	Prefix     string `json:"honorificPrefix,omitempty"`
	Suffix     string `json:"honorificSuffix,omitempty"`
}

func (n *Name) part(name string) *string {
	switch name {
	case "formatted":
		return &n.Formatted
	case "familyname":
		return &n.FamilyName
	case "givenname":
		return &n.GivenName
	case "middlename":
		return &n.MiddleName
	case "honorificprefix":
		return &n.Prefix
	case "honorificsuffix":
		return &n.Suffix
	}
	return nil
}

// Email is an address of a user.
type Email struct {
	Value   string `json:"value"`
	Type    string `json:"type,omitempty"`
	Display string `json:"display,omitempty"`
	Primary bool   `json:"primary,omitempty"`
}

// ReadUser reads a whole user, of a POST or PUT. What it does not name is unset, and active is as given then.
func ReadUser(body strictjson.Value, active bool) (User, error) {
	named, err := members(body, "The user")
	if err != nil {
		return User{}, err
	}
	if err := checkSchema(named["schemas"], SchemaUser); err != nil {
		return User{}, err
	}
	u, seen := User{Active: active}, make(map[string]bool)
	for _, m := range body.Members() {
		name, part := attribute(m.Name)
		if seen[name+"."+part] && !ignored(name) { // with the name of its schema before it, and without
			return User{}, wrong(TypeInvalidSyntax, "The user has the member %.100q twice", m.Name)
		}
		seen[name+"."+part] = true
		if err := u.set(operation{kind: "replace", at: path{name: name, part: part}, text: m.Name, value: m.Value}, ""); err != nil {
			return User{}, err
		}
	}
	return u, u.check()
}

// Patch carries out the operations of a PATCH of the user with an id.
func (u *User) Patch(id string, body strictjson.Value) error {
	all, err := operations(body)
	if err != nil {
		return err
	}
	for _, op := range all {
		if err := u.set(op, id); err != nil {
			return err
		}
	}
	return u.check()
}

func (u *User) check() error {
	if strings.TrimSpace(u.UserName) == "" {
		return wrong(TypeInvalidValue, "userName is required")
	}
	return nil
}

// set carries out one operation. id is that of the user; "" where what clients send of it is ignored.
func (u *User) set(op operation, id string) (err error) {
	switch name := op.at.name; {
	case name == "name":
		return u.setName(op)
	case name == "emails":
		return u.setEmails(op)
	case readOnly[name]:
		return checkReadOnly(op, id)
	case ignored(name):
		return nil
	case op.at.filtered || op.at.part != "":
		return unknownPath(op)
	case op.kind == "remove" || isUnset(op.value):
		return u.unset(op)
	case name == "username":
		u.UserName, err = text(op.value, "userName")
	case name == "externalid":
		u.ExternalID, err = text(op.value, "externalId")
	case name == "displayname":
		u.DisplayName, err = text(op.value, "displayName")
	case name == "active":
		u.Active, err = flag(op.value, "active")
	default:
		return unknownPath(op)
	}
	return err
}

func (u *User) unset(op operation) error {
	switch op.at.name {
	case "username":
		return wrong(TypeMutability, "userName is required and cannot be removed")
	case "externalid":
		u.ExternalID = ""
	case "displayname":
		u.DisplayName = ""
	case "active":
		if op.kind == "remove" { // a null is a mistake rather than a wish to let the user in
			return wrong(TypeMutability, "active cannot be removed; write true or false")
		}
		return wrong(TypeInvalidValue, "active has to be true or false")
	default:
		return unknownPath(op)
	}
	return nil
}

func unknownPath(op operation) error {
	return wrong(TypeInvalidPath, "There is no attribute %.100q", op.text)
}

// checkReadOnly ignores what only the gateway writes, but for another id than the resource's in a PATCH.
func checkReadOnly(op operation, id string) error {
	if op.at.name == "id" && id != "" && op.value.Str() != id {
		return wrong(TypeMutability, "id cannot be changed")
	}
	return nil
}

func (u *User) setName(op operation) error {
	switch {
	case op.at.filtered:
		return unknownPath(op)
	case op.at.part != "":
		part := u.Name.part(op.at.part)
		if part == nil {
			return unknownPath(op)
		}
		if op.kind == "remove" {
			*part = ""
			return nil
		}
		value, err := text(op.value, op.text)
		if err == nil {
			*part = value
		}
		return err
	case op.kind == "remove" || isUnset(op.value):
		u.Name = Name{}
		return nil
	}
	parts, err := members(op.value, "name")
	if err != nil {
		return err
	}
	for name, value := range parts {
		part := u.Name.part(name)
		if part == nil {
			return wrong(TypeInvalidValue, "There is no attribute %.100q of name", name)
		}
		if *part, err = text(value, "name."+name); err != nil {
			return err
		}
	}
	return nil
}

// Store returns the record of the user. Its id, organization and times are those of the former one.
func (u *User) Store(former storage.ProvisionedUser) storage.ProvisionedUser {
	attributes, err := json.Marshal(u.Attributes)
	if err != nil {
		panic(err) // it is made of texts
	}
	former.UserName, former.ExternalID, former.Active, former.Attributes, former.Email = u.UserName, u.ExternalID, u.Active, attributes, u.mainEmail()
	return former
}

// mainEmail returns the address by which a user is found: the primary one, else the first for work, else the first.
func (u *User) mainEmail() string {
	for _, is := range []func(Email) bool{
		func(e Email) bool { return e.Primary }, func(e Email) bool { return strings.EqualFold(e.Type, "work") }, func(Email) bool { return true },
	} {
		if i := slices.IndexFunc(u.Emails, is); i >= 0 {
			return u.Emails[i].Value
		}
	}
	return ""
}

// StoredUser reads a record.
func StoredUser(r *storage.ProvisionedUser) (u User, err error) {
	u = User{UserName: r.UserName, ExternalID: r.ExternalID, Active: r.Active}
	return u, json.Unmarshal(r.Attributes, &u.Attributes)
}

// Has reports whether the user has an address that a filter selects.
func (u *User) Has(f EmailFilter) bool {
	return slices.ContainsFunc(u.Emails, func(e Email) bool {
		return strings.EqualFold(e.Value, f.Value) && (f.Type == "" || strings.EqualFold(e.Type, f.Type))
	})
}
