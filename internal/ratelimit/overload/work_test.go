package overload

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestRefusedWork checks which work is refused at each level of memory shortage, and when its body has no room.
func TestRefusedWork(t *testing.T) {
	const most = 1 << 20
	for _, tc := range []struct {
		name string
		work Work
		from Level // refused from this level on
	}{
		{"a small body", Work{Body: largeBody, Most: most}, Critical},
		{"no body", Work{Most: most}, Critical},
		{"a large body", Work{Body: largeBody + 1, Most: most}, High},
		{"a body of unknown length", Work{Body: -1, Most: most}, High},
		{"a body above the limit", Work{Body: most + 1, Most: most}, High},
		{"a stream", Work{Lasting: true, Most: most}, High},
	} {
		for level, used := range map[Level]int64{Calm: 10, High: 90, Critical: 99} {
			m := New(Memory{Limit: 100 << 30, Used: func() int64 { return used << 30 }, Collect: func() {}}, time.Now, nil)
			if got := m.Refuses(t.Context(), tc.work); got != (level >= tc.from) {
				t.Errorf("%s at level %v: refused %v", tc.name, level, got)
			}
		}
		if (*Meter)(nil).Refuses(t.Context(), tc.work) {
			t.Errorf("%s is refused without a meter", tc.name)
		}
	}
}

// TestRoomOfBodies checks that a large body takes twice its size until its request ends, and one of unknown length twice
// the limit.
func TestRoomOfBodies(t *testing.T) {
	const most = 10 << 20
	for _, tc := range []struct {
		name  string
		work  Work
		rooms int // of 85 MiB
	}{
		{"a large body", Work{Body: 5 << 20, Most: most}, 8},
		{"a body of unknown length", Work{Body: -1, Most: most}, 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := New(Memory{Limit: 100 << 20, Used: func() int64 { return 0 }, Collect: func() {}}, time.Now, nil)
			ctx, end := context.WithCancel(t.Context())
			admitted := 0
			for !m.Refuses(ctx, tc.work) {
				admitted++
			}
			if admitted != tc.rooms {
				t.Errorf("%s: %d bodies are admitted, want %d", tc.name, admitted, tc.rooms)
			}
			if m.Refuses(ctx, Work{Body: most + 1, Most: most}) {
				t.Error(tc.name + ": a body that is refused anyway needs room")
			}
			end()
			synctest.Wait()
			if m.Refuses(t.Context(), tc.work) {
				t.Error(tc.name + ": the room is not given back")
			}
		})
	}
}
