package route

import (
	"fmt"
	"testing"
)

func TestRefusals(t *testing.T) {
	c := newClock()
	r := NewRefusals(c.now)
	of := RefusalKey{Key{"org", "provider"}, "m"}
	if r.Has(of) {
		t.Error("known before it was told")
	}
	r.Add(of)
	if !r.Has(of) || r.Has(RefusalKey{Key{"other", "provider"}, "m"}) || r.Has(RefusalKey{of.Key, "n"}) {
		t.Error("not known, or for others")
	}
	c.at = c.at.Add(refusedFor)
	if r.Has(of) {
		t.Error("known for ever")
	}
	for i := range mostRefusals + 1 {
		r.Add(RefusalKey{Model: fmt.Sprint(i)})
	}
	if n := r.refused.Len(); n != mostRefusals || r.Has(RefusalKey{Model: "0"}) || !r.Has(RefusalKey{Model: "1"}) {
		t.Errorf("%d are remembered", n)
	}
}
