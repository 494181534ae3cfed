//go:build race

package engine

// raceEnabled: under the race detector sync.Pool forgets at random, so allocations cannot be counted.
const raceEnabled = true
