package cluster

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
)

// user is a connected user.
type user struct {
	token   string
	expires time.Time // of the access token
}

// callers is the number of calls that come in at the instant of an expiry.
const callers = 500

// storm makes that many calls of one user at once, spread over the nodes, and returns those that failed. A call that a
// node answers 503 because its store does not answer in time is repeated, unless figures are measured: 500 calls keep a
// slow machine busy for longer than a node waits for its store.
func storm(nodes []*node, client *http.Client, u user, s server) (failed []answer) {
	var mu sync.Mutex
	var all sync.WaitGroup
	begin, began := make(chan struct{}), time.Now()
	for i := range callers {
		all.Go(func() {
			<-begin
			a := nodes[i%len(nodes)].call(client, u.token, s)
			for !rig.Strict() && a.status == http.StatusServiceUnavailable && time.Since(began) < callTimeout {
				a = nodes[i%len(nodes)].call(client, u.token, s)
			}
			if !a.passed() {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, a)
			}
		})
	}
	close(begin)
	all.Wait()
	return failed
}

func (c *cluster) oauthServer(p *provider, client *http.Client) server {
	c.t.Helper()
	return c.nodes[0].newServer(client, members{"url": p.url() + "/mcp", "provider": "oauth2", "requires_auth": true})
}

// TestRefresh checks that all callers on all nodes at the instant of an expiry cause one refresh, and none of them
// fails (Z-A02).
func TestRefresh(t *testing.T) {
	c := startCluster(t)
	p, client := newProvider(t), newClient(t)
	s := c.oauthServer(p, client)
	const batch = 10
	expiries := max(number(t, "CLUSTER_EXPIRIES", batch)/batch, 1) * batch
	users := make([]user, batch)
	for i := range users {
		users[i].token = c.token(person())
	}
	late, longest := 0, time.Duration(0)
	for done := 0; done < expiries; {
		const life = 2 * time.Second
		for i := range users {
			p.connect(c.nodes[i%size], client, users[i].token, s, life)
			users[i].expires = time.Now().Add(life)
			for _, n := range c.nodes { // every node holds the token
				eventually(t, n.name+" to let the call pass", func() bool { return n.call(client, users[i].token, s).passed() })
			}
		}
		early := p.count()
		late += batch - early.refreshes // on a slow machine some are due while they are made
		for i, u := range users {
			<-time.After(time.Until(u.expires))
			began := time.Now()
			for _, a := range storm(c.nodes, client, u, s) {
				t.Errorf("expiry %d: a call failed: %v", done+i, a)
			}
			longest = max(longest, time.Since(began))
			if t.Failed() {
				t.FailNow()
			}
		}
		if got := p.count(); got.refreshes+early.refreshes != batch || got.reused+early.reused != 0 || got.families != 0 {
			t.Fatalf("%d expiries: before them %+v, at them %+v", batch, early, got)
		}
		done += batch
	}
	t.Logf("%d expiries (%d of them under %d calls on %d nodes at once): one refresh each, no token used twice, no call failed; the longest took %v",
		expiries, late, callers, size, longest.Round(time.Millisecond))
}

// TestRefreshKilled checks the case that a node dies between the provider's answer and the commit (Z-A03). A provider
// that answers the same again notices nothing, and no call on the other nodes fails; one that ends the grant makes the
// user connect anew, and is asked no more.
func TestRefreshKilled(t *testing.T) {
	for _, tc := range []struct {
		name     string
		tolerant bool
	}{{"tolerant provider", true}, {"strict provider", false}} {
		t.Run(tc.name, func(t *testing.T) {
			c := startCluster(t)
			p, client := newProvider(t), newClient(t)
			p.tolerant = tc.tolerant
			s := c.oauthServer(p, client)
			victim, rest := c.nodes[0], c.nodes[1:]
			kills := number(t, "CLUSTER_KILLS", 1)
			life := 3 * time.Second
			for done := 0; done < kills; {
				u := user{token: c.token(person())}
				p.connect(rest[0], client, u.token, s, life)
				u.expires = time.Now().Add(life)
				for _, n := range c.nodes {
					eventually(t, n.name+" to let the call pass", func() bool { return n.call(client, u.token, s).passed() })
				}
				if p.count().refreshes > 0 { // this machine is too slow for that life
					life *= 2
					continue
				}
				done++
				asked, killed := make(chan struct{}), make(chan struct{})
				p.set(func() {
					p.answering = func() {
						victim.store.Pause() // no commit gets through
						close(asked)
					}
					p.answered = func() {
						victim.Kill()
						victim.store.Cut()
						victim.store.Resume()
						close(killed)
					}
				})
				<-time.After(time.Until(u.expires))
				go victim.call(newClient(t), u.token, s)
				select {
				case <-asked:
				case <-time.After(callTimeout):
					t.Fatal("the provider is not asked")
				}
				failed := storm(rest, client, u, s)
				select {
				case <-killed:
				case <-time.After(callTimeout):
					t.Fatal("the node is not killed")
				}
				got := p.count()
				if tc.tolerant && (len(failed) > 0 || got.refreshes != 1 || got.reused != 1) {
					t.Errorf("%d calls failed, the first with %v; the provider saw %+v", len(failed), append(failed, answer{})[0], got)
				}
				if !tc.tolerant {
					if len(failed) != callers || got.reused != 1 || got.families != 1 {
						t.Errorf("%d calls failed; the provider saw %+v", len(failed), got)
					}
					for _, a := range failed {
						if !rig.LeadsToConnect(a.status, a.body) {
							t.Errorf("a call whose grant is over: %v", a)
							break
						}
					}
					p.connect(rest[0], client, u.token, s, time.Hour)
				}
				victim.restart()
				for _, n := range c.nodes {
					eventually(t, n.name+" to let the call pass again", func() bool { return n.call(client, u.token, s).passed() })
				}
			}
			if tc.tolerant {
				t.Logf("%d nodes killed between the provider's answer and the commit: none of %d calls on the others failed", kills, callers)
			} else {
				t.Logf("%d nodes killed between the provider's answer and the commit: the provider ended the grant for it, and was asked once", kills)
			}
		})
	}
}
