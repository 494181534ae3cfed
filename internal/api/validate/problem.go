// Package validate checks requests against the rules of their fields and collects all problems, in the form that the
// API answers: 422 {"detail":[{loc,msg,type,input?,ctx?}]} in the platform family, 400 with the messages joined in
// the gateway family.
//
// Bodies are read with internal/strictjson, and absent, null and a value are distinct ([ParseBody], [Object],
// [Field]). Queries are read strictly too ([ParseQuery], [Query]). [CheckMedia] is the rule for Content-Type and
// Content-Encoding. Nothing here knows a route or a store: references and conflicts are left to the callers.
package validate

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Words for Problem.Type. There are no others.
const (
	Missing               = "missing"
	UUIDParsing           = "uuid_parsing"
	StringType            = "string_type"
	IntParsing            = "int_parsing"
	BoolType              = "bool_type"
	ListType              = "list_type"
	DictType              = "dict_type"
	GreaterThanEqual      = "greater_than_equal"
	LessThanEqual         = "less_than_equal"
	StringTooShort        = "string_too_short"
	StringTooLong         = "string_too_long"
	StringPatternMismatch = "string_pattern_mismatch"
	TooShort              = "too_short"
	TooLong               = "too_long"
	Enum                  = "enum"
	JSONInvalid           = "json_invalid"
	ExtraForbidden        = "extra_forbidden"
	ValueError            = "value_error"
)

// maxProblems bounds the problems that are reported for one request, so that a hostile request does not get an answer
// larger than itself.
const maxProblems = 1_000

// Problem describes one error of a request.
type Problem struct {
	Loc   []any          `json:"loc"` // "body", "query" or "path", then names and indexes
	Msg   string         `json:"msg"`
	Type  string         `json:"type"`
	Input any            `json:"input,omitempty"` // nil: left out, as for secrets. A JSON null is json.RawMessage("null")
	Ctx   map[string]any `json:"ctx,omitempty"`
}

// Problems holds all errors of a request. It is an error when there are any.
type Problems []Problem

// Error returns the text of an answer of the gateway family: the messages, each with its field, joined by "; ".
func (p Problems) Error() string {
	texts := make([]string, len(p))
	for i, problem := range p {
		texts[i] = problem.Msg
		if where := problem.field(); where != "" {
			texts[i] = where + ": " + problem.Msg
		}
	}
	return strings.Join(texts, "; ")
}

// field returns the location without its first word, as in rules[0].name; "" for the whole body and for bad JSON.
func (p Problem) field() string {
	if p.Type == JSONInvalid || len(p.Loc) < 2 {
		return ""
	}
	var b strings.Builder
	for _, step := range p.Loc[1:] {
		switch step := step.(type) {
		case int:
			fmt.Fprintf(&b, "[%d]", step)
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			fmt.Fprint(&b, step)
		}
	}
	return b.String()
}

// MarshalJSON returns the body of the 422 answer.
func (p Problems) MarshalJSON() ([]byte, error) {
	detail := []Problem(p)
	if detail == nil {
		detail = []Problem{}
	}
	return json.Marshal(struct {
		Detail []Problem `json:"detail"`
	}{detail})
}

// Err returns p as an error, nil when there are no problems.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

func (p *Problems) add(problem Problem) {
	if len(*p) < maxProblems {
		*p = append(*p, problem)
	}
}

// InPath returns the problem of one path parameter.
func InPath(name, kind, msg, input string) error {
	return Problems{{Loc: []any{"path", name}, Msg: msg, Type: kind, Input: shown(input)}}
}

// PathUUID reads a path parameter that must be a uuid and returns it in lower case.
func PathUUID(name, value string) (string, error) {
	id, ok := UUID(value)
	if !ok {
		return "", InPath(name, UUIDParsing, msgUUID, value)
	}
	return id, nil
}

// UUID reports whether s is a uuid in its usual form of 36 characters (RFC 9562 section 4) and returns it in lower
// case.
func UUID(s string) (string, bool) {
	if len(s) != 36 {
		return "", false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return "", false
			}
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f', c >= 'A' && c <= 'F':
		default:
			return "", false
		}
	}
	return strings.ToLower(s), true
}
