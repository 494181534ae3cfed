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
	most         int64     // of what those gave
	last, joined time.Time // when the last look was asked for, and when the first since this node was away was answered
}

// count is how many nodes were last known, at least 1.
func (c *census) count() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.nodes, 1)
}

// told takes what a look gave that was asked for then. More nodes are believed at once; fewer when looks agree, and not
// while others may be on their way back as this one is.
func (c *census) told(nodes int64, asked, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := asked.Sub(c.last)
	if c.away(now) {
		c.joined, c.fewer, c.most = now, 0, 0
	}
	c.last = asked
	if nodes < c.nodes {
		c.most = max(c.most, nodes)
		if c.fewer == 0 || since >= beatInterval/2 { // two looks at one moment see the same
			c.fewer++
		}
		if c.fewer < fewerLooks || now.Sub(c.joined) < joinTime {
			return
		}
		nodes = c.most
	}
	c.nodes, c.fewer, c.most = nodes, 0, 0
}

// hold has fewer nodes not be believed for as long as after a node has come.
func (c *census) hold(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.joined, c.fewer, c.most = now, 0, 0
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
