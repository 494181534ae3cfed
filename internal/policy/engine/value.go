package engine

import (
	"encoding/json"
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/durward-gateway/durward/internal/strictjson"
)

var adapter = types.DefaultTypeAdapter

// fromJSON converts a JSON value to the value that conditions see. It returns false when conditions cannot judge a
// number in it, see number.
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

// fromGo does the same for a value that encoding/json decoded. The value may hold json.Number, and also int64, int and
// []string.
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

// record is a map with a few fixed members. Conditions nearly always select one member, which costs no allocation. The
// whole map is made only when a condition uses it as a whole.
type record struct {
	names  []string
	values [3]ref.Val
	whole  traits.Mapper
}

// FindStringKey returns a member by its name. The interpreter calls it for a name that is already known when it plans.
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
