package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// A field reader takes a value and the name under which errors speak of it.

// readObject passes each member of v to the reader of its name. The JSON reader has already refused duplicate
// members; names are compared exactly.
func readObject(v strictjson.Value, name string, fields map[string]func(strictjson.Value, string) error) error {
	if v.Kind() != strictjson.Object {
		return fmt.Errorf("%s: want an object", name)
	}
	for _, member := range v.Members() {
		read, known := fields[member.Name]
		if !known {
			return fmt.Errorf("%s: unknown field %q, known are %s", name, member.Name, strings.Join(names(fields), ", "))
		}
		if err := read(member.Value, member.Name); err != nil {
			return err
		}
	}
	return nil
}

func names(fields map[string]func(strictjson.Value, string) error) []string {
	var out []string
	for name := range fields {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func stringInto(dst *string) func(strictjson.Value, string) error {
	return func(v strictjson.Value, name string) error {
		if v.Kind() != strictjson.String {
			return fmt.Errorf("%s: want a string", name)
		}
		*dst = v.Str()
		return nil
	}
}

func flagsInto(dst *[]string) func(strictjson.Value, string) error {
	return func(v strictjson.Value, name string) error {
		var line string
		if err := stringInto(&line)(v, name); err != nil {
			return err
		}
		words, err := splitWords(line)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, word := range words {
			// go build would take a bare word for a package to build.
			if !strings.HasPrefix(word, "-") {
				return fmt.Errorf("%s: %q is not a flag; write -name=value", name, word)
			}
		}
		*dst = words
		return nil
	}
}

func listInto[T any](dst *[]T, read func(strictjson.Value, string) (T, error)) func(strictjson.Value, string) error {
	return func(v strictjson.Value, name string) error {
		if v.Kind() != strictjson.Array {
			return fmt.Errorf("%s: want a list", name)
		}
		for i, elem := range v.Elems() {
			item, err := read(elem, fmt.Sprintf("%s[%d]", name, i))
			if err != nil {
				return err
			}
			*dst = append(*dst, item)
		}
		return nil
	}
}

func readPlugin(v strictjson.Value, name string) (plugin, error) {
	var p plugin
	err := readObject(v, name, map[string]func(strictjson.Value, string) error{
		"module_path": within(name, stringInto(&p.ModulePath)),
		"version":     within(name, stringInto(&p.Version)),
	})
	return p, err
}

func readReplacement(v strictjson.Value, name string) (replacement, error) {
	var r replacement
	err := readObject(v, name, map[string]func(strictjson.Value, string) error{
		"old": within(name, stringInto(&r.Old)),
		"new": within(name, stringInto(&r.New)),
	})
	return r, err
}

func within(parent string, read func(strictjson.Value, string) error) func(strictjson.Value, string) error {
	return func(v strictjson.Value, name string) error { return read(v, parent+"."+name) }
}

// splitWords splits a line of flags at spaces. Words with spaces stand in 'single' or "double" quotes, as in
// `-trimpath -ldflags="-s -w"`.
func splitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord, quote := false, rune(0)
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ' || r == '\t' || r == '\n':
			if inWord {
				words = append(words, word.String())
				word.Reset()
				inWord = false
			}
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}
