package format

import "testing"

// TestTrimZeros checks that zeros at the end are removed, also whole pages of them, and no other zeros.
func TestTrimZeros(t *testing.T) {
	for _, before := range []int{0, 1, pageSize - 1, pageSize, pageSize + 1} {
		for _, zeros := range []int{0, 1, pageSize - 1, pageSize, pageSize + 1, 3 * pageSize} {
			text := make([]byte, before+zeros)
			for i := range before {
				text[i] = 'x'
			}
			if got := len(trimZeros(text)); got != before {
				t.Errorf("of %d bytes and %d zeros %d are left", before, zeros, got)
			}
		}
	}
}
