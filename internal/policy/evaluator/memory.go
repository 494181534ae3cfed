package evaluator

import (
	"fmt"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/policy/engine"
)

const (
	// keptServers is the number of servers that are kept in memory, each about 1 KiB.
	keptServers = 50_000
	// keptRules is the number of rules of compiled policies that are kept; one with a condition takes some KiB.
	keptRules = 200_000
)

// Memory holds the organizations' servers and their compiled policies. It outlives configurations.
type Memory struct {
	epochs *cache.Epochs
	// servers holds the servers by slug, each with the rules for calls to it.
	servers  *cache.Cache[*known]
	compiled *cache.Cache[compiled]
}

// compiled holds the compiled policies of a server, or the reason why they cannot be compiled.
type compiled struct {
	set   *engine.Set
	err   error
	rules int
}

// NewMemory makes a memory. The store's OnChange bumps epochs.
func NewMemory(epochs *cache.Epochs) (*Memory, error) {
	servers, err := cache.New(epochs, cache.Options[*known]{Entries: keptServers})
	if err != nil {
		return nil, fmt.Errorf("making the cache of servers: %w", err)
	}
	sets, err := cache.New(epochs, cache.Options[compiled]{
		Entries: keptServers, MaxCost: keptRules, Cost: func(c compiled) int64 { return int64(c.rules) },
	})
	if err != nil {
		servers.Close()
		return nil, fmt.Errorf("making the cache of compiled policies: %w", err)
	}
	return &Memory{epochs: epochs, servers: servers, compiled: sets}, nil
}

// Close frees the memory. The evaluators that use it find no servers afterwards.
func (m *Memory) Close() {
	m.servers.Close()
	m.compiled.Close()
}
