// Package scim reads and writes the messages with which identity providers provision users and groups (SCIM 2.0, RFC 7643 and
// RFC 7644), in the dialects of Okta and Entra ID. It touches no store.
package scim

import "strings"

// These are the schemas of messages and resources.
const (
	SchemaUser    = "urn:ietf:params:scim:schemas:core:2.0:User"
	SchemaGroup   = "urn:ietf:params:scim:schemas:core:2.0:Group"
	schemaConfig  = "urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"
	schemaType    = "urn:ietf:params:scim:schemas:core:2.0:ResourceType"
	schemaSchema  = "urn:ietf:params:scim:schemas:core:2.0:Schema"
	schemaList    = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
	schemaPatch   = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
	schemaError   = "urn:ietf:params:scim:api:messages:2.0:Error"
	urnPrefix     = "urn:"
	maxText       = 255   // of names and ids
	maxEmails     = 100   // of a user
	maxOperations = 1_000 // of a PATCH
	// MaxBody is the greatest length of a request in bytes.
	MaxBody = 1 << 20
	// MaxMembers is the greatest number of members of a group, and of a page of groups, which ends early.
	MaxMembers = 10_000
	// MaxUsers and MaxGroups are the greatest numbers of an organization's users and groups.
	MaxUsers  = 100_000
	MaxGroups = 10_000
)

// MediaType is the type of messages.
const MediaType = "application/scim+json"

// leftOut lists the attributes of users in RFC 7643 that the gateway does not keep. Providers write them unless somebody takes
// them out of their mapping.
var leftOut = words("nickName profileUrl title userType preferredLanguage locale timezone password phoneNumbers ims photos addresses entitlements roles x509Certificates")

// readOnly lists the attributes that only the gateway writes: what clients send of them is ignored (RFC 7643 section 2.2).
var readOnly = words("schemas id meta groups")

func words(text string) map[string]bool {
	set := make(map[string]bool)
	for word := range strings.FieldsSeq(text) {
		set[strings.ToLower(word)] = true
	}
	return set
}

// ignored reports whether an attribute, in lower case, is one that the gateway does not keep: of another schema, or one of
// RFC 7643. Any other name is a mistake: a misspelt `active` must not be taken for a user who keeps their access.
func ignored(name string) bool {
	return leftOut[name] || strings.HasPrefix(name, urnPrefix) && !strings.EqualFold(name, SchemaUser)
}
