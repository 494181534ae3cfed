package jsonrpc

import (
	"bytes"
	"slices"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// Member is a member of an object, with its value as JSON.
type Member struct {
	Name  string // needs no escapes
	Value []byte
}

// SetMeta returns a message with members in its params._meta, each in place of one of the same name. Everything else
// stays as it was written. It returns false for a text that is not one message.
func SetMeta(text []byte, members []Member) ([]byte, bool) {
	out, ok := Replace(text, func(params []byte) []byte {
		if out, ok := Replace(params, func(meta []byte) []byte { return put(meta, members) }, "_meta"); ok {
			return out
		}
		return insert(params, "_meta", put(nil, members))
	}, "params")
	if !ok {
		out = put(text, []Member{{"params", insert(nil, "_meta", put(nil, members))}})
	}
	return out, out != nil
}

// insert returns an object with one more member, whose name it does not have. It does not read the object again.
func insert(object []byte, name string, value []byte) []byte {
	if object == nil || string(object) == "null" {
		object = []byte("{}")
	}
	if object[0] != '{' {
		return nil
	}
	rest := bytes.TrimLeft(object[1:], " \t\r\n")
	out := append(make([]byte, 0, len(name)+len(value)+len(rest)+5), `{"`...)
	out = append(append(append(out, name...), `":`...), value...)
	if rest[0] != '}' {
		out = append(out, ',')
	}
	return append(out, rest...)
}

// put returns an object with members, each in place of one of the same name. nil and null count as an empty object. It
// returns nil for a text that is no object.
func put(object []byte, members []Member) []byte {
	if object == nil || string(object) == "null" {
		object = []byte("{}")
	}
	s := strictjson.NewScanner(object, strictjson.Limits{MaxBytes: len(object) + 1, MaxDepth: 1 << 10, MaxMembers: len(object) + 1})
	defer s.Release()
	if s.Kind() != strictjson.Object {
		return nil
	}
	out := make([]byte, 0, len(object)+160)
	for i, m := range members {
		out = append(append(append(append(out, `{,`[min(i, 1)], '"'), m.Name...), '"', ':'), m.Value...)
	}
	before := s.Offset() + 1
	var o strictjson.ObjectFrame
	for s.OpenObject(&o); s.NextMember(&o); {
		replaced := slices.ContainsFunc(members, func(m Member) bool { return m.Name == string(o.Name()) })
		s.Skip()
		member := object[before:s.Offset()]
		before = s.Offset()
		if !replaced && len(member) > 0 {
			out = append(append(out, ','), member[bytes.IndexByte(member, '"'):]...) // only a comma and blanks stand before a name
		}
	}
	if s.End() != nil {
		return nil
	}
	return append(out, '}')
}

// Text returns a member of an object that is a string; false when there is none.
func Text(object []byte, name string) (string, bool) {
	start, end, ok := find(object, name)
	if !ok || object[start] != '"' {
		return "", false
	}
	return string(strictjson.AppendUnescaped(nil, object[start+1:end-1])), true
}

// FailureOf returns the code of the error that a response holds, "" for a message without one, and reports whether it is the
// result of a tool that says of itself that it is an error. It is for observers: nothing may be decided by it.
func FailureOf(response []byte) (code string, tool bool) {
	s := strictjson.NewScanner(response, strictjson.Limits{MaxBytes: len(response) + 1, MaxDepth: 1 << 10, MaxMembers: len(response) + 1})
	defer s.Release()
	if s.Kind() != strictjson.Object {
		return "", false
	}
	var o, inner strictjson.ObjectFrame
	for s.OpenObject(&o); s.NextMember(&o); {
		name := string(o.Name())
		if name != "error" && name != "result" || s.Kind() != strictjson.Object {
			s.Skip()
			continue
		}
		for s.OpenObject(&inner); s.NextMember(&inner); {
			switch member := string(inner.Name()); {
			case name == "error" && member == "code" && s.Kind() == strictjson.Number:
				code = string(s.Skip())
			case name == "result" && member == "isError":
				tool = string(s.Skip()) == "true"
			default:
				s.Skip()
			}
		}
	}
	return code, tool && s.End() == nil
}
