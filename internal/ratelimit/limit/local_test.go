package limit_test

import (
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/ratelimit/limit/limittest"
	"github.com/durward-gateway/durward/internal/ratelimit/window"
)

func TestLocal(t *testing.T) {
	limittest.Run(t, func(*testing.T) limittest.Nodes {
		var mu sync.Mutex
		now := time.Unix(1_800_000_000, 0)
		c := limit.Local{Counters: window.New(func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		})}
		return limittest.Nodes{All: []limit.Coordinator{c}, Turn: func(d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			now = now.Add(d)
		}}
	})
}
