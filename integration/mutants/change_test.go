package main

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

const sample = `package sample

func (b *box[T]) open(n int, names []string) (bool, error) {
	b.tries++
	for i := range names { b.add(names[i]) }
	if b == nil || n<3 && names[0] != "" {
		return n >= 7, nil
	}
	switch {
	case b.shut:
		defer b.close()
	}
	for !b.shut { b.shut = b.add("") }
	ok := b.shut
	return ok, nil
}
`

// TestChanges holds the list of changes: one that is not made is one that no test has to notice.
func TestChanges(t *testing.T) {
	number := 0
	changes, err := findChanges("box/box.go", []byte(sample), &number)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range changes {
		name, found := strings.CutPrefix(c.name(), "box/box.go box.open: ")
		if !found {
			t.Errorf("a change is named %q", c.name())
		}
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{
		"leave out `b == nil`",
		"leave out `b.add(names[i])`",
		"leave out `b.shut = b.add(\"\")`",
		"leave out `b.tries++`",
		"leave out `defer b.close()`",
		"leave out `n<3 && names[0] != \"\"`",
		"leave out `n<3`",
		"leave out `names[0] != \"\"`",
		"move the bound `n >= 7`",
		"move the bound `n<3`",
		"negate `b == nil || n<3 && names[0] != \"\"`",
		"negate `b.shut`",
		"negate `n >= 7`",
		"never loop `!b.shut`",
	}
	if !slices.Equal(names, want) {
		t.Errorf("the changes are\n%s\nwant\n%s", strings.Join(names, "\n"), strings.Join(want, "\n"))
	}
}

func TestChangedFileParses(t *testing.T) {
	number := 0
	changes, err := findChanges("box/box.go", []byte(sample), &number)
	if err != nil {
		t.Fatal(err)
	}
	text := changed([]byte(sample), changes)
	if _, err := parser.ParseFile(token.NewFileSet(), "box.go", text, 0); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if got, want := strings.Count(string(text), "\n"), strings.Count(sample, "\n"); got != want {
		t.Errorf("the file has %d lines, want %d: errors of the compiler are found by their lines", got, want)
	}
	// The outer change has to hold the inner ones.
	for _, want := range []string{
		`mutantLess(8, n, /*<*/ 3)`,
		`if mutantNot(3, mutantAnd(4, b == nil) || mutantAnd(5, mutantOr(6, `,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func TestExplanations(t *testing.T) {
	reasons := explanations{
		"a/b/c.go f: negate `x`": {reason: "one"},
		"a/b/c.go g: negate `y`": {reason: "two"},
		"a/b.go g: negate `y`":   {reason: "three"},
	}
	if !reasons.take("a/b/c.go f: negate `x`") || reasons.take("a/b/c.go f: negate `z`") {
		t.Error("the wrong survivors are explained")
	}
	if got := reasons.unused("a/b"); !slices.Equal(got, []string{"a/b/c.go g: negate `y`"}) {
		t.Errorf("explanations without a survivor: %q", got)
	}
}
