package app

import "testing"

func TestLifetimeClosesOnceAfterRetirementAndTheLastPin(t *testing.T) {
	closed := 0
	l := lifetime{close: func() { closed++ }}
	for range 2 {
		if !l.pin() {
			t.Fatal("a fresh lifetime refused a pin")
		}
	}
	l.unpin()
	l.retire()
	if closed != 0 {
		t.Fatal("closed under a request")
	}
	if !l.pin() {
		t.Fatal("a stream of the old config could not pin while another one runs")
	}
	l.unpin()
	l.unpin()
	if closed != 1 {
		t.Fatalf("closed %d times", closed)
	}
	if l.pin() {
		t.Fatal("pinned what is closed")
	}
	l.retire()
	if closed != 1 {
		t.Fatalf("closed %d times", closed)
	}
}
