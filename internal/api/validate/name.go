package validate

import (
	"strings"
	"unicode"
)

// Name reads the member `name`, which is for people. Names end up in logs and on pages, so that they hold no control
// characters (attack H08). They must have at least one visible character, to tell one from another.
func (o *Object) Name(f Flags, maxLength int) Field[string] {
	name := o.Text("name", Text{Flags: f, Min: 1, Max: maxLength})
	switch {
	case name.Value == "":
	case strings.TrimSpace(name.Value) == "":
		o.Report(ValueError, "Value error, a name must not be blank", "name")
	case strings.ContainsFunc(name.Value, unicode.IsControl):
		o.Report(ValueError, "Value error, control characters are not allowed", "name")
	}
	return name
}
