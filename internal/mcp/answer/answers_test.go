package answer

import (
	"testing"

	"github.com/durward-gateway/durward/internal/proxy/sse"
)

// TestReplayedBeginning checks that the event with which a stream of the TypeScript SDK began comes as {} when it is
// replayed. Its data does not pass, its id does, and it is not reported as an answer, which others may have written.
func TestReplayedBeginning(t *testing.T) {
	for name, tc := range map[string]struct {
		event sse.Event
		drops bool
	}{
		"replayed":      {sse.Event{Data: []byte("{}"), HasData: true, ID: "s_1", HasID: true}, false},
		"without an id": {sse.Event{Data: []byte("{}"), HasData: true}, true},
		"no message":    {sse.Event{Data: []byte(`{"a":1}`), HasData: true, ID: "s_1", HasID: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dropped := false
			a := Answers{Dropped: func(Reason) { dropped = true }}
			if data, ok := a.Event(&tc.event); data != nil || !ok || dropped != tc.drops {
				t.Errorf("%q, %v, told: %v", data, ok, dropped)
			}
		})
	}
}
