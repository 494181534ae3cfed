package engine

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cel.dev/cel-go/common/overloads"
)

// init makes the time limits long. The tests check limits without the clock, which varies on a slow machine.
func init() { evaluationTime, listTime = time.Hour, time.Hour }

// TestM20HostileExpressions checks that any expression with any arguments ends soon, and that it denies if it cannot be
// evaluated. Without the limits some of these take hours or all memory. A failure then shows as a test that does not
// end.
func TestM20HostileExpressions(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes this twenty times slower: see make allocations")
	}
	const size = 100_000
	distinct := make([]string, size)
	for i := range distinct {
		distinct[i] = strconv.Itoa(i)
	}
	args := `{"l":[` + strings.Join(distinct, ",") + `],"m":[` + strings.Repeat("7,", size/5) + `7],"s":"` + strings.Repeat("a", 10*size) +
		`","deep":` + strings.Repeat("[", 50) + strings.Repeat("]", 50) + `,"k":"` + strings.Repeat("(a|b)*", 100) + `","nul":null,"half":"` + strings.Repeat("a", 5*size) + `b","w":["` + strings.Repeat(`a","`, size) + `"],"rows":[` + strings.Repeat("["+strings.Repeat("1,", size/100)+"1],", 100) + `[2]]}`
	a, b := strings.Repeat("a", 900), strings.Repeat("b", 900)
	hostile := []string{
		"R.attr.l.distinct().size() == 1", "sets.equivalent(R.attr.m, R.attr.l)", "sets.intersects(R.attr.m, R.attr.l)", "sets.contains(R.attr.l, R.attr.m)",
		"R.attr.l.all(x, R.attr.l.all(y, y == x || true))", "R.attr.l.map(x, R.attr.l).size() == 1 && 1 / 0 == 1 || 1 / 0 == 2", "lists.range(1000).map(x, R.attr.l).flatten().size() == 1",
		"lists.range(1000).all(x, lists.range(1000).all(y, true))", "lists.range(1000000000).size() > 0", "R.attr.deep.flatten(1000000).size() == 0 && 1 / 0 == 1",
		fmt.Sprintf("'%s'.replace('a', '%s').replace('b', '%s').size() > 0", a, b, b), "R.attr.s.replace('a', R.attr.s).size() > 0", "R.attr.s.replace('', R.attr.s).size() > 0",
		"lists.range(1000).map(x, R.attr.s).join('').size() > 0", "lists.range(1000).map(x, 'a').join(R.attr.s).size() > 0",
		fmt.Sprintf("'%s'.format([R.attr.s]).size() > 0", strings.Repeat("%s", 1000)), "'%.1000000000f'.format([1.0]).size() > 0",
		"R.attr.s.matches('(((a{1,30}b?)*c?)*d?)*$') && false == true && 1 / 0 == 1 || 1 / 0 == 2",
		// The search of the library tries every place, and the cost limit sees that only afterwards.
		"R.attr.s.lastIndexOf(R.attr.half) == 0 || true", "R.attr.s.indexOf(R.attr.half) == 0 || true", "R.attr.s.indexOf(R.attr.half, 1) == 0 || true",
		"R.attr.s.lastIndexOf(R.attr.half, 700000) == 0 || true",
		"R.attr.rows.distinct().size() == 2", "sets.contains(R.attr.rows, R.attr.rows)",
		// Functions that look at all of their arguments, each time.
		"R.attr.l.all(x, R.attr.s.reverse() != '')", "R.attr.l.all(x, R.attr.l.reverse()[0] != '')", "R.attr.l.all(x, bytes(R.attr.s).size() > 0)", "R.attr.l.all(x, bytes(R.attr.s) + b'x' != b'')",
		"R.attr.l.all(x, math.greatest(R.attr.m) == 7)", "R.attr.l.all(x, R.attr.s.size() > 0)", "R.attr.l.all(x, R.attr.s.upperAscii() != '')", "R.attr.l.all(x, R.attr.s.trim() != '')",
		"R.attr.l.all(x, R.attr.s.split('b').size() == 1)", "R.attr.l.all(x, R.attr.m.slice(1, 1000) + R.attr.m != [])", "R.attr.l.all(x, !(R.attr.s in {'a': 1}))",
		"R.attr.l.all(x, strings.quote(R.attr.s) != '')", "R.attr.l.all(x, !R.attr.s.matches('^(a|b)*c'))",
		"R.attr.s.matches(R.attr.s)", "R.attr.k.matches(R.attr.k + '(')",
		"R.attr.nul.x == 1", "R.attr.deep[0][0][0].x", "R.attr.l[-1] == 1",
		"R.attr.l[9223372036854775807] == 1", "9223372036854775807 + R.attr.l[1] > 0", "-9223372036854775808 / (0 - R.attr.l[1]) > 0", "R.attr.l[1] % R.attr.l[0] == 0",
		"R.attr.s + R.attr.l == ''", "R.attr.s < R.attr.l", "R.attr['\\u202e'] == 1", "'\\U0001F600'.charAt(7) == ''", "int(R.attr.s) == 1", "timestamp(R.attr.s) > timestamp('2020-01-01T00:00:00Z')",
		"duration(R.attr.s) > duration('1s')", "R.attr.l.sortBy(x, R.attr.m)[0] == 1", "dyn(R.attr.l).x.y.z", "math.greatest(R.attr.s, 1) == 1", "R.attr.s.substring(5, 2) == ''",
		"R.attr.s.split('').size() > 0", "R.attr.w.sort()[0] == ''", "R.attr.w.sortBy(x, x)[0] == ''",
	}
	for _, expr := range hostile {
		if _, faults := compileExpression(expr); faults != nil {
			t.Logf("%.80s: refused when it is written: %v", expr, faults)
			continue
		}
		if granted, denied, v := outcomeOf(t, expr, args); granted || !denied {
			t.Errorf("%.80s: grant matches %v, deny matches %v: %.200v", expr, granted, denied, v)
		}
	}
	// Linear patterns end for every text.
	for _, expr := range []string{"R.attr.s.matches('(a|aa)+$')", "R.attr.s.matches('(.*)(.*)(.*)(.*)(.*)(.*)(.*)[b]$')", "R.attr.s.matches(R.attr.k)", "lists.range(1000).all(x, R.attr.s.contains('b') == false)", "lists.range(3).exists(x, R.attr.s.matches('a+b'))"} {
		outcomeOf(t, expr, args)
	}
	// The limits do not affect honest expressions.
	for _, expr := range []string{
		"R.attr.s.contains('aaaaaaaaaaaaaaaaaaaaaaaab') == false", "R.attr.s.startsWith('a') && R.attr.s.size() > 1000", "!R.attr.s.matches('^b+')", "42 in R.attr.m == false",
		"sets.contains(R.attr.m, [7])", "lists.range(100).all(x, x < 100)", "R.attr.k.matches('^[(a|b)*]+$')", "'%s-%d'.format(['a', 1]) == 'a-1'", "['a','b'].join('-') == 'a-b'",
		"'aXb'.replace('X', '-') == 'a-b'", "[1,1].distinct() == [1]", "[[1],[2]].flatten() == [1,2]", "'ab'.matches('a' + 'b')", "'aaa'.replace('a', 'b', 1) == 'baa'", "[3,1].sort() == [1,3]",
		"sets.equivalent([1,2],[2,1]) && sets.intersects([1],[1])", "R.attr.s.indexOf('b') == -1 && 'a-b'.lastIndexOf('b') == 2 && 'a-b'.split('-') == ['a', 'b']",
		"lists.range(100).all(x, 'name'.reverse() == 'eman' && [x].size() == 1)", "['b', 'a'].sortBy(x, x) == ['a', 'b'] && b'ab'.size() == 2 && ['a'] + ['b'] == ['a', 'b']",
	} {
		if granted, _, v := outcomeOf(t, expr, args); !granted {
			t.Errorf("%s: %+v", expr, v)
		}
	}
}

