package coordinate

import (
	"sync"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	// beatInterval is how often a node says that it lives. The others know that one has come within this time, and that one
	// has died within 2 s: storage.NodeLife and two looks.
	beatInterval = 400 * time.Millisecond
	// fewerLooks is how many looks in a row have to give fewer nodes before that is believed: after a pause of the server
	// the first node to beat finds itself alone.
	fewerLooks = 2
	// joinTime is how long after a node has come, or was away, every other one counts it, and what they leased before that
	// has ended.
	joinTime = 2 * time.Second
)

// census is how many nodes live, as far as this one knows.
type census struct {
	mu           sync.Mutex
	nodes        int64
	fewer        int       // looks in a row that gave fewer nodes
	last, joined time.Time // the last look, and the first one since this node was away
}

// count is how many nodes were last known, at least 1.
func (c *census) count() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.nodes, 1)
}

// told takes what a look gave. More nodes are believed at once; fewer when looks agree, and not while others may be on
// their way back as this one is.
func (c *census) told(nodes int64, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away(now) {
		c.joined, c.fewer = now, 0
	}
	c.last = now
	if nodes < c.nodes {
		c.fewer++
		if c.fewer < fewerLooks || now.Sub(c.joined) < joinTime {
			return
		}
	}
	c.nodes, c.fewer = nodes, 0
}

// settled reports whether all nodes count this one, and have done so for long enough.
func (c *census) settled(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.away(now) && now.Sub(c.joined) >= joinTime
}

// away reports whether other nodes may have forgotten this one. mu is held.
func (c *census) away(now time.Time) bool {
	return c.last.IsZero() || now.Sub(c.last) > storage.NodeLife
}
