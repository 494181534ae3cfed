package connection

import (
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
