package faults

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// perClient is of how many things a client of a writer's makes the held ones: a gateway asks a user about no more than 120
// calls of a client within ten minutes.
const perClient = 100

// afterFailure is the pause of a writer whose write was not acknowledged: a node that is gone refuses thousands a second.
const afterFailure = 20 * time.Millisecond

// load holds writers and the data that they share.
type load struct {
	site    *site
	writers []*writer
	// base has the policies and calls by keys, locked needs credentials, asking holds calls for its users' word.
	base, asking server
	locked       []server

	acks     atomic.Int64 // acknowledged writes
	unknown  int          // writes that were not acknowledged
	resolved int          // those of them that are there
	applied  atomic.Int64 // writes that are there, with those before the first writer's
}

// writer is a user who writes, one write after the other, and keeps a journal of it.
type writer struct {
	load     *load
	name     string
	node     *node // where it writes
	token    string
	caller   string // the token of the client whose calls are held
	approver string // the token of the client with which the same user decides on calls
	tokenOf  func(client string) string
	client   *http.Client
	things   []*thing
	serial   int
	// wary is on where no fault is: whatever is not acknowledged is an error then.
	wary atomic.Bool
}

// newLoad makes the objects that the writers write on.
func newLoad(s *site, writers int) *load {
	s.t.Helper()
	l := &load{site: s}
	first := s.nodes[0]
	l.base = first.newServer("Base", nil, everything)
	for i := range 3 {
		l.locked = append(l.locked, first.newServer(fmt.Sprint("Locked ", i), members{"provider": "bearer_token", "requires_auth": true}, everything))
	}
	l.asking = first.newServer("Asking", nil, members{"name": "asks", "authorized": true, "actions": []string{"tools/call:echo:approve"}})
	for i := range writers {
		sub := fmt.Sprintf("0190cccc-0000-7000-8000-%012d", i)
		claims := members{"sub": sub, "email": fmt.Sprint("w", i, "@acme.test"), "roles": []string{"admin"}}
		w := &writer{load: l, name: fmt.Sprint("w", i), node: s.nodes[i%len(s.nodes)], token: s.token(claims), client: newClient(s.t)}
		w.tokenOf = func(client string) string {
			named := maps.Clone(claims)
			named["client_id"], named["azp"] = client, client
			return s.token(named)
		}
		w.approver = w.tokenOf("approver")
		for _, locked := range l.locked {
			w.things = append(w.things, &thing{kind: connections, label: w.name + "-on-" + locked.slug, id: locked.id})
		}
		l.writers = append(l.writers, w)
	}
	l.applied.Store(l.recorded())
	return l
}

// run lets a writer write until stop is closed, or until that many writes were not acknowledged.
func (w *writer) run(stop <-chan struct{}, failures int) {
	for failures > 0 {
		select {
		case <-stop:
			return
		default:
		}
		if !w.step() {
			failures--
			<-time.After(afterFailure)
		}
	}
}

// begin lets all writers write; the returned function waits for their end.
func (l *load) begin(stop <-chan struct{}, failures int) (wait func()) {
	var all sync.WaitGroup
	for _, w := range l.writers {
		all.Go(func() { w.run(stop, failures) })
	}
	return all.Wait
}

// await waits for a number of acknowledged writes.
func (l *load) await(t testing.TB, n int64) {
	t.Helper()
	from := l.acks.Load()
	eventually(t, fmt.Sprintf("%d writes to be acknowledged", n), func() bool { return l.acks.Load() >= from+n || t.Failed() })
}

// step makes one write, and reports whether it was acknowledged.
func (w *writer) step() bool {
	th := w.choose()
	want := th.kind.next(th)
	th.intend(want)
	a, acknowledged := th.kind.ask(w, th, want)
	if acknowledged {
		th.acknowledge(want)
		w.load.acks.Add(1)
		w.load.applied.Add(1)
		return true
	}
	switch {
	case w.wary.Load():
		w.load.site.t.Errorf("%s at %s, where nothing was broken: %s %s, %q: %v", w.name, w.node.name, th.kind.name, th.label, want, a)
	case a.err == nil && a.status != http.StatusServiceUnavailable:
		w.load.site.t.Errorf("%s at %s: %s %s, %q: %v", w.name, w.node.name, th.kind.name, th.label, want, a)
	}
	return false
}

