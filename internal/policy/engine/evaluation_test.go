package engine

import (
	"errors"
	"testing"
	"time"

	"cel.dev/cel-go/common/types/ref"
)

// TestReasons checks that the interpreter's message is reported only without values, and member names only if the
// expression has them.
func TestReasons(t *testing.T) {
	for _, test := range []struct{ said, expr, want string }{
		{"no such key: x", "R.attr.x == 1", "no such member: x"}, {"no such attribute(s): R.attr.x", "R.attr.x == 1", "no such member: R.attr.x"},
		{"no such key: secret", "R.attr.x == 1", "no such member"}, {"no such key: ", "R.attr.x == 1", "no such member"},
		{"division by zero: 7", "1 / 0 == 1", "division by zero"}, {"R.attr.x", "R.attr.x == 1", errEvaluation.Error()}, {"secret", "R.attr.x == 1", errEvaluation.Error()},
		{errWork.Error(), "R.attr.x == 1", errWork.Error()},
	} {
		err := errors.New(test.said)
		if test.said == errWork.Error() {
			err = errWork
		}
		if got := reasonOf(err, test.expr).Error(); got != test.want {
			t.Errorf("%s is told as %q", test.said, got)
		}
	}
}

// TestEvaluationIsReused checks that facts of one item are not seen for the next, and that nothing of a call is kept
// afterwards.
func TestEvaluationIsReused(t *testing.T) {
	s := compile(t, active(when(grant("a", "*"), "request.action == 'tools/call:a'"), when(grant("whole", "*"), "dyn(request).map(k, k).size() == 3 && request == {'action': 'tools/call:b', 'principal': P, 'resource': R}")))
	e := newEvaluation(t.Context(), s, sales)
	rules := s.unscoped.rules
	for _, name := range []string{"a", "b", "a"} {
		e.about(ToolsCall, name, []byte(`{"n":1}`), false, nil)
		if of := []outcome{e.matches(&rules[0]), e.matches(&rules[1])}; (of[0] == yes) != (name == "a") || (of[1] == yes) != (name == "b") {
			t.Errorf("%s: %v", name, of)
		}
	}
	if err := e.arguments.provide(&reads{arguments: true}); err != nil || len(e.arguments.members) != 1 {
		t.Errorf("%v: %v", err, e.arguments.members)
	}
	limited, notes := e.limited, e.notes
	if limited == nil {
		t.Fatal("no loop was evaluated")
	}
	e.release()
	if limited.Err() == nil {
		t.Error("what ends loops goes on")
	}
	if e.limited != nil || e.cancel != nil || e.until != (time.Time{}) || e.ctx != nil || e.principal != nil || e.name != "" || len(e.notes) > 0 || notes[0].rule != nil {
		t.Errorf("%+v is held", e)
	}
	if e.request.values != [3]ref.Val{} || e.resource.values != [3]ref.Val{} || e.request.whole != nil || e.resource.whole != nil || len(e.arguments.members) > 0 {
		t.Errorf("%+v, %+v and %v are held", e.request, e.resource, e.arguments.members)
	}
}

// TestOutcomes checks that two sets of outcomes combine as any two of their members: no when one is, else broken when
// one is.
func TestOutcomes(t *testing.T) {
	together := func(a, b outcome) outcome {
		switch {
		case a == no || b == no:
			return no
		case a == broken || b == broken:
			return broken
		}
		return yes
	}
	single := []outcome{no, yes, broken}
	for a := no; a <= anything; a++ {
		for b := no; b <= anything; b++ {
			want := outcome(0)
			for _, one := range single {
				for _, other := range single {
					if a&one != 0 && b&other != 0 {
						want |= together(one, other)
					}
				}
			}
			if got := a.and(b); got != want {
				t.Errorf("%03b and %03b is %03b, want %03b", a, b, got, want)
			}
		}
	}
}
