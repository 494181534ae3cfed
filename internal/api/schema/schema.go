// Package schema describes values of JSON as JSON Schema does (draft 2020-12, the dialect of OpenAPI 3.1). Bodies of
// requests are described by the readers that read them, answers by the types that encode them: see [Of].
package schema

// Schema is a JSON Schema. Its zero value allows every value.
type Schema struct {
	// Ref points to a schema of the document's components; the other members are empty then.
	Ref         string `json:"$ref,omitempty"`
	Type        Types  `json:"type,omitempty"`
	Format      string `json:"format,omitempty"`
	Description string `json:"description,omitempty"`

	Enum    []string `json:"enum,omitempty"`
	Pattern string   `json:"pattern,omitempty"`

	MinLength int    `json:"minLength,omitempty"` // in characters
	MaxLength int    `json:"maxLength,omitempty"`
	Minimum   *int64 `json:"minimum,omitempty"`
	Maximum   *int64 `json:"maximum,omitempty"`

	Items    *Schema `json:"items,omitempty"`
	MinItems int     `json:"minItems,omitempty"`
	MaxItems int     `json:"maxItems,omitempty"`

	Properties           map[string]*Schema `json:"properties,omitempty"`
	Required             []string           `json:"required,omitempty"`
	AdditionalProperties *Schema            `json:"additionalProperties,omitempty"` // of objects with free names
	WriteOnly            bool               `json:"writeOnly,omitempty"`            // a secret, which no answer has

	AnyOf []*Schema `json:"anyOf,omitempty"`
}

// Types are the kinds of values that a schema allows.
type Types []string

// These are the kinds.
const (
	Object  = "object"
	Array   = "array"
	String  = "string"
	Integer = "integer"
	Number  = "number"
	Boolean = "boolean"
	Null    = "null"
)

// MarshalJSON writes one kind as a string, and several as an array.
func (t Types) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return []byte(`"` + t[0] + `"`), nil
	}
	out := []byte{'['}
	for i, kind := range t {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, '"')
		out = append(out, kind...)
		out = append(out, '"')
	}
	return append(out, ']'), nil
}

// Described is implemented by types that encode themselves.
type Described interface{ JSONSchema() *Schema }

// Choice is implemented by types that stand for one of several values.
type Choice interface{ Choices() []any }

// Nullable allows null besides. It changes s, which nothing else refers to, where that is possible: members that are
// added to s later are in the result.
func Nullable(s *Schema) *Schema {
	switch {
	case s.Ref != "", s.Enum != nil: // an enumeration would have to list null, which is no text
		return &Schema{AnyOf: []*Schema{s, {Type: Types{Null}}}}
	case len(s.Type) > 0: // without a type, null is allowed already
		s.Type = append(s.Type, Null)
	}
	return s
}
