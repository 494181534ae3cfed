package limit

import (
	"reflect"
	"testing"
)

// TestCountedHasNoPointers checks that counted has no pointers: stored matches are 200,000 lists of these, which the
// garbage collector then skips.
func TestCountedHasNoPointers(t *testing.T) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[counted]()) {
		of := field.Type
		for of.Kind() == reflect.Array {
			of = of.Elem()
		}
		switch of.Kind() {
		case reflect.Bool, reflect.Int64, reflect.Uint32, reflect.Uint8:
		default:
			t.Errorf("%s is a %s", field.Name, of)
		}
	}
}
