package validate

import (
	"math"
	"slices"

	"github.com/durward-gateway/durward/internal/api/schema"
)

// Describe returns the schema of the bodies that a function reads. The function is called with an object whose readers
// read nothing: each notes its member and rule, and returns a field that is present and has the zero value.
func Describe(fields func(*Object)) *schema.Schema {
	o := describing()
	fields(o)
	return o.described
}

// describing returns an object that describes itself instead of being read.
func describing() *Object {
	return &Object{
		described: &schema.Schema{Type: schema.Types{schema.Object}, Properties: make(map[string]*schema.Schema)},
		problems:  new(Problems), // nobody looks at them
	}
}

// describe notes a member of an object that is described. It reports false for an object that is read.
func (o *Object) describe(name string, f Flags, s *schema.Schema) bool {
	if o.described == nil {
		return false
	}
	if f.has(Secret) {
		s.WriteOnly = true
	}
	if f.has(Nullable) {
		s = schema.Nullable(s)
	}
	if o.described.Properties[name] == nil { // a member that is read twice is described by its first reader
		o.described.Properties[name] = s
	}
	if f.has(Required) && !slices.Contains(o.described.Required, name) {
		o.described.Required = append(o.described.Required, name)
	}
	return true
}

func (r Text) schema() *schema.Schema {
	s := &schema.Schema{Type: schema.Types{schema.String}, Enum: r.Enum}
	if r.Enum != nil {
		return s
	}
	s.MinLength, s.MaxLength = r.Min, r.Max
	if s.MaxLength == 0 {
		s.MaxLength = DefaultMaxText
	}
	if r.Pattern != nil {
		s.Pattern = r.Pattern.String()
	}
	return s
}

func (r Integer) schema() *schema.Schema {
	s := &schema.Schema{Type: schema.Types{schema.Integer}, Minimum: &r.Min}
	if r.Max != 0 && r.Max != math.MaxInt64 {
		s.Maximum = &r.Max
	}
	return s
}

func (l List) schema(items *schema.Schema) *schema.Schema {
	s := &schema.Schema{Type: schema.Types{schema.Array}, Items: items, MinItems: l.Min, MaxItems: l.Max}
	if s.MaxItems == 0 {
		s.MaxItems = DefaultMaxList
	}
	return s
}

func ofUUID() *schema.Schema {
	return &schema.Schema{Type: schema.Types{schema.String}, Format: "uuid"}
}

func ofTime() *schema.Schema {
	return &schema.Schema{Type: schema.Types{schema.String}, Format: "date-time"}
}

func ofBool() *schema.Schema { return &schema.Schema{Type: schema.Types{schema.Boolean}} }

// Parameter describes a parameter of a query.
type Parameter struct {
	Name     string
	Required bool
	Schema   *schema.Schema
}

// DescribedQuery returns a query whose readers read nothing: each notes its parameter, which [Query.Described] returns.
func DescribedQuery() *Query { return &Query{describing: true} }

// Described returns the parameters that readers asked for, in their order.
func (q *Query) Described() []Parameter { return q.described }

func (q *Query) describe(name string, f Flags, s *schema.Schema) bool {
	if !q.describing {
		return false
	}
	if !slices.ContainsFunc(q.described, func(p Parameter) bool { return p.Name == name }) {
		q.described = append(q.described, Parameter{Name: name, Required: f.has(Required), Schema: s})
	}
	return true
}
