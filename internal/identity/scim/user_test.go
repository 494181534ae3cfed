package scim

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

func parse(t testing.TB, text string) strictjson.Value {
	t.Helper()
	v, err := Parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// patch returns the request with some operations.
func patch(operations string) string {
	return `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[` + operations + `]}`
}

func ada() User {
	return User{UserName: "ada@example.com", ExternalID: "00u1", Active: true, Attributes: Attributes{
		Name: Name{GivenName: "Ada", FamilyName: "Lovelace"}, DisplayName: "Ada Lovelace", Emails: []Email{{Value: "ada@example.com", Type: "work", Primary: true}},
	}}
}

// TestReadUser reads users as Okta and Entra ID create and replace them.
func TestReadUser(t *testing.T) {
	t.Parallel()
	entra := ada()
	entra.ExternalID, entra.Name.Formatted = "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef", "Ada Lovelace"
	inactive := ada()
	inactive.Active = false
	for name, c := range map[string]struct {
		body string
		want User
	}{
		"Okta creates": {`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"ada@example.com","name":{"givenName":"Ada","familyName":"Lovelace"},
			"emails":[{"primary":true,"value":"ada@example.com","type":"work"}],"displayName":"Ada Lovelace","locale":"en-US","externalId":"00u1","groups":[],"password":"1mz050nq","active":true}`, ada()},
		"Okta replaces": {`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"id":"23a35c27-23d3-4c03-b4c5-6443c09e7173","userName":"ada@example.com",
			"name":{"givenName":"Ada","middleName":"","familyName":"Lovelace"},"emails":[{"primary":true,"value":"ada@example.com","type":"work","display":""}],"displayName":"Ada Lovelace",
			"externalId":"00u1","active":false,"groups":[],"meta":{"resourceType":"User"}}`, inactive},
		"Entra ID creates": {`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
			"externalId":"0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef","userName":"ada@example.com","active":true,"displayName":"Ada Lovelace","emails":[{"primary":true,"type":"work","value":"ada@example.com"}],
			"meta":{"resourceType":"User"},"name":{"formatted":"Ada Lovelace","familyName":"Lovelace","givenName":"Ada"},"roles":[],"title":"Countess","phoneNumbers":[{"type":"work","value":"1"}],
			"addresses":[{"type":"work","streetAddress":"1"}],"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"department":"x","manager":{"value":"1"}}}`, entra},
		"the least":        {`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"a"}`, User{UserName: "a", Active: true}},
		"in another case":  {`{"Schemas":["URN:ietf:params:scim:schemas:core:2.0:user"],"USERNAME":"a","Active":"False","Name":{"GIVENNAME":"A"}}`, User{UserName: "a", Attributes: Attributes{Name: Name{GivenName: "A"}}}},
		"nulls":            {`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"a","externalId":null,"name":null,"emails":null,"displayName":null}`, User{UserName: "a", Active: true}},
		"empty addresses":  {`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"a","emails":[{"value":"","type":"work"},"b@c"]}`, User{UserName: "a", Active: true, Attributes: Attributes{Emails: []Email{{Value: "b@c"}}}}},
		"two primary ones": {`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"a","emails":[{"value":"1","primary":true},{"value":"2","primary":"True"}]}`, User{UserName: "a", Active: true, Attributes: Attributes{Emails: []Email{{Value: "1"}, {Value: "2", Primary: true}}}}},
		"a schema before":  {`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"a","urn:ietf:params:scim:schemas:core:2.0:User:active":false}`, User{UserName: "a"}},
	} {
		if got, err := ReadUser(parse(t, c.body), true); err != nil || !cmp.Equal(got, c.want) {
			t.Errorf("%s: %v\n%s", name, err, cmp.Diff(c.want, got))
		}
	}
}

// TestActiveLeftOut checks that a user who is replaced without active stays as they were.
func TestActiveLeftOut(t *testing.T) {
	t.Parallel()
	for _, was := range []bool{false, true} {
		u, err := ReadUser(parse(t, `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"a"}`), was)
		if err != nil || u.Active != was {
			t.Errorf("was %v, is %v: %v", was, u.Active, err)
		}
	}
}

// TestRefusedUsers checks that a user who is not understood is refused.
func TestRefusedUsers(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"userName":"a"}`: TypeInvalidSyntax,
		`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"userName":"a"}`: TypeInvalidSyntax,
		`{"schemas":"urn:ietf:params:scim:schemas:core:2.0:User","userName":"a"}`:    TypeInvalidSyntax,
		`{"schemas":[USER]}`:                               TypeInvalidValue,
		`{"schemas":[USER],"userName":" "}`:                TypeInvalidValue,
		`{"schemas":[USER],"userName":null}`:               TypeMutability,
		`{"schemas":[USER],"userName":1}`:                  TypeInvalidValue,
		`{"schemas":[USER],"userName":"LONG"}`:             TypeInvalidValue,
		`{"schemas":[USER],"userName":"a\u0000"}`:          TypeInvalidValue,
		`{"schemas":[USER],"userName":"a","USERNAME":"b"}`: TypeInvalidSyntax,
		`{"schemas":[USER],"userName":"a","active":false,"urn:ietf:params:scim:schemas:core:2.0:User:active":true}`: TypeInvalidSyntax,
		`{"schemas":[USER],"userName":"a","active":"no"}`:                                                           TypeInvalidValue,
		`{"schemas":[USER],"userName":"a","active":null}`:                                                           TypeInvalidValue,
		`{"schemas":[USER],"userName":"a","actve":false}`:                                                           TypeInvalidPath,
		`{"schemas":[USER],"userName":"a","USER":{"active":1}}`:                                                     TypeInvalidPath,
		`{"schemas":[USER],"userName":"a","name":"Ada"}`:                                                            TypeInvalidValue,
		`{"schemas":[USER],"userName":"a","name":{"first":1}}`:                                                      TypeInvalidValue,
		`{"schemas":[USER],"userName":"a","emails":[1]}`:                                                            TypeInvalidValue,
		`{"schemas":[USER],"userName":"a","emails":[{"x":1}]}`:                                                      TypeInvalidPath,
		`{"schemas":[USER],"userName":"a","emails":[MANY]}`:                                                         TypeInvalidValue,
	} {
		body = strings.ReplaceAll(body, `"USER":`, `"`+SchemaUser+`":`)
		body = strings.NewReplacer("USERNAME", "USERNAME", "USER", `"`+SchemaUser+`"`, "LONG", strings.Repeat("a", 256), "MANY", manyEmails()).Replace(body)
		_, err := ReadUser(parse(t, body), true)
		wantType(t, err, want)
	}
	for _, body := range []string{``, `[]`, `null`, `{`, `{"a":1,"a":2}`, `{"schemas":[]} x`} {
		_, err := Parse([]byte(body))
		wantType(t, err, TypeInvalidSyntax)
	}
}

func manyEmails() string {
	var all []string
	for i := range maxEmails + 1 {
		all = append(all, `{"value":"`+strings.Repeat("a", i+1)+`"}`)
	}
	return strings.Join(all, ",")
}

// TestPatchUser carries out the operations of Okta, of Entra ID and of RFC 7644.
func TestPatchUser(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		operations string
		want       func(*User)
	}{
		"Okta deactivates":             {`{"op":"replace","value":{"active":false}}`, func(u *User) { u.Active = false }},
		"Entra ID deactivates":         {`{"op":"Replace","path":"active","value":"False"}`, func(u *User) { u.Active = false }},
		"Entra ID deactivates, by RFC": {`{"op":"replace","path":"active","value":false}`, func(u *User) { u.Active = false }},
		"with a schema":                {`{"op":"replace","path":"urn:ietf:params:scim:schemas:core:2.0:User:active","value":false}`, func(u *User) { u.Active = false }},
		"add is like replace":          {`{"op":"Add","path":"active","value":"false"}`, func(u *User) { u.Active = false }},
		"paths as names of members":    {`{"op":"Add","value":{"name.givenName":"A","emails[type eq \"work\"].value":"b@c","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department":"x","active":"False"}}`, func(u *User) { u.Name.GivenName, u.Emails[0].Value, u.Active = "A", "b@c", false }},
		"the address for work":         {`{"op":"Replace","path":"emails[type eq \"work\"].value","value":"b@c"}`, func(u *User) { u.Emails[0].Value = "b@c" }},
		"an address that is not there": {`{"op":"Add","path":"emails[type eq \"home\"].value","value":"b@c"}`, func(u *User) { u.Emails = append(u.Emails, Email{Value: "b@c", Type: "home"}) }},
		"replaced though not there":    {`{"op":"Replace","path":"emails[type eq \"home\"].value","value":"b@c"}`, func(u *User) { u.Emails = append(u.Emails, Email{Value: "b@c", Type: "home"}) }},
		"an address is removed":        {`{"op":"Remove","path":"emails[type eq \"work\"].value"}`, func(u *User) { u.Emails = nil }},
		"an address is emptied":        {`{"op":"Replace","path":"emails[type eq \"work\"].value","value":""}`, func(u *User) { u.Emails = nil }},
		"another address is not":       {`{"op":"remove","path":"emails[type eq \"home\"]"}`, func(*User) {}},
		"an address is added": {`{"op":"add","path":"emails","value":[{"value":"b@c","primary":true}]}`, func(u *User) {
			u.Emails[0].Primary = false
			u.Emails = append(u.Emails, Email{Value: "b@c", Primary: true})
		}},
		"the same address again":          {`{"op":"add","path":"emails","value":[{"value":"ADA@example.com","type":"work","primary":true}]}`, func(u *User) { u.Emails[0].Value = "ADA@example.com" }},
		"addresses are replaced":          {`{"op":"replace","path":"emails","value":[{"value":"b@c"}]}`, func(u *User) { u.Emails = []Email{{Value: "b@c"}} }},
		"an address is replaced":          {`{"op":"replace","path":"emails[primary eq true]","value":{"display":"x","type":"home"}}`, func(u *User) { u.Emails[0].Display, u.Emails[0].Type = "x", "home" }},
		"addresses are removed":           {`{"op":"remove","path":"emails"}`, func(u *User) { u.Emails = nil }},
		"a part of an address is removed": {`{"op":"remove","path":"emails[value eq \"ada@example.com\"].type"}`, func(u *User) { u.Emails[0].Type = "" }},
		"another one is primary": {`{"op":"add","path":"emails","value":{"value":"b@c"}},{"op":"replace","path":"emails[value eq \"b@c\"].primary","value":true}`, func(u *User) {
			u.Emails[0].Primary = false
			u.Emails = append(u.Emails, Email{Value: "b@c", Primary: true})
		}},
		"a name":                      {`{"op":"Replace","path":"name.familyName","value":"King"}`, func(u *User) { u.Name.FamilyName = "King" }},
		"parts of a name":             {`{"op":"replace","path":"name","value":{"familyName":"King","honorificPrefix":"Ms."}}`, func(u *User) { u.Name.FamilyName, u.Name.Prefix = "King", "Ms." }},
		"a part of a name is removed": {`{"op":"remove","path":"name.givenName"}`, func(u *User) { u.Name.GivenName = "" }},
		"the name is removed":         {`{"op":"remove","path":"name"}`, func(u *User) { u.Name = Name{} }},
		"several":                     {`{"op":"Replace","path":"userName","value":"king"},{"op":"Replace","path":"externalId","value":"2"},{"op":"remove","path":"displayName"}`, func(u *User) { u.UserName, u.ExternalID, u.DisplayName = "king", "2", "" }},
		"the external id is removed":  {`{"op":"Remove","path":"externalId"}`, func(u *User) { u.ExternalID = "" }},
		"what is not kept":            {`{"op":"Add","path":"title","value":"x"},{"op":"Add","path":"phoneNumbers[type eq \"work\"].value","value":"1"},{"op":"Add","path":"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager","value":"1"},{"op":"remove","path":"addresses[type eq \"work\"].country"}`, func(*User) {}},
		"the same id":                 {`{"op":"replace","value":{"id":"1","meta":{},"groups":[]}}`, func(*User) {}},
	} {
		got, want := ada(), ada()
		c.want(&want)
		if err := got.Patch("1", parse(t, patch(c.operations))); err != nil || !cmp.Equal(got, want, cmpopts.EquateEmpty()) {
			t.Errorf("%s: %v\n%s", name, err, cmp.Diff(want, got))
		}
	}
}

func TestRefusedPatches(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"Operations":[{"op":"replace","value":{"active":false}}]}`:    TypeInvalidSyntax,
		`{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"]}`: TypeInvalidSyntax,
		patch(``):                              TypeInvalidSyntax,
		patch(`1`):                             TypeInvalidValue,
		patch(`{"op":"move","path":"active"}`): TypeInvalidSyntax,
		patch(`{"op":"replace","path":1,"value":{"active":false}}`):                                                TypeInvalidPath,
		patch(`{"op":"remove"}`):                                                                                   TypeNoTarget,
		patch(`{"op":"replace","value":false}`):                                                                    TypeInvalidValue,
		patch(`{"op":"replace","path":"actve","value":false}`):                                                     TypeInvalidPath,
		patch(`{"op":"replace","value":{"actve":false}}`):                                                          TypeInvalidPath,
		patch(`{"op":"replace","path":"active.x","value":false}`):                                                  TypeInvalidPath,
		patch(`{"op":"replace","path":"active[value eq true]","value":false}`):                                     TypeInvalidPath,
		patch(`{"op":"replace","path":"active","value":"maybe"}`):                                                  TypeInvalidValue,
		patch(`{"op":"replace","path":"active"}`):                                                                  TypeInvalidValue,
		patch(`{"op":"remove","path":"active"}`):                                                                   TypeMutability,
		patch(`{"op":"remove","path":"userName"}`):                                                                 TypeMutability,
		patch(`{"op":"replace","path":"userName","value":""}`):                                                     TypeInvalidValue,
		patch(`{"op":"replace","path":"id","value":"2"}`):                                                          TypeMutability,
		patch(`{"op":"replace","path":"emails[type eq \"work\"","value":"a"}`):                                     TypeInvalidPath,
		patch(`{"op":"replace","path":"emails[type eq \"work\"].x","value":"a"}`):                                  TypeInvalidPath,
		patch(`{"op":"replace","path":"emails[x eq \"work\"].value","value":"a"}`):                                 TypeNoTarget,
		patch(`{"op":"replace","path":"emails[type eq \"home\"].type","value":"a"}`):                               TypeNoTarget,
		patch(`{"op":"replace","path":"emails.value","value":"a"}`):                                                TypeInvalidPath,
		patch(`{"op":"replace","path":"name.first","value":"a"}`):                                                  TypeInvalidPath,
		patch(`{"op":"replace","path":"name[x eq \"a\"]","value":"a"}`):                                            TypeInvalidPath,
		patch(`{"op":"replace","path":"userName eq \"a\"","value":"a"}`):                                           TypeInvalidPath,
		patch(`{"op":"replace","path":"]","value":"a"}`):                                                           TypeInvalidPath,
		patch(strings.Repeat(`{"op":"remove","path":"title"},`, maxOperations) + `{"op":"remove","path":"title"}`): TypeInvalidSyntax,
	} {
		u := ada()
		wantType(t, u.Patch("1", parse(t, body)), want)
	}
}

