package engine

// outcome is the set of possible results of a condition: yes, no, and broken (it cannot be evaluated). For a call it
// holds one of them. In a list, where arguments are unknown, it may hold several.
type outcome uint8

const (
	no outcome = 1 << iota
	yes
	broken

	anything = no | yes | broken
)

// grants reports whether a grant with this condition can match.
func (o outcome) grants() bool { return o&yes != 0 }

// denies reports whether a deny with this condition is sure to match. A broken condition counts as a match.
func (o outcome) denies() bool { return o&no == 0 }

// and combines the outcomes of two conditions. The result is no if one is no, otherwise broken if one is broken,
// otherwise yes. The order of the two does not matter.
func (o outcome) and(other outcome) outcome {
	out := (o | other) & no
	if o&broken != 0 && other&^no != 0 || other&broken != 0 && o&^no != 0 {
		out |= broken
	}
	return out | o&other&yes
}

// not turns yes into no and no into yes. It leaves broken.
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
