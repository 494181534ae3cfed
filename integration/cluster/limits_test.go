package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
	"github.com/durward-gateway/durward/internal/ratelimit/cluster/valkey/valkeytest"
)

// window is the time that a limit holds for.
const window = time.Minute

// admitted is a call that a limit let pass: it was counted between its begin and its end.
type admitted struct{ began, ended time.Time }

// TestLimits checks the same limit on three nodes, asked for as fast as they answer. In exact mode no minute holds more
// than the limit, in share mode none more than 1.05 times the limit. Calls that could not be counted together in time
// are refused (closed): what a busy machine delays is not let through either.
func TestLimits(t *testing.T) {
	rate, rounds := number(t, "CLUSTER_LIMIT", 120), number(t, "CLUSTER_LIMIT_ROUNDS", 1)
	for _, coordinator := range []string{"postgres", "valkey"} {
		for mode, most := range map[string]int{"exact": rate, "share": rate + rate/20} {
			t.Run(coordinator+" "+mode, func(t *testing.T) {
				option, env := "coordinate postgres", []string(nil)
				if coordinator == "valkey" {
					option, env = onValkey(valkeytest.New(t))
				}
				c, s := startLimited(t, rate, option, "mode "+mode+"\n\t\t\ton_store_failure closed", env...)
				calls, refused := c.pressLimit(s, rate, rounds)
				worst := fullest(calls)
				if worst > most {
					t.Errorf("a minute held %d calls of %d, at most %d were to pass", worst, rate, most)
				}
				t.Logf("%d calls passed and %d were refused; the fullest minute certainly held %d of %d (%+.1f %%)",
					len(calls), refused, worst, rate, 100*float64(worst-rate)/float64(rate))
			})
		}
	}
}

// TestLimitsCounterKilled checks the case that what three nodes count with is killed under load (Z-R01). Each holds its
// share, says so, and is no slower than promised. The counters come back empty, and are told what nodes have let
// through before they count again.
func TestLimitsCounterKilled(t *testing.T) {
	rate := number(t, "CLUSTER_LIMIT", 120)
	server := valkeytest.New(t)
	option, env := onValkey(server)
	c, s := startLimited(t, rate, option, fmt.Sprint("nodes ", size), env...)
	p := c.press(s)
	eventually(t, "half of the limit to be used", func() bool { return len(p.all()) >= rate/2 })
	server.Stop()
	killed := time.Now()
	bound := p.bound(rate)
	for _, n := range c.nodes {
		client := newClient(t)
		eventually(t, n.name+" to say that it counts alone", func() bool {
			return c.status(n, client).Degraded && strings.Contains(string(n.send(client, http.MethodGet, "/readyz", "", nil).body), `"limits":"degraded"`)
		})
	}
	p.awaitRefusals()
	took, alone := p.took(killed), fullest(p.all())
	if alone > bound {
		t.Errorf("a minute held %d calls, %d were to pass at most", alone, bound)
	}
	server.Start(t)
	p.awaitTogether()
	p.end()
	worst := fullest(p.all())
	if worst > max(bound, rate) {
		t.Errorf("the minute in which the counters went and came held %d calls, %d were to pass at most", worst, max(bound, rate))
	}
	p99 := took[len(took)*99/100]
	if p99 > within(50*time.Millisecond) {
		t.Errorf("p99 of calls while nodes counted alone: %v", p99)
	}
	t.Logf("the counters were killed under load: a minute held %d calls of a limit of %d (at most %d), and %d when they had come back, empty; p99 of %d calls meanwhile %v",
		alone, rate, bound, worst, len(took), p99.Round(time.Microsecond))
}

