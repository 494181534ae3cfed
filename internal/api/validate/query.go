package validate

import (
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxParameters is the largest number of parameters in one query (attack P06).
const MaxParameters = 100

// QueryError describes a query that is refused as a whole, with 400 BadRequest in both families: readers would
// understand it differently.
type QueryError struct{ Reason string }

// Error implements error.
func (e *QueryError) Error() string { return "invalid query: " + e.Reason }

// Query is a parsed query. Its readers note the problems; parameters that no reader asks for are ignored, see
// NoOthers.
type Query struct {
	values   map[string][]string
	asked    []string
	problems Problems

	describing bool // the parameters are described instead of being read, see DescribedQuery
	described  []Parameter
}

// ParseQuery reads the query part of a URL, as it was sent. Its error is a *QueryError: too many parameters, ';' as a
// separator, bad percent-encoding, or text that is not UTF-8.
func ParseQuery(raw string) (*Query, error) {
	q := &Query{values: map[string][]string{}}
	if strings.Contains(raw, ";") {
		return nil, &QueryError{"';' is not a separator"}
	}
	if strings.Count(raw, "&") >= MaxParameters {
		return nil, &QueryError{"too many parameters"}
	}
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err == nil {
			value, err = url.QueryUnescape(value)
		}
		if err != nil {
			return nil, &QueryError{"bad percent-encoding"}
		}
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return nil, &QueryError{"not UTF-8"}
		}
		q.values[name] = append(q.values[name], value)
	}
	return q, nil
}

// Err returns all problems noted so far, as type Problems, or nil when there are none.
func (q *Query) Err() error { return q.problems.Err() }

// Report notes a problem that no rule covers.
func (q *Query) Report(kind, msg string, place ...any) {
	q.problems.add(Problem{Loc: slices.Concat([]any{"query"}, place), Msg: msg, Type: kind})
}

// NoOthers notes each parameter that no reader has asked for: a misspelt filter would match everything.
func (q *Query) NoOthers() {
	for _, name := range slices.Sorted(maps.Keys(q.values)) {
		if !slices.Contains(q.asked, name) {
			q.Report(ExtraForbidden, "Extra inputs are not permitted", name)
		}
	}
}

// Page reads page (1 and up, default 1) and limit (1 to 100, default 10).
func (q *Query) Page() (page, limit int) {
	page = int(q.Int("page", Integer{Min: 1, Max: math.MaxInt32}).Or(1))
	limit = int(q.Int("limit", Integer{Min: 1, Max: 100}).Or(10))
	return page, limit
}

// Text reads a parameter that may be given once.
func (q *Query) Text(name string, r Text) Field[string] {
	if q.describe(name, r.Flags, r.schema()) {
		return Field[string]{}
	}
	s, field, ok := q.single(name, r.Flags, ValueError)
	if !ok {
		return field
	}
	if wrong := r.check(s); wrong != nil {
		q.note(s, r.Flags, wrong, name)
		return field
	}
	field.Value = s
	return field
}

// UUID reads a uuid that may be given once, in lower case.
func (q *Query) UUID(name string, f Flags) Field[string] {
	if q.describe(name, f, ofUUID()) {
		return Field[string]{}
	}
	s, field, ok := q.single(name, f, UUIDParsing)
	if !ok {
		return field
	}
	id, ok := UUID(s)
	if !ok {
		q.note(s, f, &fault{UUIDParsing, msgUUID, nil}, name)
	}
	field.Value = id
	return field
}

// Int reads an integer that may be given once, in canonical digits.
func (q *Query) Int(name string, r Integer) Field[int64] {
	if q.describe(name, r.Flags, r.schema()) {
		return Field[int64]{}
	}
	s, field, ok := q.single(name, r.Flags, IntParsing)
	out := Field[int64]{Present: field.Present}
	if !ok {
		return out
	}
	n, wrong := r.parse(s)
	if wrong != nil {
		q.note(s, r.Flags, wrong, name)
	}
	out.Value = n
	return out
}

// Bool reads true or false, given once.
func (q *Query) Bool(name string, f Flags) Field[bool] {
	if q.describe(name, f, ofBool()) {
		return Field[bool]{}
	}
	s, field, ok := q.single(name, f, BoolType)
	out := Field[bool]{Present: field.Present}
	if ok && s != "true" && s != "false" {
		q.note(s, f, &fault{BoolType, msgBool, nil}, name)
	}
	out.Value = ok && s == "true"
	return out
}

// Texts reads an array, given as repeated parameters, joined by commas, or both. Repeated values count once. The
// location of an element's problem has its index.
func (q *Query) Texts(name string, l List, r Text) []string {
	if q.describe(name, l.Flags|r.Flags, l.schema(r.schema())) {
		return nil
	}
	return q.elements(name, l, func(s string, i int) (string, bool) {
		if wrong := r.check(s); wrong != nil {
			return "", q.note(s, r.Flags, wrong, name, i)
		}
		return s, true
	})
}

// Enums reads words of a closed list, like Texts.
func (q *Query) Enums(name string, allowed ...string) []string {
	return q.Texts(name, List{Max: MaxParameters}, Text{Enum: allowed})
}

// UUIDs reads an array of uuids like Texts, in lower case.
func (q *Query) UUIDs(name string, l List) []string {
	if q.describe(name, l.Flags, l.schema(ofUUID())) {
		return nil
	}
	return q.elements(name, l, func(s string, i int) (string, bool) {
		id, ok := UUID(s)
		return id, ok || q.note(s, l.Flags, &fault{UUIDParsing, msgUUID, nil}, name, i)
	})
}

// single reads a parameter that may be given once. ok is false when there is no value to check.
func (q *Query) single(name string, f Flags, kind string) (value string, field Field[string], ok bool) {
	q.asked = append(q.asked, name)
	values := q.values[name]
	field.Present = len(values) > 0
	switch {
	case len(values) > 1:
		// Readers differ in which of them counts (attacks G01, P06).
		q.Report(kind, "Parameter should be given once", name)
		return "", field, false
	case len(values) == 1:
		return values[0], field, true
	case f.has(Required):
		q.Report(Missing, msgMissing, name)
	}
	return "", field, false
}

func (q *Query) elements(name string, l List, one func(string, int) (string, bool)) []string {
	q.asked = append(q.asked, name)
	values, present := q.values[name]
	if !present {
		if l.Flags.has(Required) {
			q.Report(Missing, msgMissing, name)
		}
		return nil
	}
	values = strings.Split(strings.Join(values, ","), ",")
	if wrong := l.check(len(values)); wrong != nil {
		q.problems.add(Problem{Loc: []any{"query", name}, Msg: wrong.msg, Type: wrong.kind, Ctx: wrong.ctx})
		return nil
	}
	out := make([]string, 0, len(values))
	for i, s := range values {
		if value, ok := one(s, i); l.Hold || ok && !slices.Contains(out, value) {
			out = append(out, value)
		}
	}
	return out
}

// note notes a problem of s. It returns false.
func (q *Query) note(s string, f Flags, wrong *fault, place ...any) bool {
	p := Problem{Loc: slices.Concat([]any{"query"}, place), Msg: wrong.msg, Type: wrong.kind, Ctx: wrong.ctx}
	if !f.has(Secret) && !q.holdsSecret() {
		p.Input = shown(s)
	}
	q.problems.add(p)
	return false
}
