package cluster

import (
	"sync"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	// beatInterval is the interval at which a node says that it lives. The others know within this time that a node has
	// come. They know within 2 s that one has died: storage.NodeLife and two looks.
	beatInterval = 400 * time.Millisecond
	// fewerLooks is the number of successive looks that must show fewer nodes before that is believed. After a pause of
	// the server, the first node to beat finds itself alone.
	fewerLooks = 2
	// joinTime is the time after which every other node counts a node that has come, or was away, and leases from
	// before that have ended.
	joinTime = 2 * time.Second
)

// census counts the living nodes, as far as this node knows.
type census struct {
	mu           sync.Mutex
	nodes        int64
	fewer        int       // successive looks that showed fewer nodes
	most         int64     // the largest number in those looks
	last, joined time.Time // start of the last look; time of the first answer since this node was away
}

// count returns the last known number of nodes, at least 1.
func (c *census) count() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(c.nodes, 1)
}

// told records the result of a look that was asked for at that time. More nodes are believed at once. Fewer are
// believed when looks agree, and not while other nodes may still be on their way back, as this one is.
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

// hold delays the belief in fewer nodes for as long as after a node has come.
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

// away reports whether other nodes may have forgotten this one. The caller holds mu.
func (c *census) away(now time.Time) bool {
	return c.last.IsZero() || now.Sub(c.last) > storage.NodeLife
}
