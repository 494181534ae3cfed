package route

// Order returns the order in which targets are tried, as indexes of weights. The first is drawn by weight, which gives
// each target its share of the calls. When all weights are 0 it is the first target. The others follow in their own
// order, because they only step in and do not share. draw returns a number from 0 to below n. Negative weights count as
// 0.
func Order(weights []int, draw func(n int64) int64) []int {
	order := make([]int, 0, len(weights))
	first := begin(weights, draw)
	if first >= 0 {
		order = append(order, first)
	}
	for i := range weights {
		if i != first {
			order = append(order, i)
		}
	}
	return order
}

// begin returns the target that is tried first; -1 when there is none.
func begin(weights []int, draw func(n int64) int64) int {
	var sum int64
	for _, w := range weights {
		sum += int64(max(w, 0))
	}
	if sum == 0 {
		return min(0, len(weights)-1)
	}
	at := draw(sum)
	for i, w := range weights {
		if at -= int64(max(w, 0)); at < 0 {
			return i
		}
	}
	return 0 // not reached: draw stays below n
}