// TestLimitsCounterEmptied checks the case that what three nodes count with is emptied under load, and goes on (Z-R01).
// No node counts there before all have told it what they have let through.
func TestLimitsCounterEmptied(t *testing.T) {
	rate := number(t, "CLUSTER_LIMIT", 120)
	for mode, most := range map[string]int{"exact": rate, "share": rate + rate/20} {
		t.Run(mode, func(t *testing.T) {
			server := valkeytest.New(t)
			option, env := onValkey(server)
			c, s := startLimited(t, rate, option, fmt.Sprintf("mode %s\n\t\t\tnodes %d", mode, size), env...)
			p := c.press(s)
			bound := most
			parts := []int{rate / 2, rate * 9 / 10}
			for _, part := range parts {
				eventually(t, "a part of the limit to be used", func() bool { return len(p.all()) >= part })
				server.Do(t, "FLUSHALL")
				bound = max(bound, p.bound(rate))
			}
			bound += len(parts) * size * p.callers // what was under way each time
			p.awaitRefusals()
			p.awaitTogether()
			p.end()
			worst := fullest(p.all())
			if worst > bound {
				t.Errorf("a minute held %d calls, %d were to pass at most", worst, bound)
			}
			t.Logf("the counters were emptied twice under load: a minute held %d calls of a limit of %d (at most %d)", worst, rate, bound)
		})
	}
}

func onValkey(server *valkeytest.Server) (option string, env []string) {
	return "coordinate valkey {env.DURWARD_LIMITS_URL}", []string{"DURWARD_LIMITS_URL=" + server.Address()}
}

// startLimited starts a cluster with one limit, which all nodes know, and a server for calls.
func startLimited(t *testing.T, rate int, option, limits string, env ...string) (*cluster, server) {
	c := startClusterWith(t, option+"\n\t\tlimits {\n\t\t\t"+limits+"\n\t\t}", env...)
	client, first := newClient(t), c.nodes[0]
	s := first.newServer(client, members{"url": newUpstream(t).server.URL})
	for _, n := range c.nodes {
		eventually(t, n.name+" to let calls pass", func() bool { return n.call(client, c.token(alice), s).passed() })
	}
	first.api(client, c.token(admin), http.MethodPost, "/api/llm-gateway/admin/rate-limits", members{
		"name": "All", "scope_type": "org", "traffic_type": "mcp", "requests_per_minute": rate,
	})
	for _, n := range c.nodes {
		eventually(t, n.name+" to know the limit", func() bool {
			return n.call(client, c.token(alice), s).status == http.StatusTooManyRequests || c.status(n, client).Used > 0
		})
	}
	return c, s
}

// limitStatus is the report of a node about the one limit.
type limitStatus struct {
	Used     float64 `json:"rpm_used"`
	Degraded bool
}

func (c *cluster) status(n *node, client *http.Client) limitStatus {
	a := n.send(client, http.MethodGet, "/api/llm-gateway/admin/rate-limits/status", c.token(admin), nil)
	var all []limitStatus
	if json.Unmarshal(a.body, &all) != nil || len(all) != 1 {
		return limitStatus{}
	}
	return all[0]
}

// pressure runs callers at every node who call one after the other, whatever the answers are, until end is called.
type pressure struct {
	c       *cluster
	callers int // of each node
	end     func()

	mu      sync.Mutex
	passed  map[*node][]admitted
	refused map[*node][]admitted
}

func (c *cluster) press(s server) *pressure {
	p := &pressure{c: c, callers: 2, passed: make(map[*node][]admitted), refused: make(map[*node][]admitted)}
	stop := make(chan struct{})
	var all sync.WaitGroup
	p.end = sync.OnceFunc(func() {
		close(stop)
		all.Wait()
	})
	c.t.Cleanup(p.end)
	for _, n := range c.nodes {
		for range p.callers {
			client := newClient(c.t)
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						p.note(n, time.Now(), n.call(client, c.token(alice), s))
					}
				}
			})
		}
	}
	return p
}

func (p *pressure) note(n *node, began time.Time, a answer) {
	call := admitted{began: began, ended: time.Now()}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case a.passed():
		p.passed[n] = append(p.passed[n], call)
	case a.status == http.StatusTooManyRequests:
		p.refused[n] = append(p.refused[n], call)
	default:
		p.c.t.Errorf("%s: %v", n.name, a)
	}
}

// bound returns the greatest number of calls that nodes let through that begin to count alone now: each node its share,
// or the number that it has let through by itself when that is more.
func (p *pressure) bound(rate int) (bound int) {
	share := rate / size
	if !rig.Strict() {
		share = rate / (size - 1) // a node that got no processor for a while counts as gone
	}
	for _, n := range p.c.nodes {
		bound += max(p.passedAt(n)+p.callers, share)
	}
	return bound
}

