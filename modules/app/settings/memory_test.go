package settings

import "testing"

func TestMemoryLimit(t *testing.T) {
	for n, good := range map[int64]bool{0: true, -1: false, 1<<20 - 1: false, 1 << 20: true, 1 << 50: true, 1<<50 + 1: false} {
		if err := CheckMemoryLimit(n); (err == nil) != good {
			t.Errorf("%d: %v", n, err)
		}
	}
}
