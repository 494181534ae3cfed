// Package llmedit reads what administrators write about the LLM gateway: providers, aliases, smart models, rate limits and
// budgets. It asks no store.
package llmedit

import (
	"slices"

	"github.com/durward-gateway/durward/internal/api/validate"
)

// MaxName is the longest name, in characters.
const MaxName = 255

// NotWrong leaves out problems of members for which a problem is reported already.
func NotWrong(o *validate.Object, found validate.Problems) validate.Problems {
	return slices.DeleteFunc(found, func(p validate.Problem) bool { return o.Wrong(p.Loc[1:]...) })
}

// set changes a value when the request has the field.
func set[T any](to *T, field validate.Field[T]) {
	if field.Set() {
		*to = field.Value
	}
}

// replace does the work of set for a field that null clears.
func replace[T any](to *T, field validate.Field[T]) {
	if field.Present {
		*to = field.Value
	}
}

func required(is bool) validate.Flags {
	if is {
		return validate.Required
	}
	return 0
}