// TestGuardsAreBound checks that each guard has an implementation. Without one it would guard nothing.
func TestGuardsAreBound(t *testing.T) {
	newest := map[string]bool{"hasOnly": true, "hasAny": true, "hasAll": true, "hasExactly": true}
	declared := environment().Functions()
	for name := range guards {
		if _, ok := declared[name]; !ok && !newest[name] {
			t.Errorf("no function %s", name)
		}
	}
	bound := bindings()
	for _, overload := range []string{
		"list_join", "list_join_string", "string_replace_string_string", "string_replace_string_string_int", overloads.Matches,
		"string_index_of_string", "string_index_of_string_int", "string_last_index_of_string", "string_last_index_of_string_int", "string_split_string", "string_split_string_int", "sort", "@sortByAssociatedKeys",
	} {
		if bound[overload] == nil {
			t.Errorf("no implementation of %s among %d", overload, len(bound))
		}
	}
}

// TestM20Deadline checks that expressions not bounded by their own length end when their time is over, in loops and
// before each function. Bounded expressions never do.
func TestM20Deadline(t *testing.T) {
	defer func(d time.Duration) { evaluationTime = d }(evaluationTime)
	evaluationTime = 0
	args := `{"n":1,"s":"x","l":[` + strings.Repeat("1,", 2*interruptEvery) + `1]}`
	for expr, over := range map[string]bool{
		"R.attr.l.all(x, x == 1)": true, "R.attr.s.contains('x')": true, "R.attr.s.matches('x')": true, "R.attr.s.matches(R.attr.s)": true, "R.attr.s.size() == 1": true, "R.attr.s.indexOf('x') == 0": true,
		"R.attr.n == 1 && R.attr.s in ['x'] && has(R.attr.s)": false,
	} {
		d := compile(t, active(when(grant("r", "*"), expr))).Decide(t.Context(), tool("x", args))
		if over != (d.Effect == Deny && len(d.Values) == 1 && d.Values[0].Error == errInterrupt.Error()) {
			t.Errorf("%s: %+v", expr, d)
		}
	}
	// One bounded expression does not stop another.
	if d := compile(t, active(when(deny("1", "*"), "R.attr.n == 2"), when(deny("2", "*"), "R.attr.n == 3"), when(grant("3", "*"), "R.attr.n == 1"))).Decide(t.Context(), tool("x", args)); d.Effect != Allow {
		t.Errorf("%+v", d)
	}
	// All conditions of a call share the time.
	d := compile(t, active(when(grant("1", "*"), "R.attr.s.contains('y')"), when(deny("2", "*"), "R.attr.s.size() == 2"), grant("3", "*"))).Decide(t.Context(), tool("x", args))
	if d.Effect != Deny || d.Rule != "2" {
		t.Errorf("%+v", d)
	}
	// Expressions without functions and loops are not started any more, either.
	d = compile(t, active(when(deny("1", "*"), "R.attr.s == R.attr.n"), when(deny("2", "*"), "R.attr.n == R.attr.s"), grant("3", "*"))).Decide(t.Context(), tool("x", args))
	if d.Effect != Deny || d.Rule != "2" {
		t.Errorf("%+v", d)
	}
	evaluationTime = time.Hour
	if d := compile(t, active(when(grant("r", "*"), "R.attr.l.all(x, x == 1)"))).Decide(t.Context(), tool("x", args)); d.Effect != Allow {
		t.Errorf("with time left: %+v", d)
	}
}

// TestM20ListDeadline checks that the items of a list share the time of its conditions. Another list has its own time.
func TestM20ListDeadline(t *testing.T) {
	s := compile(t, active(when(grant("r", "resources/read:*"), `lists.range(1000).all(x, R.attr.uri != string(x))`)))
	view := s.View(t.Context(), sales)
	if !view.Resource("file:///1") || view.spent <= 0 {
		t.Errorf("the first item is hidden, or took no time: %s", view.spent)
	}
	view.spent = listTime
	if view.Resource("file:///2") {
		t.Error("an item is shown for which there is no time left")
	}
	if !s.View(t.Context(), sales).Resource("file:///2") {
		t.Error("another list has no time")
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
