package listeners

import (
	"slices"
	"testing"
)

func TestListeners(t *testing.T) {
	t.Parallel()
	var listeners List[int]
	var told []int
	first := listeners.Add(func(n int) { told = append(told, n) })
	second := listeners.Add(func(n int) { told = append(told, 10*n) })
	listeners.Notify(1)
	first()
	first() // is harmless
	listeners.Notify(2)
	second()
	listeners.Notify(3)
	if !slices.Equal(told, []int{1, 10, 20}) {
		t.Errorf("told %v", told)
	}
	if len(listeners.all) != 0 {
		t.Errorf("%d are left", len(listeners.all))
	}
}
