package cluster

import (
	"net/http"
	"testing"
	"time"
)

// lease is the time for which a node goes on with its present knowledge when it does not hear of the others.
const lease = 10 * time.Second

// TestCutOff checks that a node that reaches clients but not the store serves what it knows for the lease and refuses
// then, cuts its streams, is not ready, and is right again by itself (Z-N03).
func TestCutOff(t *testing.T) {
	c := startCluster(t)
	r := c.newRights(newUpstream(t))
	r.nodeStops = true
	alone, other := c.nodes[2], c.nodes[0]
	client := newClient(t)
	stays, goes := r.make(other, "user"), r.make(other, "key")
	for _, right := range []right{stays, goes} {
		eventually(t, alone.name+" to let the call pass", func() bool { return alone.call(client, right.token, right.server).passed() })
	}
	stream := alone.listen(client, stays)
	defer stream.close()

	alone.store.Pause()
	from := time.Now()
	goes.take(other)
	if a := other.call(client, goes.token, goes.server); !goes.after(a) {
		t.Fatalf("%s answers %v", other.name, a)
	}
	if a := alone.call(client, stays.token, stays.server); !a.passed() && time.Since(from) < lease/2 {
		t.Errorf("Z-F04 within the lease: %v", a)
	}
	var last time.Duration // when the last call that passed began
	for _, right := range []right{goes, stays} {
		eventually(t, "the lease to end", func() bool {
			began := time.Since(from)
			a := alone.call(client, right.token, right.server)
			if a.passed() {
				last = max(last, began)
			} else if a.status != http.StatusServiceUnavailable {
				t.Fatalf("after %v: %v", began, a)
			}
			return !a.passed()
		})
	}
	select {
	case <-stream.ended:
	case <-time.After(callTimeout):
		t.Fatal("the stream goes on")
	}
	cut := stream.at.Sub(from)
	if last > within(lease) || cut > within(lease+2*time.Second) {
		t.Errorf("the last call passed after %v, the stream was cut after %v", last, cut)
	}
	eventually(t, "what was known a second ago is not any more", func() bool {
		return alone.send(client, http.MethodGet, "/readyz", "", nil).status == http.StatusServiceUnavailable
	})
	began := time.Now()
	for _, path := range []string{"/readyz", "/healthz"} {
		want := map[string]int{"/readyz": http.StatusServiceUnavailable, "/healthz": http.StatusOK}[path]
		if a := alone.send(client, http.MethodGet, path, "", nil); a.status != want {
			t.Errorf("%s: %v", path, a)
		}
	}
	quick := time.Since(began)
	began = time.Now()
	if a := alone.call(client, stays.token, stays.server); a.status != http.StatusServiceUnavailable {
		t.Errorf("without the store: %v", a)
	}
	t.Logf("cut off from the store: the last call passed after %v, the stream was cut after %v (%s); then 503 within %v, health within %v",
		last.Round(time.Millisecond), cut.Round(time.Millisecond), stream.last, time.Since(began).Round(time.Millisecond), quick.Round(time.Millisecond))

	back := time.Now()
	alone.store.Resume()
	alone.WaitFor(t, "http://"+alone.address+"/readyz")
	ready := time.Since(back)
	if a := alone.call(client, goes.token, goes.server); !goes.after(a) {
		t.Errorf("back again: what was revoked meanwhile is answered %v", a)
	}
	if a := alone.call(client, stays.token, stays.server); !a.passed() {
		t.Errorf("back again: %v", a)
	}
	t.Logf("ready %v after the store could be reached again", ready.Round(time.Millisecond))
}
