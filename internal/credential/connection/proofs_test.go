package connection

import (
	"testing"
	"time"
)

// TestProofs checks for how long, and for which client, a provider is believed to know our client.
func TestProofs(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var p proofs
	if p.recent(ofO("server"), "client", now) || p.recent(ofO("server"), "", now) {
		t.Error("nobody has proven anything")
	}
	p.note(ofO("server"), "client", now)
	for name, tc := range map[string]struct {
		server serverKey
		client string
		after  time.Duration
		want   bool
	}{
		"at once":        {ofO("server"), "client", 0, true},
		"nearly too old": {ofO("server"), "client", proofLifetime - 1, true},
		"too old":        {ofO("server"), "client", proofLifetime, false},
		"another client": {ofO("server"), "another", 0, false},
		"another server": {ofO("another"), "client", 0, false},
		"another tenant": {serverKey{"other", "server"}, "client", 0, false},
	} {
		if got := p.recent(tc.server, tc.client, now.Add(tc.after)); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if p.forget(ofO("server")); p.recent(ofO("server"), "client", now) {
		t.Error("it is not forgotten")
	}
}

// ofO returns the key of a server of the organization o.
func ofO(id string) serverKey { return serverKey{"o", id} }
