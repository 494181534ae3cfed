package accounts

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/llm/route"
)

// keptModels is the number of organizations whose models are kept in memory.
const keptModels = 10_000

// Memory holds the models of organizations, and the failures of their accounts. It outlives configurations: a new
// configuration must not send calls to a provider that failed under the old one.
type Memory struct {
	models *cache.Cache[*Models]
	// breakers keep calls away from failing providers.
	breakers *route.Breakers
	// noStreamOptions holds the models that do not know stream_options.
	noStreamOptions *route.Refusals
	// catalogs numbers the catalogues that use this memory.
	catalogs atomic.Uint64
}

// NewMemory makes a memory. The store's OnChange bumps epochs. now is the clock.
func NewMemory(epochs *cache.Epochs, now func() time.Time) (*Memory, error) {
	models, err := cache.New(epochs, cache.Options[*Models]{Entries: keptModels})
	if err != nil {
		return nil, fmt.Errorf("making the cache of models: %w", err)
	}
	return &Memory{models: models, breakers: route.NewBreakers(route.Options{Now: now}), noStreamOptions: route.NewRefusals(now)}, nil
}

// Close frees the memory. The catalogues that use it find no models afterwards.
func (m *Memory) Close() { m.models.Close() }
