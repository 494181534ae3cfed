package scim

import (
	"strings"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// operation is one change of a PATCH.
type operation struct {
	kind  string // add, replace, remove
	at    path
	text  string           // the path as it was written
	value strictjson.Value // null for none
}

// Parse reads the body of a request.
func Parse(body []byte) (strictjson.Value, error) {
	v, err := strictjson.Parse(body, strictjson.Limits{MaxBytes: MaxBody})
	if err != nil {
		return v, wrong(TypeInvalidSyntax, "The body is not valid JSON: %v", err)
	}
	if v.Kind() != strictjson.Object {
		return v, wrong(TypeInvalidSyntax, "The body has to be a JSON object")
	}
	return v, nil
}

// members returns the members of an object by their names in lower case: names of attributes are compared without case.
func members(v strictjson.Value, what string) (map[string]strictjson.Value, error) {
	if v.Kind() != strictjson.Object {
		return nil, wrong(TypeInvalidValue, "%s has to be an object", what)
	}
	all := make(map[string]strictjson.Value, v.Len())
	for _, m := range v.Members() {
		name := strings.ToLower(m.Name)
		if _, twice := all[name]; twice {
			return nil, wrong(TypeInvalidSyntax, "%s has the member %.100q twice", what, m.Name)
		}
		all[name] = m.Value
	}
	return all, nil
}

// operations reads a PATCH. An operation without a path changes what its value names: it becomes one operation for each, in
// their order. Such names may be paths, as Entra ID writes them. Each counts: a change of members goes through those before it.
func operations(body strictjson.Value) (all []operation, err error) {
	message, err := members(body, "The request")
	if err != nil {
		return nil, err
	}
	if err := checkSchema(message["schemas"], schemaPatch); err != nil {
		return nil, err
	}
	list := message["operations"]
	bad := wrong(TypeInvalidSyntax, "Operations has to be a list of 1 to %d operations; one without a path counts as many as its value has members", maxOperations)
	if list.Kind() != strictjson.Array || list.Len() == 0 || list.Len() > maxOperations {
		return nil, bad
	}
	for _, each := range list.Elems() {
		some, err := readOperation(each)
		if err != nil {
			return nil, err
		}
		if all = append(all, some...); len(all) > maxOperations {
			return nil, bad
		}
	}
	return all, nil
}

func readOperation(v strictjson.Value) ([]operation, error) {
	parts, err := members(v, "An operation")
	if err != nil {
		return nil, err
	}
	op := operation{kind: strings.ToLower(parts["op"].Str()), value: parts["value"]}
	switch op.kind {
	case "add", "replace", "remove":
	default:
		return nil, wrong(TypeInvalidSyntax, "op has to be add, replace or remove")
	}
	if where := parts["path"]; !isUnset(where) && !where.Is("") {
		if where.Kind() != strictjson.String {
			return nil, wrong(TypeInvalidPath, "path has to be a text")
		}
		op.text = where.Str()
		op.at, err = readPath(op.text)
		return []operation{op}, err
	}
	if op.kind == "remove" {
		return nil, &Error{Status: 400, Type: TypeNoTarget, Detail: "A remove needs a path"}
	}
	named, err := members(op.value, "The value of an operation without a path")
	if err != nil {
		return nil, err
	}
	all := make([]operation, 0, len(named))
	for _, m := range op.value.Members() {
		each := operation{kind: op.kind, text: m.Name, value: m.Value}
		if each.at, err = readPath(m.Name); err != nil {
			return nil, err
		}
		all = append(all, each)
	}
	return all, nil
}

// checkSchema checks that a message names its schema. Others beside it are those of extensions.
func checkSchema(schemas strictjson.Value, want string) error {
	if schemas.Kind() == strictjson.Array {
		for _, s := range schemas.Elems() {
			if strings.EqualFold(s.Str(), want) {
				return nil
			}
		}
	}
	return wrong(TypeInvalidSyntax, "schemas has to name %s", want)
}

// isUnset reports whether a value is null or absent, which is the same (RFC 7643 section 2.5).
func isUnset(v strictjson.Value) bool {
	return v.Kind() == strictjson.Null || v.Kind() == strictjson.Invalid
}

// text reads a text of at most 255 bytes; null is "".
func text(v strictjson.Value, what string) (string, error) {
	switch {
	case isUnset(v):
		return "", nil
	case v.Kind() != strictjson.String:
		return "", wrong(TypeInvalidValue, "%s has to be a text", what)
	case len(v.Str()) > maxText:
		return "", wrong(TypeInvalidValue, "%s has to be at most %d bytes long", what, maxText)
	case strings.IndexByte(v.Str(), 0) >= 0:
		return "", wrong(TypeInvalidValue, "%s has a NUL character", what)
	}
	return v.Str(), nil
}

// flag reads true or false. Entra ID writes them as texts.
func flag(v strictjson.Value, what string) (bool, error) {
	switch v.Kind() {
	case strictjson.Bool:
		return v.Bool(), nil
	case strictjson.String:
		switch strings.ToLower(v.Str()) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
	}
	return false, wrong(TypeInvalidValue, "%s has to be true or false", what)
}
