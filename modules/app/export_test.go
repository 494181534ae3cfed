package app

import "github.com/durward-gateway/durward/storage"

// Pooled returns the number of resources that outlive configurations and are held now.
func Pooled() int {
	n := 0
	pool.Range(func(_, _ any) bool {
		n++
		return true
	})
	return n
}

// OpenedStore returns the store that a core's resources hold, beneath the layer that records its writes.
func OpenedStore(c *Core) storage.Store { return c.resources.store }

// Closed reports whether a core is closed: it was retired, and nobody has it pinned.
func Closed(c *Core) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}
