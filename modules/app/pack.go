package app

import (
	"reflect"
	"strings"
)

// pack puts the texts of a struct that will be kept into one piece of memory. As a store reads them each is an object by itself,
// and the garbage collector goes through all objects that are kept, each time.
func pack[T any](kept *T) {
	texts := textsIn(nil, reflect.ValueOf(kept).Elem())
	var whole strings.Builder
	for _, t := range texts {
		whole.WriteString(t.String())
	}
	rest := whole.String()
	for _, t := range texts {
		n := t.Len()
		t.SetString(rest[:n])
		rest = rest[n:]
	}
}

// textsIn appends the texts of a struct, and of the structs in it.
func textsIn(texts []reflect.Value, of reflect.Value) []reflect.Value {
	for _, field := range of.Fields() {
		switch {
		case !field.CanSet():
		case field.Kind() == reflect.String:
			texts = append(texts, field)
		case field.Kind() == reflect.Struct:
			texts = textsIn(texts, field)
		}
	}
	return texts
}
