package postgres

import (
	"crypto/rand"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/durward-gateway/durward/storage"
)

// errText refuses text that PostgreSQL cannot store. No other text is ever stored in its place.
var errText = fmt.Errorf("%w: PostgreSQL keeps no text that is not UTF-8 or has a NUL", storage.ErrText)

// nothing replaces, in queries, text that PostgreSQL cannot store: no row has it, and nobody can guess it.
var nothing = "\U0010ffff" + rand.Text()

func isStorable(text string) bool { return utf8.ValidString(text) && strings.IndexByte(text, 0) < 0 }

// storable returns a text to search for.
func storable(text string) string {
	if isStorable(text) {
		return text
	}
	return nothing
}

// storableArgs returns arguments to search for.
func storableArgs(args []any) []any {
	args, _ = replaceTexts(args)
	return args
}

// storedArgs returns the arguments of a statement that writes. Text that cannot be stored is refused, but a statement
// that only deletes can search for it.
func storedArgs(query string, args []any) ([]any, error) {
	replaced, all := replaceTexts(args)
	if !all && !strings.HasPrefix(query, "DELETE") {
		return nil, errText
	}
	return replaced, nil
}

// replaceTexts puts nothing in place of text that cannot be sent; all reports that there was no such text.
func replaceTexts(args []any) (replaced []any, all bool) {
	all, replaced = true, args
	replace := func(i int, v any) {
		if all {
			replaced = append([]any(nil), args...)
		}
		all = false
		replaced[i] = v
	}
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			if !isStorable(arg) {
				replace(i, nothing)
			}
		case []string:
			texts := make([]string, len(arg))
			changed := false
			for j, text := range arg {
				texts[j] = storable(text)
				changed = changed || texts[j] != text
			}
			if changed {
				replace(i, texts)
			}
		case int, int64, []byte, nil:
		default:
			if v := reflect.ValueOf(arg); v.Kind() == reflect.String && !isStorable(v.String()) {
				replace(i, nothing)
			}
		}
	}
	return replaced, all
}
