package pinning

import (
	"fmt"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/mcp/toolpin"
)

const (
	keptPins     = 10_000    // servers whose pins are in memory
	keptPinNames = 1_000_000 // and tools of them all together
	keptWatches  = 10_000    // servers whose unwritten observations are in memory
)

// Memory holds the known tools of all servers of a store. It outlives configurations.
type Memory struct {
	pins *cache.Cache[*toolpin.Pins]

	mu      sync.Mutex
	watches map[watchKey]*toolpin.Watch
}

type watchKey struct{ organization, server string }

// NewMemory makes a memory. The store's OnChange bumps epochs.
func NewMemory(epochs *cache.Epochs) (*Memory, error) {
	pins, err := cache.New(epochs, cache.Options[*toolpin.Pins]{
		Entries: keptPins, MaxCost: keptPinNames, Cost: func(p *toolpin.Pins) int64 { return int64(p.Len()) + 1 },
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of tool pins: %w", err)
	}
	return &Memory{pins: pins, watches: make(map[watchKey]*toolpin.Watch)}, nil
}

// Close frees the memory. The pinners that use it find no pins afterwards.
func (m *Memory) Close() { m.pins.Close() }

func (m *Memory) watch(key watchKey, now time.Time) *toolpin.Watch {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.watches[key]; w != nil {
		return w
	}
	if len(m.watches) >= keptWatches {
		m.forget(now)
	}
	w := new(toolpin.Watch)
	m.watches[key] = w
	return w
}

// forget makes room: it drops entries without knowledge first, and otherwise any one.
func (m *Memory) forget(now time.Time) {
	for key, w := range m.watches {
		if w.Idle(now) {
			delete(m.watches, key)
		}
	}
	for key := range m.watches {
		if len(m.watches) < keptWatches {
			return
		}
		delete(m.watches, key)
	}
}
