package route

import (
	"fmt"
	"testing"
	"time"
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
	for i := range 2 * mostRefusals {
		r.Add(RefusalKey{Model: fmt.Sprint(i)})
	}
	if len(r.until) != mostRefusals || r.Has(of) || !r.Has(RefusalKey{Model: "1"}) {
		t.Errorf("%d are remembered", len(r.until))
	}
	c.at = c.at.Add(2 * time.Hour)
	r.Add(of)
	if len(r.until) != 1 || !r.Has(of) {
		t.Errorf("%d are remembered", len(r.until))
	}
}
