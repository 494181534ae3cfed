package scim

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/durward-gateway/durward/storage"
)

// TestReadGroup reads groups as Okta and Entra ID create and replace them.
func TestReadGroup(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]Group{
		`{"schemas":[GROUP],"displayName":"Staff","members":[]}`: {Name: "Staff"},
		`{"schemas":[GROUP,"http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group"],"externalId":"8aa1a0c0","displayName":"Staff","meta":{"resourceType":"Group"}}`: {Name: "Staff", ExternalID: "8aa1a0c0"},
		`{"schemas":[GROUP],"id":"9","displayName":"Staff","members":[{"value":"1","display":"ada"},{"value":"2","type":"User","$ref":"x"},"3"]}`:                                      {Name: "Staff", Members: []string{"1", "2", "3"}},
	} {
		got, err := ReadGroup(parse(t, strings.ReplaceAll(body, "GROUP", `"`+SchemaGroup+`"`)))
		if err != nil || !cmp.Equal(got, want, cmpopts.EquateEmpty()) {
			t.Errorf("%s: %v\n%s", body, err, cmp.Diff(want, got))
		}
	}
	for body, want := range map[string]string{
		`{"displayName":"Staff"}`:                                                        TypeInvalidSyntax,
		`{"schemas":[GROUP]}`:                                                            TypeInvalidValue,
		`{"schemas":[GROUP],"displayName":" "}`:                                          TypeInvalidValue,
		`{"schemas":[GROUP],"displayName":"a","member":[]}`:                              TypeInvalidPath,
		`{"schemas":[GROUP],"displayName":"a","groups":[]}`:                              TypeInvalidPath,
		`{"schemas":[GROUP],"displayName":"a","members":[{}]}`:                           TypeInvalidValue,
		`{"schemas":[GROUP],"displayName":"a","members":[1]}`:                            TypeInvalidValue,
		`{"schemas":[GROUP],"displayName":"a","members":[{"value":"1","type":"Group"}]}`: TypeInvalidValue,
		`{"schemas":[GROUP],"displayName":"a","members":[MANY]}`:                         TypeTooMany,
	} {
		body = strings.NewReplacer("GROUP", `"`+SchemaGroup+`"`, "MANY", strings.Repeat(`"1",`, MaxMembers)+`"1"`).Replace(body)
		_, err := ReadGroup(parse(t, body))
		wantType(t, err, want)
	}
}

// TestPatchGroup reads the changes of groups in both dialects, one after the other.
func TestPatchGroup(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		operations string
		want       GroupChange
	}{
		"Okta renames":           {`{"op":"replace","value":{"id":"1","displayName":"Crew"}}`, GroupChange{Name: new("Crew")}},
		"Entra ID renames":       {`{"op":"Replace","path":"displayName","value":"Crew"}`, GroupChange{Name: new("Crew")}},
		"Entra ID adds":          {`{"op":"Add","path":"members","value":[{"$ref":null,"value":"a"},{"$ref":null,"value":"b"}]}`, GroupChange{Add: []string{"a", "b"}}},
		"Entra ID removes":       {`{"op":"Remove","path":"members","value":[{"$ref":null,"value":"a"}]}`, GroupChange{Remove: []string{"a"}}},
		"Okta removes and adds":  {`{"op":"remove","path":"members[value eq \"a\"]"},{"op":"add","path":"members","value":[{"value":"b","display":"b"}]}`, GroupChange{Add: []string{"b"}, Remove: []string{"a"}}},
		"members are replaced":   {`{"op":"replace","path":"members","value":[{"value":"a"}]}`, GroupChange{Replace: true, Add: []string{"a"}}},
		"without a path":         {`{"op":"add","value":{"members":[{"value":"a"}],"externalId":"x"}}`, GroupChange{Add: []string{"a"}, ExternalID: new("x")}},
		"all are removed":        {`{"op":"remove","path":"members"}`, GroupChange{Replace: true}},
		"none of them":           {`{"op":"remove","path":"members","value":[]}`, GroupChange{}},
		"removed and added":      {`{"op":"remove","path":"members[value eq \"a\"]"},{"op":"add","path":"members","value":"a"}`, GroupChange{Add: []string{"a"}}},
		"added and removed":      {`{"op":"add","path":"members","value":["a","b"]},{"op":"remove","path":"members[value eq \"a\"]"}`, GroupChange{Add: []string{"b"}, Remove: []string{"a"}}},
		"replaced, then changed": {`{"op":"add","path":"members","value":["z"]},{"op":"replace","path":"members","value":["a","b"]},{"op":"remove","path":"members[value eq \"a\"]"},{"op":"add","path":"members[value eq \"c\"]"}`, GroupChange{Replace: true, Add: []string{"b", "c"}}},
		"the external id":        {`{"op":"remove","path":"externalId"}`, GroupChange{ExternalID: new("")}},
		"of another schema":      {`{"op":"add","path":"urn:x:y:z","value":1}`, GroupChange{}},
	} {
		got, err := ReadGroupPatch("1", parse(t, patch(c.operations)))
		if err != nil || !cmp.Equal(got, c.want, cmpopts.EquateEmpty()) {
			t.Errorf("%s: %v\n%s", name, err, cmp.Diff(c.want, got))
		}
	}
	for operations, want := range map[string]string{
		`{"op":"replace","value":{"id":"2"}}`:                                   TypeMutability,
		`{"op":"remove","path":"displayName"}`:                                  TypeInvalidValue,
		`{"op":"replace","path":"displayName","value":""}`:                      TypeInvalidValue,
		`{"op":"remove","path":"members[display eq \"a\"]"}`:                    TypeInvalidPath,
		`{"op":"remove","path":"members[value eq \"a\"].display"}`:              TypeInvalidPath,
		`{"op":"remove","path":"members[value eq \"a\" and type eq \"User\"]"}`: TypeInvalidPath,
		`{"op":"add","path":"members.value","value":"a"}`:                       TypeInvalidPath,
		`{"op":"add","path":"title","value":"a"}`:                               TypeInvalidPath,
		`{"op":"add","path":"members","value":true}`:                            TypeInvalidValue,
	} {
		_, err := ReadGroupPatch("1", parse(t, patch(operations)))
		wantType(t, err, want)
	}
}

