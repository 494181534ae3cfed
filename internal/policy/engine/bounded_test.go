package engine

import "testing"

// TestM20BoundedExpressions checks that only expressions that cannot reach the cost limit go without it.
func TestM20BoundedExpressions(t *testing.T) {
	for text, want := range map[string]bool{
		`R.attr.priority < 5`: true,
		`has(R.attr.priority) && !(R.attr["priority"] > 3) || P.id == "a"`: true,
		`R.attr.team in ["A", "B"]`:                                        true,
		`R.attr.urgent ? R.attr.priority == 1 : true`:                      true,
		`R.attr.urgent`:                                                        true,
		`request.action == "tools/call:x"`:                                     true,
		`5 > R.attr.priority`:                                                  true,
		`R.attr.title.replace("a", "b") in ["x"]`:                              false,
		`R.attr.a == R.attr.b`:                                                 false,
		`R.attr == request.resource.attr`:                                      false,
		`R.attr.a in R.attr.b`:                                                 false,
		`R.attr.a in [R.attr.b]`:                                               false,
		`"admins" in P.groups`:                                                 false,
		`R.attr.title.contains("x")`:                                           false,
		`R.attr.title.matches("a+")`:                                           false,
		`R.attr.title + R.attr.title == "x"`:                                   false,
		`size(R.attr.title) < 5`:                                               false,
		`R.attr.list.all(x, x == 1)`:                                           false,
		`[R.attr.a] == [1]`:                                                    false,
		`{"a": R.attr.a} == {"a": 1}`:                                          false,
		`R.attr.a == 1 && R.attr.list.exists(x, x == 1)`:                       false,
		`(R.attr.a == 1 && R.attr.title.contains("x")) == true`:                false,
		`(R.attr.a == 1 ? R.attr.b : sets.contains(R.attr.c, [1])) == true`:    false,
		`R.attr.list[size(R.attr.list) - 1] == 1`:                              false,
		`R.attr[R.attr.name] == 1`:                                             false,
		`R.attr.a.b.c == "x" || R.attr.title.replace("a", "b") == "something"`: false,
	} {
		checked, issues := environment().Compile(text)
		if issues.Err() != nil {
			t.Fatal(text, issues.Err())
		}
		if got := bounded(checked.NativeRep().Expr()); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
