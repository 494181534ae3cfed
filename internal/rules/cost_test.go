package rules

import (
	"strings"
	"testing"
)

// TestM20Costs: what a loop does with all of a large argument each time is counted, and ends soon.
func TestM20Costs(t *testing.T) {
	list := "[" + strings.TrimSuffix(strings.Repeat("7,", 30_000), ",") + ",8]"
	arguments := `{"l":` + list + `,"m":{"k":` + list + `},"s":"` + strings.Repeat("x", 1<<20) + `","few":[1,2,3]}`
	for expr, over := range map[string]bool{
		"R.attr.l.all(x, !(9 in R.attr.l))":                       true,
		"R.attr.l.all(x, !(R.attr.s in R.attr.l))":                true,
		"R.attr.l.all(x, R.attr.l == R.attr.l)":                   true,
		"R.attr.l.all(x, R.attr.m == R.attr.m)":                   true,
		"R.attr.l.all(x, R.attr == R.attr)":                       true,
		"R.attr.l.all(x, !(R.attr.m != R.attr.m))":                true,
		"R.attr.l.all(x, (R.attr.s + R.attr.s).size() > 0)":       true,
		"R.attr.l.all(x, R.attr.s <= R.attr.s)":                   true,
		"R.attr.l.all(x, R.attr.s.reverse() != '')":               true,
		"R.attr.l.all(x, R.attr.l.size() > 0)":                    false,
		"R.attr.l.all(x, R.attr.l[0] == 7 && type(x) == int)":     false,
		"R.attr.l.all(x, R.attr.s.startsWith('x'))":               false,
		"R.attr.l.all(x, (R.attr.l + R.attr.l).size() > 0)":       true,
		"R.attr.l.map(x, x).size() > 0":                           false,
		"R.attr.l.all(x, R.attr.l != [x])":                        false,
		"R.attr.l.all(x, !(R.attr.m in []))":                      false,
		"R.attr.l.all(x, x in [7, 8])":                            false,
		"R.attr.few.all(x, x in R.attr.few && x != R.attr.l)":     false,
		"8 in R.attr.l && R.attr.m == R.attr.m && 'x' < R.attr.s": false,
	} {
		t.Run(expr, func(t *testing.T) {
			s := compile(t, active(when(grant("r", "*"), expr)))
			d := s.Decide(t.Context(), tool("x", arguments))
			if over != (len(d.Values) == 1 && d.Values[0].Error == errCost.Error()) || over == (d.Effect == Allow) {
				t.Errorf("%v %+v", d.Effect, d.Values)
			}
		})
	}
}
