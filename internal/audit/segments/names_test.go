package segments

import (
	"testing"
)

// TestSegmentNumber checks that a segment has one name.
func TestSegmentNumber(t *testing.T) {
	for name, want := range map[string]int{"00000001": 1, "99999999": 99999999, "100000000": 100000000, "1073741823": MaxNumber - 1, "1073741824": 0, "9223372036854775807": 0, "00000000": 0, "1": 0, "000000001": 0, "-0000001": 0, "store": 0, "": 0, "+0000001": 0} {
		if got, ok := Number(name); ok != (want > 0) || got != want {
			t.Errorf("%q is segment %d, %v", name, got, ok)
		}
	}
}
