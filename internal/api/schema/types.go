package schema

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// Components holds the schemas of named types, by their name in the document.
type Components struct {
	Schemas map[string]*Schema
	types   map[string]reflect.Type
}

// NewComponents returns a document's components, which are empty.
func NewComponents() *Components {
	return &Components{Schemas: make(map[string]*Schema), types: make(map[string]reflect.Type)}
}

// refPrefix is the place of components in an OpenAPI document.
const refPrefix = "#/components/schemas/"

// Of returns the schema of the values that encoding/json makes of a type. Structs with a name become components. It
// panics on a type that no answer can have, such as a function: that is a mistake in the program.
func (c *Components) Of(t reflect.Type) *Schema {
	if t == nil {
		return &Schema{}
	}
	if known := c.encoded(t); known != nil {
		return known
	}
	switch t.Kind() {
	case reflect.Pointer:
		return Nullable(c.Of(t.Elem()))
	case reflect.Struct:
		return c.structure(t)
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return &Schema{Type: Types{String}, Format: "byte"}
		}
		return &Schema{Type: Types{Array}, Items: c.Of(t.Elem())}
	case reflect.Map:
		return &Schema{Type: Types{Object}, AdditionalProperties: c.Of(t.Elem())}
	case reflect.Interface:
		return &Schema{}
	case reflect.String:
		return &Schema{Type: Types{String}}
	case reflect.Bool:
		return &Schema{Type: Types{Boolean}}
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: Types{Number}}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &Schema{Type: Types{Integer}}
	default:
		panic(fmt.Errorf("describing the API: no answer can have a %s", t))
	}
}

// encoded returns the schema of a type that encodes itself, nil for others.
func (c *Components) encoded(t reflect.Type) *Schema {
	if own, ok := reflect.Zero(t).Interface().(Described); ok && t.Kind() != reflect.Pointer {
		return own.JSONSchema()
	}
	if choice, ok := reflect.Zero(t).Interface().(Choice); ok && t.Kind() != reflect.Pointer {
		one := &Schema{}
		for _, value := range choice.Choices() {
			one.AnyOf = append(one.AnyOf, c.Of(reflect.TypeOf(value)))
		}
		return one
	}
	switch t {
	case reflect.TypeFor[json.RawMessage]():
		return &Schema{}
	case reflect.TypeFor[time.Time]():
		return &Schema{Type: Types{String}, Format: "date-time"}
	case reflect.TypeFor[json.Number]():
		return &Schema{Type: Types{Number}}
	}
	switch {
	case t.Kind() == reflect.Pointer: // its methods are those of what it points to
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		panic(fmt.Errorf("describing the API: %s encodes itself, and does not say how (JSONSchema)", t))
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return &Schema{Type: Types{String}}
	}
	return nil
}

// structure returns a reference to the component of a struct, which it makes when it is not there. A struct without a
// name is described in place. Of two with the same name, the second one has its package's name before its own.
func (c *Components) structure(t reflect.Type) *Schema {
	name := NameOf(t)
	if name == "" {
		return c.members(t)
	}
	if known, ok := c.types[name]; ok && known != t {
		name = upper(t.PkgPath()[strings.LastIndex(t.PkgPath(), "/")+1:]) + name
	}
	if known, ok := c.types[name]; ok && known != t {
		panic(fmt.Errorf("describing the API: %s and %s would both be %s", known, t, name))
	}
	if _, ok := c.types[name]; !ok {
		c.types[name] = t // before its members, which may contain it
		c.Schemas[name] = c.members(t)
	}
	return &Schema{Ref: refPrefix + name}
}

func (c *Components) members(t reflect.Type) *Schema {
	s := &Schema{Type: Types{Object}, Properties: make(map[string]*Schema)}
	c.fields(t, s)
	return s
}

// fields adds the members of a struct, and those of embedded structs, as encoding/json does.
func (c *Components) fields(t reflect.Type, s *Schema) {
	for f := range t.Fields() {
		tag, tagged := f.Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case name == "-" && options == "", !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && name == "":
			c.fields(f.Type, s)
			continue
		case !tagged || name == "":
			name = f.Name
		}
		s.Properties[name] = c.Of(f.Type)
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			s.Required = append(s.Required, name)
		}
	}
}

// NameOf returns the name of a struct in the document: the one in the program without "View" behind it, "ServerPage"
// for the instance pageView[serverView] of a generic type, "" for a struct without a name.
func NameOf(t reflect.Type) string {
	name, argument, generic := strings.Cut(t.Name(), "[")
	name = upper(strings.TrimSuffix(name, "View"))
	if generic {
		argument = strings.TrimSuffix(argument, "]")
		return upper(strings.TrimSuffix(argument[strings.LastIndex(argument, ".")+1:], "View")) + name
	}
	return name
}

func upper(name string) string {
	if name == "" {
		return ""
	}
	return string(unicode.ToUpper(rune(name[0]))) + name[1:]
}
