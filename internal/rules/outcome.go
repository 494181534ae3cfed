package rules

// outcome is what a condition can come out as: a set of yes, no and broken (it cannot be evaluated). Of a call it is one
// of them; in a list, where arguments are not known, it may be several.
type outcome uint8

const (
	no outcome = 1 << iota
	yes
	broken

	anything = no | yes | broken
)

// grants: a grant with this condition can match.
func (o outcome) grants() bool { return o&yes != 0 }

// denies: a deny with this condition matches for sure, a broken one included.
func (o outcome) denies() bool { return o&no == 0 }

// and is what two conditions come out as together: no when one is, else broken when one is, else yes. It does not depend
// on their order.
func (o outcome) and(other outcome) outcome {
	out := (o | other) & no
	if o&broken != 0 && other&^no != 0 || other&broken != 0 && o&^no != 0 {
		out |= broken
	}
	return out | o&other&yes
}

// not turns yes into no and leaves broken.
func (o outcome) not() outcome {
	out := o & broken
	if o&yes != 0 {
		out |= no
	}
	if o&no != 0 {
		out |= yes
	}
	return out
}
