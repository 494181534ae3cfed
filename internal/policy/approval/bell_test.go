package approval

import "testing"

// TestBellForgets checks that nothing is left of calls that no longer wait.
func TestBellForgets(t *testing.T) {
	var b Bell
	var stops []func()
	for _, id := range []string{"a", "a", "b"} {
		_, stop, ok := b.listen(id)
		if !ok {
			t.Fatalf("%s does not wait", id)
		}
		stops = append(stops, stop)
	}
	for n, left := range []int{2, 1, 0} { // number of awaited ids after each stop
		stops[n]()
		if len(b.waiting) != left {
			t.Errorf("%d ids are waited for after %d stops, want %d", len(b.waiting), n+1, left)
		}
	}
}
