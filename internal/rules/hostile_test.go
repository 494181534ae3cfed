package rules

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"cel.dev/cel-go/common/overloads"
)

// M20: whatever an expression does with whatever arguments, it comes to an end soon, and what cannot be evaluated denies.
// Without the limits some of these take hours or all memory, so that a failure shows as a test that does not end.
func TestM20HostileExpressions(t *testing.T) {
	size := 100_000
	if raceEnabled {
		size = 5_000 // it makes all of this twenty times slower
	}
	distinct := make([]string, size)
	for i := range distinct {
		distinct[i] = strconv.Itoa(i)
	}
	args := `{"l":[` + strings.Join(distinct, ",") + `],"m":[` + strings.Repeat("7,", size/5) + `7],"s":"` + strings.Repeat("a", 10*size) +
		`","deep":` + strings.Repeat("[", 50) + strings.Repeat("]", 50) + `,"k":"` + strings.Repeat("(a|b)*", 100) + `","nul":null}`
	a, b := strings.Repeat("a", 900), strings.Repeat("b", 900)
	for _, expr := range []string{
		"R.attr.l.distinct().size() == 1", "sets.equivalent(R.attr.m, R.attr.l)", "sets.intersects(R.attr.m, R.attr.l)", "sets.contains(R.attr.l, R.attr.m)",
		"R.attr.l.all(x, R.attr.l.all(y, y == x || true))", "R.attr.l.map(x, R.attr.l).size() == 1 && 1 / 0 == 1 || 1 / 0 == 2", "lists.range(1000).map(x, R.attr.l).flatten().size() == 1",
		"lists.range(1000).all(x, lists.range(1000).all(y, true))", "lists.range(1000000000).size() > 0", "R.attr.deep.flatten(1000000).size() == 0 && 1 / 0 == 1",
		fmt.Sprintf("'%s'.replace('a', '%s').replace('b', '%s').size() > 0", a, b, b), "R.attr.s.replace('a', R.attr.s).size() > 0", "R.attr.s.replace('', R.attr.s).size() > 0",
		"lists.range(1000).map(x, R.attr.s).join('').size() > 0", "lists.range(1000).map(x, 'a').join(R.attr.s).size() > 0",
		fmt.Sprintf("'%s'.format([R.attr.s]).size() > 0", strings.Repeat("%s", 1000)), "'%.1000000000f'.format([1.0]).size() > 0",
		"R.attr.s.matches('(((a{1,30}b?)*c?)*d?)*$') && false == true && 1 / 0 == 1 || 1 / 0 == 2",
		"R.attr.s.matches(R.attr.s)", "R.attr.k.matches(R.attr.k + '(')",
		"R.attr.nul.x == 1", "R.attr.deep[0][0][0].x", "R.attr.l[-1] == 1",
		"R.attr.l[9223372036854775807] == 1", "9223372036854775807 + R.attr.l[1] > 0", "-9223372036854775808 / (0 - R.attr.l[1]) > 0", "R.attr.l[1] % R.attr.l[0] == 0",
		"R.attr.s + R.attr.l == ''", "R.attr.s < R.attr.l", "R.attr['\\u202e'] == 1", "'\\U0001F600'.charAt(7) == ''", "int(R.attr.s) == 1", "timestamp(R.attr.s) > timestamp('2020-01-01T00:00:00Z')",
		"duration(R.attr.s) > duration('1s')", "R.attr.l.sortBy(x, R.attr.m)[0] == 1", "dyn(R.attr.l).x.y.z", "math.greatest(R.attr.s, 1) == 1", "R.attr.s.substring(5, 2) == ''",
	} {
		if _, faults := compileExpression(expr); faults != nil {
			t.Logf("%.80s: refused when it is written: %v", expr, faults)
			continue
		}
		if granted, denied, v := outcomeOf(t, expr, args); granted || !denied {
			t.Errorf("%.80s: grant matches %v, deny matches %v: %.200v", expr, granted, denied, v)
		}
	}
	// Linear patterns end whatever they find.
	for _, expr := range []string{"R.attr.s.matches('(a|aa)+$')", "R.attr.s.matches('(.*)(.*)(.*)(.*)(.*)(.*)(.*)[b]$')", "R.attr.s.matches(R.attr.k)", "lists.range(1000).all(x, R.attr.s.contains('b') == false)", "lists.range(3).exists(x, R.attr.s.matches('a+b'))"} {
		outcomeOf(t, expr, args)
	}
	// What is honest is not hindered by any of it.
	for _, expr := range []string{
		"R.attr.s.contains('aaaaaaaaaaaaaaaaaaaaaaaab') == false", "R.attr.s.startsWith('a') && R.attr.s.size() > 1000", "!R.attr.s.matches('^b+')", "42 in R.attr.m == false",
		"sets.contains(R.attr.m, [7])", "lists.range(100).all(x, x < 100)", "R.attr.k.matches('^[(a|b)*]+$')", "'%s-%d'.format(['a', 1]) == 'a-1'", "['a','b'].join('-') == 'a-b'",
		"'aXb'.replace('X', '-') == 'a-b'", "[1,1].distinct() == [1]", "[[1],[2]].flatten() == [1,2]", "'ab'.matches('a' + 'b')", "'aaa'.replace('a', 'b', 1) == 'baa'", "[3,1].sort() == [1,3]",
		"sets.equivalent([1,2],[2,1]) && sets.intersects([1],[1])",
	} {
		if granted, _, v := outcomeOf(t, expr, args); !granted {
			t.Errorf("%s: %+v", expr, v)
		}
	}
}

// A guard without an implementation behind it would be no guard.
func TestGuardsAreBound(t *testing.T) {
	newest := map[string]bool{"hasOnly": true, "hasAny": true, "hasAll": true, "hasExactly": true}
	declared := environment().Functions()
	for name := range guards {
		if _, ok := declared[name]; !ok && !newest[name] {
			t.Errorf("no function %s", name)
		}
	}
	bound := bindings()
	for _, overload := range []string{"list_join", "list_join_string", "string_replace_string_string", "string_replace_string_string_int", overloads.Matches} {
		if bound[overload] == nil {
			t.Errorf("no implementation of %s among %d", overload, len(bound))
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	s := compile(t, active(
		when(grant("g", "tools/call:*"), "R.attr.n > 1 && R.attr.l.exists(x, x == R.attr.n)"), when(deny("d", "tools/call:y"), "P.id == 'u-1' && R.attr.n == 3"),
	))
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			for j := range 200 {
				n := j % 5
				d := s.Decide(t.Context(), tool([]string{"x", "y"}[i%2], fmt.Sprintf(`{"n":%d,"l":[1,2,3]}`, n)))
				if want := (n == 2 || n == 3) && (i%2 == 0 || n != 3); (d.Effect == Allow) != want {
					t.Errorf("n = %d: %+v", n, d)
				}
				if v := s.View(t.Context(), sales); !v.Tool("x") || !v.Tool("y") || v.Prompt("x") {
					t.Error("a view is wrong")
				}
			}
		})
	}
	wait.Wait()
}