func (p *pressure) passedAt(n *node) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.passed[n])
}

// all returns the calls that passed, of all nodes.
func (p *pressure) all() (calls []admitted) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, some := range p.passed {
		calls = append(calls, some...)
	}
	return calls
}

// awaitRefusals waits until every node has refused a number of calls more.
func (p *pressure) awaitRefusals() {
	const enough = 100
	p.mu.Lock()
	from := make(map[*node]int)
	for n, calls := range p.refused {
		from[n] = len(calls)
	}
	p.mu.Unlock()
	for _, n := range p.c.nodes {
		eventually(p.c.t, n.name+" to refuse calls", func() bool {
			p.mu.Lock()
			defer p.mu.Unlock()
			return len(p.refused[n]) >= from[n]+enough
		})
	}
}

// awaitTogether waits until every node counts with the others, and has refused a number of calls since.
func (p *pressure) awaitTogether() {
	for _, n := range p.c.nodes {
		client := newClient(p.c.t)
		eventually(p.c.t, n.name+" to count with the others", func() bool { return !p.c.status(n, client).Degraded })
	}
	p.awaitRefusals()
}

// took returns the durations, in order, of calls that began after a time.
func (p *pressure) took(since time.Time) (took []time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, calls := range []map[*node][]admitted{p.passed, p.refused} {
		for _, some := range calls {
			for _, call := range some {
				if call.began.After(since) {
					took = append(took, call.ended.Sub(call.began))
				}
			}
		}
	}
	slices.Sort(took)
	return took
}

// pressLimit calls on all nodes at once until the limit has been full for a while, as many minutes as there are rounds.
// It returns the passed calls, those after the limit was known, and the number of refused ones.
func (c *cluster) pressLimit(s server, rate, rounds int) (passed []admitted, refused int) {
	c.t.Helper()
	const (
		callers  = 4                      // of each node
		pause    = 200 * time.Millisecond // of a caller whose call could not be counted
		patience = 10 * window            // until the limit is full
	)
	var mu sync.Mutex
	var all sync.WaitGroup
	began, uncounted, gaveUp := time.Now(), 0, false
	late := began.Add(patience)
	full := func() bool { // with mu held
		if rounds > 1 {
			return time.Since(began) > time.Duration(rounds)*window
		}
		if refused >= rate {
			return true
		}
		gaveUp = gaveUp || time.Now().After(late)
		return gaveUp
	}
	for _, n := range c.nodes {
		for range callers {
			client := newClient(c.t)
			all.Go(func() {
				for {
					call := admitted{began: time.Now()}
					a := n.call(client, c.token(alice), s)
					call.ended = time.Now()
					again := a.status == http.StatusServiceUnavailable
					mu.Lock()
					switch {
					case a.passed():
						passed = append(passed, call)
					case a.status == http.StatusTooManyRequests:
						refused++
					case again:
						uncounted++
					default:
						c.t.Error(fmt.Sprint(n.name, ": ", a))
						refused = rate
					}
					done := full()
					mu.Unlock()
					if done {
						return
					}
					if again {
						// It is told to come back later. Callers who come back at once keep a machine so busy that nothing can
						// be counted in time for ever.
						<-time.After(pause)
					}
				}
			})
		}
	}
	all.Wait()
	if gaveUp {
		c.t.Fatalf("the limit of %d did not get full: %d calls passed, %d were refused and %d could not be counted", rate, len(passed), refused, uncounted)
	}
	return passed, refused
}

// fullest returns the largest number of calls that one minute has certainly held: those that began and ended in it.
func fullest(calls []admitted) (most int) {
	slices.SortFunc(calls, func(a, b admitted) int { return a.began.Compare(b.began) })
	for i, first := range calls {
		held := 0
		for _, c := range calls[i:] {
			if !c.ended.After(first.began.Add(window)) {
				held++
			}
		}
		most = max(most, held)
	}
	return most
}
