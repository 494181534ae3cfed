package jsonrpc

import (
	"slices"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// Replace puts the result of change in the place of a member of an object. path holds the names on the way to the
// member. Everything else stays as it was written. It returns false when there is no such member, change returns nil,
// or the text is not JSON to every reader.
func Replace(text []byte, change func(value []byte) []byte, path ...string) ([]byte, bool) {
	from, to := 0, len(text)
	for _, name := range path {
		start, end, ok := find(text[from:to], name)
		if !ok {
			return nil, false
		}
		from, to = from+start, from+end
	}
	changed := change(text[from:to])
	if changed == nil {
		return nil, false
	}
	return slices.Concat(text[:from], changed, text[to:]), true
}

// find returns the position of the value of a member in an object.
func find(object []byte, name string) (start, end int, ok bool) {
	s := strictjson.NewScanner(object, strictjson.Limits{MaxBytes: len(object) + 1, MaxDepth: 1 << 10, MaxMembers: len(object) + 1})
	defer s.Release()
	if s.Kind() != strictjson.Object {
		return 0, 0, false
	}
	var o strictjson.ObjectFrame
	for s.OpenObject(&o); s.NextMember(&o); {
		is := string(o.Name()) == name
		value := s.Skip()
		if is && value != nil {
			start, end, ok = s.Offset()-len(value), s.Offset(), true
		}
	}
	return start, end, ok && s.End() == nil
}
