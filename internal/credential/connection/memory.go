package connection

import (
	"fmt"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
)

// maxHeld is the approximate maximum number of connections kept unsealed in memory.
const maxHeld = 50_000

// Memory holds the knowledge of brokers that is not in their store. When the configuration of a gateway changes, it has
// one broker for the old configuration and another for the new one. They share the Memory, so that the new broker knows
// which tokens are not stored yet and which providers to leave alone.
type Memory struct {
	held      *cache.Cache[*held]
	epochs    *cache.Epochs
	retries   retries
	unsaved   unsaved
	unstored  unstored
	sightings sightings
	proofs    proofs
	wants     wants
	silences  silences
	clients   keyedLock
}

// NewMemory makes a Memory. The store's OnChange bumps epochs. now is the clock.
func NewMemory(epochs *cache.Epochs, now func() time.Time) (*Memory, error) {
	credentials, err := cache.New(epochs, cache.Options[*held]{Entries: maxHeld, Now: now})
	if err != nil {
		return nil, fmt.Errorf("making the cache of credentials: %w", err)
	}
	return &Memory{held: credentials, epochs: epochs}, nil
}

// Close frees the memory. The brokers that use it must be closed before.
func (m *Memory) Close() { m.held.Close() }
