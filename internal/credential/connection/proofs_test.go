package connection

import (
	"fmt"
	"testing"
	"time"
)

// TestProofs checks for how long, and for which client, a provider is believed to know our client.
func TestProofs(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var p proofs
	if p.recent("server", "client", now) || p.recent("server", "", now) {
		t.Error("nobody has proven anything")
	}
	p.note("server", "client", now)
	for name, tc := range map[string]struct {
		server, client string
		after          time.Duration
		want           bool
	}{
		"at once":        {"server", "client", 0, true},
		"nearly too old": {"server", "client", proofLifetime - 1, true},
		"too old":        {"server", "client", proofLifetime, false},
		"another client": {"server", "another", 0, false},
		"another server": {"another", "client", 0, false},
	} {
		if got := p.recent(tc.server, tc.client, now.Add(tc.after)); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if p.forget("server"); p.recent("server", "client", now) {
		t.Error("it is not forgotten")
	}
}

// TestProofsAreFew checks that what is too old makes room for what is new.
func TestProofsAreFew(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var p proofs
	for n := range tooMany - 1 {
		p.note(fmt.Sprint(n), "client", now)
	}
	p.note("young", "client", now.Add(1))
	if n := len(p.seen); n != tooMany {
		t.Fatalf("%d are kept", n)
	}
	p.note("new", "client", now.Add(proofLifetime))
	if n := len(p.seen); n != 2 || !p.recent("new", "client", now.Add(proofLifetime)) || !p.recent("young", "client", now.Add(proofLifetime)) {
		t.Errorf("%d are kept", n)
	}
}
