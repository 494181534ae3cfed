package scim

import (
	"encoding/json"
	"strings"
)

// object is a JSON object of the documents that describe the service.
type object = map[string]any

func encoded(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is made of texts, numbers and flags
	}
	return text
}

// ServiceProviderConfig returns what the service supports (RFC 7643 section 5).
func ServiceProviderConfig(base string) json.RawMessage {
	unsupported := object{"supported": false}
	return encoded(object{
		"schemas":        []string{schemaConfig},
		"patch":          object{"supported": true},
		"bulk":           object{"supported": false, "maxOperations": 0, "maxPayloadSize": 0},
		"filter":         object{"supported": true, "maxResults": maxPage},
		"changePassword": unsupported,
		"sort":           unsupported,
		"etag":           unsupported,
		"authenticationSchemes": []object{{
			"type": "oauthbearertoken", "name": "API key", "description": "An API key with the scope scim, as a bearer token", "primary": true,
		}},
		"meta": meta{Type: "ServiceProviderConfig", Location: base + "/ServiceProviderConfig"},
	})
}

// ResourceTypes returns the descriptions of users and groups by their names.
func ResourceTypes(base string) (all []json.RawMessage, byName map[string]json.RawMessage) {
	byName = make(map[string]json.RawMessage)
	for _, t := range []struct{ name, path, schema string }{{"User", UsersPath, SchemaUser}, {"Group", GroupsPath, SchemaGroup}} {
		byName[t.name] = encoded(object{
			"schemas": []string{schemaType}, "id": t.name, "name": t.name, "endpoint": t.path, "description": t.name, "schema": t.schema,
			"schemaExtensions": []object{}, "meta": meta{Type: "ResourceType", Location: base + "/ResourceTypes/" + t.name},
		})
		all = append(all, byName[t.name])
	}
	return all, byName
}

// field describes an attribute by what differs from most: a text that is not unique and compared without case.
func field(name, description string, other object) object {
	f := object{
		"name": name, "type": "string", "multiValued": false, "description": description, "required": false, "caseExact": false,
		"mutability": "readWrite", "returned": "default", "uniqueness": "none",
	}
	for k, v := range other {
		f[k] = v
	}
	return f
}

func fields(mutability, names string) (all []object) {
	for name := range strings.FieldsSeq(names) {
		all = append(all, field(name, name, object{"mutability": mutability}))
	}
	return all
}

// reference describes the parts of a reference to a resource.
func reference(mutability, kind string, types ...string) []object {
	return []object{
		field("value", "The id of the "+kind, object{"mutability": mutability, "caseExact": true}),
		field("$ref", "The address of the "+kind, object{"type": "reference", "mutability": mutability, "referenceTypes": []string{kind}, "caseExact": true}),
		field("display", "The name of the "+kind, object{"mutability": "readOnly"}),
		field("type", "The kind", object{"mutability": mutability, "canonicalValues": types}),
	}
}

// Schemas returns the schemas of users and groups by their ids.
func Schemas(base string) (all []json.RawMessage, byID map[string]json.RawMessage) {
	byID = make(map[string]json.RawMessage)
	add := func(id, name string, attributes []object) {
		byID[id] = encoded(object{
			"schemas": []string{schemaSchema}, "id": id, "name": name, "description": name, "attributes": attributes,
			"meta": meta{Type: "Schema", Location: base + "/Schemas/" + id},
		})
		all = append(all, byID[id])
	}
	externalID := field("externalId", "The provider's own id", object{"caseExact": true})
	email := append(fields("readWrite", "value type display"), field("primary", "Whether the user is found by it", object{"type": "boolean"}))
	add(SchemaUser, "User", []object{
		field("userName", "The name by which tokens name the user", object{"required": true, "uniqueness": "server"}),
		externalID,
		field("name", "The name of the person", object{"type": "complex", "subAttributes": fields("readWrite", "formatted familyName givenName middleName honorificPrefix honorificSuffix")}),
		field("displayName", "The name to show", nil),
		field("active", "Whether the user may come in", object{"type": "boolean"}),
		field("emails", "Addresses", object{"type": "complex", "multiValued": true, "subAttributes": email}),
		field("groups", "Groups of the user", object{"type": "complex", "multiValued": true, "mutability": "readOnly", "subAttributes": reference("readOnly", "Group", "direct")}),
	})
	add(SchemaGroup, "Group", []object{
		field("displayName", "The name by which policies know the group", object{"required": true, "uniqueness": "server"}),
		externalID,
		field("members", "Users in the group", object{"type": "complex", "multiValued": true, "subAttributes": reference("immutable", "User", "User")}),
	})
	return all, byID
}