// TestResources checks the answers, and that a request may ask for a part of them.
func TestResources(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	u := ada()
	record := u.Store(storage.ProvisionedUser{ID: "1", CreatedAt: at, UpdatedAt: at, Groups: []storage.ProvisionedRef{{ID: "g", Name: "Staff"}}})
	group := storage.ProvisionedGroup{ID: "g", Name: "Staff", CreatedAt: at, UpdatedAt: at, Members: []storage.ProvisionedRef{{ID: "1", Name: "ada"}}}
	for query, want := range map[string][2]string{
		"": {
			`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"id":"1","externalId":"00u1","userName":"ada@example.com","name":{"familyName":"Lovelace","givenName":"Ada"},"displayName":"Ada Lovelace",` +
				`"emails":[{"value":"ada@example.com","type":"work","primary":true}],"active":true,"groups":[{"value":"g","$ref":"https://gate/scim/v2/Groups/g","display":"Staff","type":"direct"}],` +
				`"meta":{"resourceType":"User","created":"2026-02-03T04:05:06Z","lastModified":"2026-02-03T04:05:06Z","location":"https://gate/scim/v2/Users/1"}}`,
			`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"id":"g","displayName":"Staff","members":[{"value":"1","$ref":"https://gate/scim/v2/Users/1","display":"ada","type":"User"}],` +
				`"meta":{"resourceType":"Group","created":"2026-02-03T04:05:06Z","lastModified":"2026-02-03T04:05:06Z","location":"https://gate/scim/v2/Groups/g"}}`,
		},
		"excludedAttributes=members,meta,Groups,emails,name": {
			`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"id":"1","externalId":"00u1","userName":"ada@example.com","displayName":"Ada Lovelace","active":true}`,
			`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"id":"g","displayName":"Staff"}`,
		},
		"attributes=USERNAME,urn:ietf:params:scim:schemas:core:2.0:Group:displayName": {
			`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"id":"1","userName":"ada@example.com","displayName":"Ada Lovelace"}`,
			`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"id":"g","displayName":"Staff"}`,
		},
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		q, err := ReadQuery(values)
		if err != nil {
			t.Fatal(err)
		}
		user, err := UserResource(&record, "https://gate/scim/v2", &q)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, [2]string{string(user), string(GroupResource(&group, "https://gate/scim/v2", &q))}); diff != "" {
			t.Errorf("%s (-want +got)\n%s", query, diff)
		}
	}
	list := `{"schemas":["urn:ietf:params:scim:api:messages:2.0:ListResponse"],"totalResults":7,"startIndex":3,"itemsPerPage":0,"Resources":[]}`
	if got := string(List(nil, 7, 2)); got != list {
		t.Error(got)
	}
	want := `{"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"status":"409","scimType":"uniqueness","detail":"no"}`
	if got := string((&Error{409, TypeUniqueness, "no"}).Body()); got != want {
		t.Error(got)
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]int{
		"": {0, maxPage}, "startIndex=1&count=100": {0, 100}, "startIndex=101&count=100": {100, 100}, "startIndex=0&count=-1": {0, 0}, "startIndex=-5": {0, maxPage},
		"count=1000000": {0, maxPage}, "aadOptscim062020&sortBy=id": {0, maxPage},
	} {
		values, err := url.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		if q, err := ReadQuery(values); err != nil || q.Skip != want[0] || q.Limit != want[1] {
			t.Errorf("%s: %+v, %v", text, q, err)
		}
	}
	for _, text := range []string{"x", "1.5", "99999999999999999999"} {
		_, err := ReadQuery(url.Values{"count": {text}})
		wantType(t, err, TypeInvalidValue)
		_, err = ReadQuery(url.Values{"startIndex": {text}})
		wantType(t, err, TypeInvalidValue)
	}
}

// TestDocuments checks that the schemas name every attribute that is answered.
func TestDocuments(t *testing.T) {
	t.Parallel()
	all, byID := Schemas("https://gate/scim/v2")
	types, byName := ResourceTypes("https://gate/scim/v2")
	if len(all) != 2 || len(types) != 2 || len(byName) != 2 || !json.Valid(ServiceProviderConfig("x")) {
		t.Fatal(len(all), len(types))
	}
	for id, names := range map[string]string{SchemaUser: "userName externalId name displayName active emails groups", SchemaGroup: "displayName externalId members"} {
		var schema struct {
			Attributes []struct{ Name string }
		}
		if err := json.Unmarshal(byID[id], &schema); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range schema.Attributes {
			got = append(got, a.Name)
		}
		if strings.Join(got, " ") != names {
			t.Error(id, got)
		}
	}
}
