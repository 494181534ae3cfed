package http1

import (
	"context"
	"slices"
	"sync"
	"time"
)

// key names the connections that can serve the same requests.
type key struct {
	tls  bool
	host string // URL.Host as it is written; two spellings are two hosts
}

// host holds the pool's state for one upstream. It exists while requests use it or connections to it are idle.
type host struct {
	key   key
	idle  []*conn       // oldest first
	users int           // requests that run or wait for a slot
	slots chan struct{} // one for each running request; nil: no limit
}

// pool keeps idle connections, most recently used first per host, so that unused ones age out. Idle ones of all hosts
// are in one list by age. One timer runs the sweep; it exists only from the first idle connection to the sweep that
// finds none.
type pool struct {
	now     func() time.Time
	timeout time.Duration // negative: nothing is kept
	perHost int
	inAll   int
	active  int // per host; 0: no limit

	mu             sync.Mutex
	hosts          map[key]*host
	oldest, newest *conn
	idle           int
	timer          *time.Timer
	closing        bool // CloseIdleConnections was called and no request began since
}

// enter begins a request to a host. When the host has a limit it waits for a slot.
func (p *pool) enter(ctx context.Context, k key) (*host, error) {
	p.mu.Lock()
	p.closing = false
	h := p.hosts[k]
	if h == nil {
		h = &host{key: k}
		if p.active > 0 {
			h.slots = make(chan struct{}, p.active)
		}
		p.hosts[k] = h
	}
	h.users++
	p.mu.Unlock()
	if h.slots == nil {
		return h, nil
	}
	select {
	case h.slots <- struct{}{}:
		return h, nil
	case <-ctx.Done():
		p.mu.Lock()
		p.left(h)
		p.mu.Unlock()
		return nil, context.Cause(ctx)
	}
}

// leave ends a request and keeps its connection c; nil: it was closed. While a host has a limit, only a request that
// finds no idle connection dials, so that idle and busy ones together stay within it.
func (p *pool) leave(h *host, c *conn) {
	var surplus *conn
	p.mu.Lock()
	if c != nil {
		if p.timeout < 0 || p.closing {
			surplus = c
		} else {
			surplus = p.keep(h, c)
		}
	}
	if h.slots != nil {
		<-h.slots
	}
	p.left(h)
	p.mu.Unlock()
	if surplus != nil {
		surplus.close()
	}
}

// keep puts c on top and returns the connection that had to make room, if any.
func (p *pool) keep(h *host, c *conn) (surplus *conn) {
	if len(h.idle) >= p.perHost {
		surplus = h.idle[0]
	} else if p.idle >= p.inAll {
		surplus = p.oldest
	}
	if surplus != nil {
		p.remove(surplus)
	}
	c.host, c.since, c.used = h, p.now(), true
	c.older = p.newest
	if p.newest != nil {
		p.newest.newer = c
	} else {
		p.oldest = c
	}
	p.newest = c
	h.idle = append(h.idle, c)
	p.idle++
	if p.timer == nil {
		p.timer = time.AfterFunc(p.timeout, p.sweep)
	}
	return surplus
}

// take returns the host's last used connection, nil when no idle one can still be used. None is too old: the sweep
// comes when the oldest one is.
func (p *pool) take(h *host) *conn {
	for {
		p.mu.Lock()
		n := len(h.idle)
		if n == 0 {
			p.mu.Unlock()
			return nil
		}
		c := h.idle[n-1]
		p.remove(c)
		p.mu.Unlock()
		if c.alive() {
			return c
		}
		c.abort()
	}
}

// remove takes an idle connection out. The caller holds p.mu.
func (p *pool) remove(c *conn) {
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		p.oldest = c.newer
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		p.newest = c.older
	}
	h := c.host
	// It is nearly always the last, now and then the first.
	if n := len(h.idle) - 1; h.idle[n] == c {
		h.idle[n] = nil
		h.idle = h.idle[:n]
	} else {
		i := slices.Index(h.idle, c)
		h.idle = slices.Delete(h.idle, i, i+1)
	}
	p.idle--
	c.host, c.older, c.newer = nil, nil, nil
	p.forget(h)
}

func (p *pool) left(h *host) {
	h.users--
	p.forget(h)
}

func (p *pool) forget(h *host) {
	if h.users == 0 && len(h.idle) == 0 {
		delete(p.hosts, h.key)
	}
}

// sweep closes connections that have been idle for too long, and sets its timer for the next one.
func (p *pool) sweep() {
	p.mu.Lock()
	now := p.now()
	var old []*conn
	for c := p.oldest; c != nil && now.Sub(c.since) >= p.timeout; c = p.oldest {
		p.remove(c)
		old = append(old, c)
	}
	p.timer = nil
	if p.oldest != nil {
		p.timer = time.AfterFunc(p.timeout-now.Sub(p.oldest.since), p.sweep)
	}
	p.mu.Unlock()
	for _, c := range old {
		c.close()
	}
}

// closeIdle closes all idle connections. Those in use follow when their requests end, until a new request begins.
func (p *pool) closeIdle() {
	p.mu.Lock()
	p.closing = true
	var all []*conn
	for p.oldest != nil {
		all = append(all, p.oldest)
		p.remove(p.oldest)
	}
	if p.timer != nil {
		p.timer.Stop()
		p.timer = nil
	}
	p.mu.Unlock()
	for _, c := range all {
		c.close()
	}
}