// choose takes a thing of which nothing is unknown, or a new one.
func (w *writer) choose() *thing {
	k := kinds[rand.IntN(len(kinds))]
	var some []*thing
	for _, th := range w.things {
		if th.kind == k && len(th.tries) == 0 && !th.over {
			some = append(some, th)
		}
	}
	if k == connections || len(some) > 0 && (len(some) >= k.most || rand.IntN(3) > 0) {
		if len(some) > 0 {
			return some[rand.IntN(len(some))]
		}
		k = servers // all connections are unknown
	}
	if w.serial%perClient == 0 {
		w.caller = w.tokenOf(fmt.Sprint("caller-", w.serial/perClient))
	}
	w.serial++
	th := &thing{kind: k, label: fmt.Sprintf("%s-%s%d", w.name, k.name[:1], w.serial), caller: w.caller}
	w.things = append(w.things, th)
	return th
}

// compare compares the objects that a node shows with the journals: those written since the last time, or all of them.
func (l *load) compare(all bool) {
	t := l.site.t
	t.Helper()
	var done sync.WaitGroup
	var mu sync.Mutex
	for _, w := range l.writers {
		w.client.CloseIdleConnections()                 // to nodes that are gone
		n := l.site.nodes[rand.IntN(len(l.site.nodes))] // also the one where it was written
		done.Go(func() {
			kept := w.things[:0]
			for _, th := range w.things {
				if !th.dirty && !all {
					kept = append(kept, th)
					continue
				}
				tries := len(th.tries)
				applied := th.resolve(t, th.kind.look(w, n, th))
				mu.Lock()
				l.unknown += tries
				if applied {
					l.resolved++
					l.applied.Add(1)
				}
				mu.Unlock()
				if th.is != "" || th.kind == connections {
					kept = append(kept, th)
				}
			}
			clear(w.things[len(kept):])
			w.things = kept
		})
	}
	done.Wait()
	if t.Failed() {
		return
	}
	// Writes are recorded in their own transactions: as many are in the audit log as there are, no more and no less.
	if got, want := l.recorded(), l.applied.Load(); got != want {
		t.Errorf("the audit log has %d records of writes, %d were made", got, want)
	}
}

// compareCalls holds the calls that ran against the audit log: a call is recorded before it leaves, at its node first,
// which tells the others within seconds.
func (l *load) compareCalls() {
	l.site.t.Helper()
	ran := l.site.upstream.total()
	eventually(l.site.t, fmt.Sprintf("the audit log to have %d calls", ran), func() bool {
		return l.events("kind=call")-l.events("kind=call&outcome=held") >= ran
	})
}

// compareLists looks for objects that are in no journal, and for duplicates.
func (l *load) compareLists() {
	t := l.site.t
	t.Helper()
	for _, k := range kinds {
		if k.list == "" {
			continue
		}
		known := make(map[string]bool)
		for _, w := range l.writers {
			for _, th := range w.things {
				if th.kind == k {
					known[th.is] = true
				}
			}
		}
		for _, name := range l.names(k) {
			switch {
			case !strings.HasPrefix(name, "w"): // the objects that the writers write on
			case !known[name]:
				t.Errorf("%s %q is there, or there twice, and in no journal", k.name, name)
			}
			delete(known, name)
		}
		for name := range known {
			t.Errorf("%s %q is missing from the list", k.name, name)
		}
	}
}

// names returns the names in a list of all things of a kind.
func (l *load) names(k *kind) (names []string) {
	l.site.t.Helper()
	w, n := l.writers[0], l.site.nodes[0]
	for page := 1; ; page++ {
		var list struct {
			Data       []struct{ Name string }
			Pagination struct {
				Next *int `json:"next_page"`
			}
		}
		n.read(w.client, w.token, fmt.Sprintf("%s?limit=100&page=%d", k.list, page), &list)
		for _, one := range list.Data {
			names = append(names, one.Name)
		}
		if list.Pagination.Next == nil {
			return names
		}
	}
}

// recorded returns the number of writes in the audit log.
func (l *load) recorded() int64 {
	l.site.t.Helper()
	const written = "kind=admin&kind=credential&kind=approval"
	return l.events(written) - l.events(written+"&outcome=refused")
}

// events returns the number of events of the audit log that a filter finds.
func (l *load) events(filter string) int64 {
	l.site.t.Helper()
	var page struct{ Pagination struct{ Total int64 } }
	w := l.writers[0]
	l.site.nodes[0].read(w.client, w.token, "/api/audit?limit=1&"+filter, &page)
	return page.Pagination.Total
}
