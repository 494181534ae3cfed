package cache

import (
	"reflect"
	"strings"
)

// Compact puts the texts of a struct, which will be kept and belongs to nobody else, into one piece of memory. A store
// reads each text as an object by itself, and the garbage collector visits every kept object each time.
func Compact[T any](kept *T) {
	texts := textsIn(nil, reflect.ValueOf(kept).Elem())
	size := 0
	for _, t := range texts {
		size += t.Len()
	}
	var whole strings.Builder
	whole.Grow(size)
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

// textsIn appends the texts in a value: the value itself, or those of a struct's fields or a slice's elements.
func textsIn(texts []reflect.Value, in reflect.Value) []reflect.Value {
	switch {
	case !in.CanSet():
	case in.Kind() == reflect.String:
		texts = append(texts, in)
	case in.Kind() == reflect.Struct:
		for _, field := range in.Fields() {
			texts = textsIn(texts, field)
		}
	case in.Kind() == reflect.Slice && in.Type().Elem().Kind() != reflect.Uint8:
		for i := range in.Len() {
			texts = textsIn(texts, in.Index(i))
		}
	}
	return texts
}
