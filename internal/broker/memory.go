package broker

import (
	"fmt"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
)

// maxHeld is about how many connections are kept unsealed in memory.
const maxHeld = 50_000

// Memory is what brokers know besides what their store holds. A gateway whose configuration changes has a broker for the
// old one and another for the new one: they share it, so that the new one knows which tokens are not stored yet, and which
// providers to leave alone.
type Memory struct {
	held      *cache.Cache[*held]
	epochs    *cache.Epochs
	retries   retries
	unsaved   unsaved
	unstored  unstored
	sightings sightings
	proofs    proofs
	wants     wants
	clients   keyedLock
}

// NewMemory makes a memory. epochs are bumped by the store's OnChange; now is the clock.
func NewMemory(epochs *cache.Epochs, now func() time.Time) (*Memory, error) {
	credentials, err := cache.New(epochs, cache.Options[*held]{Entries: maxHeld, Now: now})
	if err != nil {
		return nil, fmt.Errorf("making the cache of credentials: %w", err)
	}
	return &Memory{held: credentials, epochs: epochs}, nil
}

// Close frees the memory. Brokers that use it must be closed.
func (m *Memory) Close() { m.held.Close() }
