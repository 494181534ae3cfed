package http1

import (
	"slices"
	"strings"
	"testing"
)

// TestFieldValue checks that every byte is judged alike, wherever it stands and whatever is around it.
func TestFieldValue(t *testing.T) {
	for b := range 256 {
		want := b == '\t' || b >= ' ' && b != 0x7f
		for _, around := range []string{"a", "\xff", "\t", " ", "~", "\x80"} {
			for length := 1; length < 20; length++ {
				for at := range length {
					s := strings.Repeat(around, at) + string([]byte{byte(b)}) + strings.Repeat(around, length-at-1)
					if ValidFieldValue(s) != want || validValue([]byte(s)) != want {
						t.Fatalf("%q: want %v", s, want)
					}
				}
			}
		}
	}
}

func TestOrder(t *testing.T) {
	for _, n := range []int{1, 7, 24, 25, 400} {
		r := &Request{}
		for i := range n {
			r.Fields = append(r.Fields, Field{string(rune('A' + i*7%5)), string(rune(i))})
		}
		want := slices.Clone(r.Fields)
		slices.SortStableFunc(want, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
		if order(r.Fields); !slices.Equal(r.Fields, want) {
			t.Errorf("%d fields: %v", n, r.Fields)
		}
	}
}

func TestSet(t *testing.T) {
	r := &Request{Fields: []Field{{"authorization", "a"}, {"Accept", "b"}, {"X-Same-Length", "e"}, {"Authorization", "c"}}}
	r.Set("Authorization", "d")
	if want := []Field{{"Accept", "b"}, {"X-Same-Length", "e"}, {"Authorization", "d"}}; !slices.Equal(r.Fields, want) || r.Get("Authorization") != "d" || r.Get("authorization") != "" {
		t.Errorf("%v", r.Fields)
	}
}
