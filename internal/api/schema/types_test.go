package schema

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"
)

type colour string

type partView struct {
	Colour colour `json:"colour"`
}

type listView[T any] struct {
	Data []T `json:"data"`
}

type treeView struct {
	Below []treeView `json:"below"`
}

type ownText struct{}

func (ownText) JSONSchema() *Schema { return &Schema{Type: Types{String}, Format: "own"} }

type eitherView struct{}

func (eitherView) Choices() []any { return []any{partView{}, ""} }

// TestOf checks that a type is described as encoding/json encodes it.
func TestOf(t *testing.T) {
	for name, c := range map[string]struct {
		value any
		want  string
	}{
		"text":            {"", `{"type":"string"}`},
		"own text":        {colour(""), `{"type":"string"}`},
		"number":          {1.5, `{"type":"number"}`},
		"integer":         {int64(1), `{"type":"integer"}`},
		"bool":            {true, `{"type":"boolean"}`},
		"time":            {time.Time{}, `{"type":"string","format":"date-time"}`},
		"any":             {map[string]any{}, `{"type":"object","additionalProperties":{}}`},
		"raw":             {json.RawMessage{}, `{}`},
		"bytes":           {[]byte{}, `{"type":"string","format":"byte"}`},
		"text of its own": {netip.Addr{}, `{"type":"string"}`},
		"list":            {[]int{}, `{"type":"array","items":{"type":"integer"}}`},
		"encodes self":    {ownText{}, `{"type":"string","format":"own"}`},
		"null or text":    {new(string), `{"type":["string","null"]}`},
		"null or named":   {new(partView), `{"anyOf":[{"$ref":"#/components/schemas/Part"},{"type":"null"}]}`},
		"named":           {partView{}, `{"$ref":"#/components/schemas/Part"}`},
		"generic":         {listView[partView]{}, `{"$ref":"#/components/schemas/PartList"}`},
		"recursive":       {treeView{}, `{"$ref":"#/components/schemas/Tree"}`},
		"one of two":      {eitherView{}, `{"anyOf":[{"$ref":"#/components/schemas/Part"},{"type":"string"}]}`},
		"in place": {struct {
			partView
			Left    string `json:"left,omitempty"`
			Skipped string `json:"-"`
			Untold  string
			private string
		}{}, `{"type":"object","properties":{"Untold":{"type":"string"},"colour":{"type":"string"},"left":{"type":"string"}},"required":["colour","Untold"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.Marshal(NewComponents().Of(reflect.TypeOf(c.value)))
			if err != nil || string(text) != c.want {
				t.Errorf("%s, %v; want %s", text, err, c.want)
			}
		})
	}
}

// TestComponents checks that each named type is described once, and that two types never share a description.
func TestComponents(t *testing.T) {
	c := NewComponents()
	c.Of(reflect.TypeFor[listView[partView]]())
	c.Of(reflect.TypeFor[treeView]())
	for _, name := range []string{"Part", "PartList", "Tree"} {
		if c.Schemas[name] == nil {
			t.Errorf("%s is not described: %v", name, c.Schemas)
		}
	}
	type Part struct{ Other int }
	if got := c.Of(reflect.TypeFor[Part]()); got.Ref != "#/components/schemas/SchemaPart" {
		t.Errorf("another Part: %+v", got)
	}
	defer func() {
		if fault := recover(); fault == nil || !strings.Contains(fault.(error).Error(), "no answer can have a func()") {
			t.Errorf("a function: %v", fault)
		}
	}()
	c.Of(reflect.TypeFor[func()]())
}