// TestBoundedWork checks that what one request makes the gateway compare is bounded: addresses, operations, and members.
func TestBoundedWork(t *testing.T) {
	t.Parallel()
	u := ada()
	if wantType(t, u.Patch("1", parse(t, patch(`{"op":"add","value":{"emails":[`+manyEmails()+`]}}`))), TypeInvalidValue); len(u.Emails) > maxEmails {
		t.Errorf("%d addresses were compared with each other", len(u.Emails))
	}
	var named, removed []string
	for i := range maxOperations + 1 {
		named = append(named, fmt.Sprintf(`"members[value eq \"%d\"]":1`, i))
	}
	_, err := ReadGroupPatch("1", parse(t, patch(`{"op":"add","value":{`+strings.Join(named, ",")+`}}`)))
	wantType(t, err, TypeInvalidSyntax)
	for i := range MaxMembers {
		removed = append(removed, strconv.Itoa(i))
	}
	_, err = ReadGroupPatch("1", parse(t, patch(`{"op":"remove","path":"members","value":["`+strings.Join(removed, `","`)+`"]},{"op":"remove","path":"members","value":"x"}`)))
	wantType(t, err, TypeTooMany)
}

// TestStoredUser checks that a user comes back from their record, and by which address they are found.
func TestStoredUser(t *testing.T) {
	t.Parallel()
	former := storage.ProvisionedUser{ID: "1", OrganizationID: "o"}
	for main, emails := range map[string][]Email{
		"":  nil,
		"a": {{Value: "a"}, {Value: "b", Type: "home"}},
		"b": {{Value: "a"}, {Value: "b", Type: "Work"}},
		"c": {{Value: "a"}, {Value: "b", Type: "work"}, {Value: "c", Primary: true}},
	} {
		u := ada()
		u.Emails = emails
		record := u.Store(former)
		if record.ID != "1" || record.OrganizationID != "o" || record.Email != main {
			t.Errorf("%+v", record)
		}
		if got, err := StoredUser(&record); err != nil || !cmp.Equal(got, u) {
			t.Errorf("%v\n%s", err, cmp.Diff(u, got))
		}
	}
	u := ada()
	for f, want := range map[EmailFilter]bool{{"ADA@example.com", ""}: true, {"ada@example.com", "Work"}: true, {"ada@example.com", "home"}: false, {"b", ""}: false} {
		if u.Has(f) != want {
			t.Error(f)
		}
	}
}

// FuzzPatch checks that whatever is sent is carried out or refused, and leaves a user who can be stored.
func FuzzPatch(f *testing.F) {
	for _, seed := range []string{
		`{"op":"replace","value":{"active":false}}`, `{"op":"Add","path":"emails[type eq \"home\"].value","value":"b@c"}`, `{"op":"Remove","path":"members","value":[{"value":"1"}]}`,
		`{"op":"remove","path":"members[value eq \"1\"]"}`, `{"op":"replace","path":"name","value":{"familyName":"King"}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, operations string) {
		body, err := Parse([]byte(patch(operations)))
		if err != nil {
			return
		}
		u := ada()
		if err := u.Patch("1", body); err == nil {
			if record := u.Store(storage.ProvisionedUser{}); record.UserName == "" || !json.Valid(record.Attributes) || len(u.Emails) > maxEmails {
				t.Errorf("%+v", record)
			}
		}
		if c, err := ReadGroupPatch("1", body); err == nil {
			for _, id := range c.Remove {
				if c.Replace || strings.Contains(strings.Join(c.Add, "\x00")+"\x00", id+"\x00") && len(c.Add) == 1 {
					t.Errorf("%+v", c)
				}
			}
		}
	})
}
