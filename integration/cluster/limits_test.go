package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/coordinate/valkey/valkeytest"
)

// window is the time that a limit holds for.
const window = time.Minute

// admitted is a call that a limit let pass: it was counted between its begin and its end.
type admitted struct{ began, ended time.Time }

// TestLimits: the same limit on three nodes, asked for as fast as they answer. In exact mode no minute holds more than the
// limit, in share mode none more than 1.05 times the limit. Calls that could not be counted together in time are refused
// (closed): what a busy machine delays is not let through either.
func TestLimits(t *testing.T) {
	rate, rounds := number(t, "CLUSTER_LIMIT", 120), number(t, "CLUSTER_LIMIT_ROUNDS", 1)
	for _, coordinator := range []string{"postgres", "valkey"} {
		for mode, most := range map[string]int{"exact": rate, "share": rate + rate/20} {
			t.Run(coordinator+" "+mode, func(t *testing.T) {
				option, env := "coordinate postgres", []string(nil)
				if coordinator == "valkey" {
					option, env = "coordinate valkey {env.DURWARD_LIMITS_URL}", []string{"DURWARD_LIMITS_URL=" + valkeytest.New(t).Address()}
				}
				c := startClusterWith(t, option+"\n\t\tlimits {\n\t\t\tmode "+mode+"\n\t\t\ton_store_failure closed\n\t\t}", env...)
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
						return n.call(client, c.token(alice), s).status == http.StatusTooManyRequests || c.status(n, client) > 0
					})
				}
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

// status is how much of the one limit is used, as a node says.
func (c *cluster) status(n *node, client *http.Client) float64 {
	a := n.send(client, http.MethodGet, "/api/llm-gateway/admin/rate-limits/status", c.token(admin), nil)
	var all []struct {
		Used float64 `json:"rpm_used"`
	}
	if json.Unmarshal(a.body, &all) != nil || len(all) != 1 {
		return 0
	}
	return all[0].Used
}

// pressLimit calls on all nodes at once until the limit has been full for a while, as many minutes as there are rounds.
// It returns what passed, those after the limit was known, and how many were refused.
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

// fullest is the largest number of calls that one minute has certainly held: those that began and ended in it.
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
