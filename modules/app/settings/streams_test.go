package settings

import (
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"
)

func TestStreamBounds(t *testing.T) {
	minutes := func(n float64) caddy.Duration { return caddy.Duration(n * float64(time.Minute)) }
	var standard *Streams
	if diff := cmp.Diff(Streams{MaxPerUser: 100, Max: 10_000, Idle: minutes(5), Drain: minutes(0.5), Heartbeat: minutes(0.25)}, standard.WithDefaults()); diff != "" {
		t.Errorf("defaults (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(Streams{MaxPerUser: 3, Max: 10_000, Idle: minutes(5), Drain: minutes(2), Heartbeat: minutes(0.25)},
		(&Streams{MaxPerUser: 3, Drain: minutes(2)}).WithDefaults()); diff != "" {
		t.Errorf("beside what is set (-want +got)\n%s", diff)
	}
	if err := standard.Check(); err != nil {
		t.Error(err)
	}
	for refused, s := range map[string]Streams{
		"max is -1":            {Max: -1},
		"max_per_user is 1000": {MaxPerUser: 10_000_001},
		"idle is -1ns":         {Idle: -1},
		"drain is 1ms":         {Drain: caddy.Duration(time.Millisecond)},
		"heartbeat is 24h0m1s": {Heartbeat: caddy.Duration(24*time.Hour + time.Second)},
	} {
		if err := s.Check(); err == nil || !strings.Contains(err.Error(), "streams: "+refused) {
			t.Errorf("%s: %v", refused, err)
		}
	}
}
