package rules

import (
	"encoding/json"
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/durward-gateway/durward/internal/strictjson"
)

var adapter = types.DefaultTypeAdapter

// fromJSON is a JSON value as conditions see it. It reports false when a number in it cannot be judged, see number.
func fromJSON(v strictjson.Value) (ref.Val, bool) {
	switch v.Kind() {
	case strictjson.Bool:
		return types.Bool(v.Bool()), true
	case strictjson.Number:
		return number(v.Num())
	case strictjson.String:
		return types.String(v.Str()), true
	case strictjson.Array:
		out := make([]ref.Val, 0, v.Len())
		for _, e := range v.Elems() {
			one, ok := fromJSON(e)
			if !ok {
				return nil, false
			}
			out = append(out, one)
		}
		return types.NewRefValList(adapter, out), true
	case strictjson.Object:
		out := make(map[string]any, v.Len())
		for _, m := range v.Members() {
			one, ok := fromJSON(m.Value)
			if !ok {
				return nil, false
			}
			out[m.Name] = one
		}
		return types.NewStringInterfaceMap(adapter, out), true
	}
	return types.NullValue, true
}

// fromGo is the same for what encoding/json makes of a value; it may hold json.Number, also int64, int and []string.
func fromGo(v any) (ref.Val, bool) {
	switch v := v.(type) {
	case nil:
		return types.NullValue, true
	case bool:
		return types.Bool(v), true
	case string:
		return types.String(v), true
	case json.Number:
		return number(v.String())
	case float64:
		return types.Double(v), true
	case int64:
		return types.Int(v), true
	case int:
		return types.Int(v), true
	case []string:
		return stringList(v), true
	case []any:
		out := make([]ref.Val, 0, len(v))
		for _, e := range v {
			one, ok := fromGo(e)
			if !ok {
				return nil, false
			}
			out = append(out, one)
		}
		return types.NewRefValList(adapter, out), true
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			one, ok := fromGo(member)
			if !ok {
				return nil, false
			}
			out[name] = one
		}
		return types.NewStringInterfaceMap(adapter, out), true
	}
	return nil, false
}

func stringList(list []string) ref.Val {
	out := make([]ref.Val, len(list))
	for i, s := range list {
		out[i] = types.String(s)
	}
	return types.NewRefValList(adapter, out)
}

// record is a map of a few fixed members. Conditions nearly always select one of them, which costs no allocation; when
// one is used as a whole the map is made.
type record struct {
	names  []string
	values [3]ref.Val
	whole  traits.Mapper
}

// FindStringKey is how the interpreter selects a member of a map by a name that is known when it plans.
func (r *record) FindStringKey(name string) (any, bool) {
	for i, n := range r.names {
		if n == name {
			return r.values[i], true
		}
	}
	return nil, false
}

func (r *record) mapper() traits.Mapper {
	if r.whole == nil {
		m := make(map[string]any, len(r.names))
		for i, n := range r.names {
			m[n] = r.values[i]
		}
		r.whole = types.NewStringInterfaceMap(adapter, m)
	}
	return r.whole
}

func (r *record) ConvertToNative(t reflect.Type) (any, error) { return r.mapper().ConvertToNative(t) }
func (r *record) ConvertToType(t ref.Type) ref.Val            { return r.mapper().ConvertToType(t) }
func (r *record) Equal(other ref.Val) ref.Val                 { return r.mapper().Equal(other) }
func (r *record) Type() ref.Type                              { return types.MapType }
func (r *record) Value() any                                  { return r.mapper().Value() }
func (r *record) Contains(key ref.Val) ref.Val                { return r.mapper().Contains(key) }
func (r *record) Get(key ref.Val) ref.Val                     { return r.mapper().Get(key) }
func (r *record) Iterator() traits.Iterator                   { return r.mapper().Iterator() }
func (r *record) Size() ref.Val                               { return types.Int(len(r.names)) }
func (r *record) Find(key ref.Val) (ref.Val, bool)            { return r.mapper().Find(key) }

var _ traits.Mapper = (*record)(nil)
