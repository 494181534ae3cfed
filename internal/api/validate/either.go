package validate

import (
	"github.com/durward-gateway/durward/internal/api/schema"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// TextOrObject reads a member that is a string or an object. object is nil when it is no object; text then holds the string.
func TextOrObject(o *Object, name string, r Text) (text Field[string], object *Object) {
	inner := describing()
	if o.describe(name, r.Flags, &schema.Schema{AnyOf: []*schema.Schema{r.schema(), inner.described}}) {
		return Field[string]{Present: true}, inner
	}
	if v, ok := o.value.Get(name); ok && v.Kind() == strictjson.Object {
		return Field[string]{}, o.Object(name, r.Flags).Value
	}
	return o.Text(name, r), nil
}
