package declare

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/durward-gateway/durward/internal/api/validate"
)

// found is an object of a file: the one that is there, or the id of a new one.
type found[T any] struct {
	id      string
	name    string
	present *T
}

// renamed returns the former name of an object that gets another one, else "".
func (f *found[T]) renamed(former string) string {
	return renamedFrom(former, f.name)
}

// kind describes objects that are known by a name.
type kind[T any] struct {
	list, member string // where they are in a document, and which member has their name
	what         string // one of them, with its article
	all          []T    // those that are there
	id, name     func(*T) string
	same         func(a, b string) bool // compares names
}

func (k *kind[T]) named(name string) *T {
	for i := range k.all {
		if name != "" && k.same(k.name(&k.all[i]), name) {
			return &k.all[i]
		}
	}
	return nil
}

// find finds the objects of all documents by their names, or by their former ones. Names in taken are taken by other kinds.
func find[T any](p *planner, documents []*document, k kind[T], taken map[string]bool) map[*yaml.Node]found[T] {
	all, kept := make(map[*yaml.Node]found[T]), make(map[string]bool)
	for _, d := range documents {
		for i, n := range d.each(k.list) {
			name, was := textOf(n, k.member), textOf(n, "was")
			if name == "" {
				continue // its reader reports that
			}
			path := fmt.Sprintf("%s[%d]", k.list, i)
			key := name
			if k.same("a", "A") {
				key = strings.ToLower(name)
			}
			if taken[key] {
				p.wrong(d, member(n, k.member), path+"."+k.member, fmt.Sprintf("%s of the name %q is declared already", k.what, name))
				continue
			}
			taken[key] = true
			f := found[T]{id: newID(), name: name, present: k.named(name)}
			if former := k.named(was); former != nil {
				if f.present != nil && k.id(f.present) != k.id(former) {
					p.wrong(d, member(n, "was"), path+".was", fmt.Sprintf("there is %s of each name: %q cannot become %q", k.what, was, name))
					continue
				}
				f.present = former
			}
			if f.present != nil {
				f.id = k.id(f.present)
			}
			if kept[f.id] {
				p.wrong(d, member(n, k.member), path+"."+k.member, fmt.Sprintf("%s is declared already, under another name", k.what))
				continue
			}
			kept[f.id], all[n] = true, f
		}
	}
	return all
}

// noted reports the problems of a whole object, of which one member is not reported already.
func noted(o *validate.Object, err error) {
	var problems validate.Problems
	if err != nil && !errors.As(err, &problems) {
		o.Report(validate.ValueError, err.Error())
	}
	for _, problem := range problems {
		problem.Loc = problem.Loc[1:]
		if !o.Wrong(problem.Loc...) {
			o.Note(problem)
		}
	}
}
