package route

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestOrder(t *testing.T) {
	for _, tc := range []struct {
		name    string
		weights []int
		draw    int64
		want    []int
	}{
		{"none", nil, 0, []int{}},
		{"one", []int{0}, 0, []int{0}},
		{"no weights", []int{0, 0, 0}, 0, []int{0, 1, 2}},
		{"the first share", []int{3, 1}, 2, []int{0, 1}},
		{"the second share", []int{3, 1}, 3, []int{1, 0}},
		{"weight 0 never begins", []int{0, 1, 0}, 0, []int{1, 0, 2}},
		{"negative is 0", []int{-5, 2}, 0, []int{1, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Order(tc.weights, func(int64) int64 { return tc.draw })); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOrderShares checks over all draws that each target begins exactly as often as its weight says. Every order has
// every target once, and the targets that did not begin are in their own order.
func TestOrderShares(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(0, 20), 1, 8).Draw(t, "weights")
		sum := 0
		for _, w := range weights {
			sum += w
		}
		begun := make([]int, len(weights))
		for at := range int64(max(sum, 1)) {
			order := Order(weights, func(n int64) int64 {
				if n != int64(sum) {
					t.Fatalf("drawn of %d, want %d", n, sum)
				}
				return at
			})
			begun[order[0]]++
			rest := slices.Clone(order[1:])
			if !slices.IsSorted(rest) {
				t.Fatalf("order %v", order)
			}
			slices.Sort(order)
			for i := range order {
				if order[i] != i {
					t.Fatalf("order %v", order)
				}
			}
		}
		want := weights
		if sum == 0 {
			want = make([]int, len(weights))
			want[0] = 1
		}
		if diff := cmp.Diff(want, begun); diff != "" {
			t.Fatal(diff)
		}
	})
}
