package faults

import (
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// TestRollingRestart checks the case that three nodes are ended and started one after the other, as an upgrade does,
// under clients that try the next node when one does not answer or says that it is ending: no call fails (Z-G03).
// Writers do not try again: no write that was acknowledged is lost, and none is there twice.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	s := startSite(t, plan{nodes: 3, database: pgtest.Database(t)})
	tool, token := s.nodes[0].newServer("Tool", nil, everything), s.token(admin)
	l := newLoad(s, writers)
	for _, n := range s.nodes {
		eventually(t, n.name+" to know the server", func() bool { return n.call(newClient(t), token, tool, "echo").passed() })
	}
	var calls, again atomic.Int64
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i := range 6 {
		client := newClient(t)
		all.Go(func() {
			for turn := i; ; turn++ {
				select {
				case <-stop:
					return
				default:
				}
				var a answer
				for try := range len(s.nodes) {
					if a = s.nodes[(turn+try)%len(s.nodes)].call(client, token, tool, "echo"); a.passed() {
						break
					}
					again.Add(1)
				}
				if !a.passed() {
					t.Errorf("no node takes a call: %v", a)
					return
				}
				calls.Add(1)
			}
		})
	}
	wait := l.begin(stop, 1_000)
	more := func() {
		from, written := calls.Load(), l.acks.Load()
		eventually(t, "calls to pass and writes to be acknowledged", func() bool {
			return calls.Load() > from+200 && l.acks.Load() > written+20 || t.Failed()
		})
	}
	const rounds = 2
	for range rounds {
		for _, n := range s.nodes {
			more()
			n.Stop(t)
			more()
			n.restart()
		}
	}
	more()
	close(stop)
	all.Wait()
	wait()
	l.compare(true)
	l.compareLists()
	t.Logf("%d nodes replaced under %d calls: none failed, %d tries went to another node; %d writes acknowledged, %d not, %d of which are there",
		rounds*len(s.nodes), calls.Load(), again.Load(), l.acks.Load(), l.unknown, l.resolved)
}

// restart starts a node that has ended. Its clients read where it listens meanwhile, and nothing else.
func (n *node) restart() {
	n.site.t.Helper()
	n.start()
	n.ready()
}

// TestSuspended checks the case that a node stands still (SIGSTOP), with transactions open, for longer than it may go
// on by what it knows (Z-N01, Z-N03). The other one works on, and what was taken away meanwhile is refused from the
// first call after it wakes.
func TestSuspended(t *testing.T) {
	t.Parallel()
	s := startSite(t, plan{nodes: 2, database: pgtest.Database(t)})
	l := newLoad(s, writers)
	asleep, awake := s.nodes[0], s.nodes[1]
	boss := s.token(admin)
	client := newClient(t)
	var key struct{ ID, Key string }
	const keysPath = "/api/llm-gateway/user/api-keys"
	approver := maps.Clone(admin)
	approver["client_id"], approver["azp"] = "approver", "approver"
	awake.must(client, http.MethodPost, keysPath, s.token(approver), members{"name": "Mine", "scopes": []string{"mcp"}}, &key)
	eventually(t, "the key to be good", func() bool { return asleep.call(client, key.Key, l.base, "echo").passed() })

	stop := make(chan struct{})
	wait := l.begin(stop, 1_000)
	l.await(t, some())
	if err := asleep.Command.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	slept := time.Now()
	woken := false
	wake := func() {
		if !woken {
			woken = true
			if err := asleep.Command.Process.Signal(syscall.SIGCONT); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(wake) // before the process is asked to end
	// Locks that it holds are let go of when the database's patience with its transactions ends.
	l.await(t, 50)
	worked := time.Since(slept)
	awake.must(newClient(t), http.MethodDelete, keysPath+"/"+key.ID, boss, nil, nil)
	for _, path := range []string{"/healthz", "/readyz"} {
		if a := awake.send(newClient(t), http.MethodGet, path, "", nil); a.status != http.StatusOK {
			t.Errorf("%s of the other node: %v", path, a)
		}
	}
	l.applied.Add(2) // the key's
	<-time.After(time.Until(slept.Add(lease + time.Second)))
	wake()
	for range 20 {
		if a := asleep.call(client, key.Key, l.base, "echo"); a.passed() {
			t.Errorf("after %v a key that was revoked is good", time.Since(slept))
		}
	}
	asleep.ready()
	close(stop)
	wait()
	l.compare(true)
	l.compareLists()
	t.Logf("a node stood still for %v: the other one wrote on within %v", lease+time.Second, worked.Round(time.Millisecond))
}
