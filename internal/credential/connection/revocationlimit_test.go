package connection

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/credential/oauth"
)

// TestSilences checks which endpoints are left alone, and for how long.
func TestSilences(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	e := endpointOf{"o", "https://a.example.test/revoke"}
	for took, want := range map[time.Duration]bool{-time.Second: false, 0: false, slowRevocation - 1: false, slowRevocation: true, revokeDeadline: true} {
		var s silences
		if s.has(e, now) {
			t.Error("an endpoint that nobody asked is silent")
		}
		s.note(e, now.Add(-took), now)
		for after, lasts := range map[time.Duration]bool{0: true, silence - 1: true, silence: false} {
			if got := s.has(e, now.Add(after)); got != (want && lasts) {
				t.Errorf("%v after an error that took %v: %v", after, took, got)
			}
		}
		for _, other := range []endpointOf{{"p", e.url}, {e.organization, "https://b.example.test/revoke"}} {
			if s.has(other, now) {
				t.Errorf("%v is taken for another endpoint", other)
			}
		}
	}
}

// TestHangingProvider has another organization with more revocations than fit into a batch, all due for longer. Its
// provider takes the requests and never answers. It holds its own turns only, and nobody else waits for it.
func TestHangingProvider(t *testing.T) {
	b := setup(t)
	b.connect()
	var hanging atomic.Int32
	end := make(chan struct{})
	hangs := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		hanging.Add(1)
		<-end
	}))
	defer hangs.Close()
	answer := sync.OnceFunc(func() { close(end) })
	defer answer()
	const hostile = "hostile"
	for n := range 2 * revokeBatch {
		v, err := b.sealRevocation(hostile, &sealedRevocation{Server: hostile, Endpoint: hangs.URL, ClientID: "x", Method: oauth.AuthNone, Refresh: fmt.Sprint(n)})
		if err != nil {
			t.Fatal(err)
		}
		v.NextAt = b.clock.now().Add(-time.Hour)
		if err := b.store.AddRevocation(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	told, err := b.revokeDue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.settle(func() bool { return hanging.Load() == revokersOfOne })
	// Neither the first try of a revocation nor its repetition waits for the hanging provider.
	b.outOfOrder(true)
	if err := b.Disconnect(t.Context(), b.key); err != nil {
		t.Fatal(err)
	}
	b.settle(func() bool { return b.tried() == 1 && b.telling() == 1 })
	b.outOfOrder(false)
	b.clock.advance(time.Second)
	if _, err := b.revokeDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.settle(func() bool { return len(b.revoked()) == 2 })
	if n := hanging.Load(); n != revokersOfOne {
		t.Errorf("%d of the hanging provider's at one time", n)
	}
	b.turns.mu.Lock()
	if n := len(b.turns.ofOne[hostile].reserved); n != revokeShare {
		t.Errorf("%d of the hanging provider's are in memory, want %d", n, revokeShare)
	}
	b.turns.mu.Unlock()
	// Nothing new of the hostile organization waits in memory.
	v, err := b.sealRevocation(hostile, &sealedRevocation{Endpoint: hangs.URL})
	if err != nil {
		t.Fatal(err)
	}
	if b.turns.reserve(hostile, v.ID) {
		t.Error("there is no bound")
	}
	b.cancel()
	answer()
	if err := told.Wait(); err != nil {
		t.Error(err)
	}
	b.settle(func() bool { return b.telling() == 0 && len(b.turns.all) == 0 })
}

// telling returns the number of organizations with revocations that are being told or wait in memory.
func (b *bundle) telling() int {
	b.turns.mu.Lock()
	defer b.turns.mu.Unlock()
	return len(b.turns.ofOne)
}

// TestTurns checks how many revocations are sent at one time: two of an organization, eight of all. Who leaves, or does
// not wait any longer, makes room.
func TestTurns(t *testing.T) {
	turns := newTurns()
	// waits reports whether a turn must be waited for. It gives up once the turns inside the organization are taken.
	waits := func(organization string, inside int) bool {
		ctx, cancel := context.WithCancel(t.Context())
		entered := make(chan bool)
		go func() {
			_, ok := turns.enter(ctx, organization)
			entered <- ok
		}()
		for len(turns.ofOne[organization].inside) != inside {
			runtime.Gosched()
		}
		cancel()
		return !<-entered
	}
	if !turns.reserve("a", "1") || turns.reserve("a", "1") || !turns.reserve("a", "2") {
		t.Error("a revocation is reserved twice, or its neighbor is not")
	}
	var leaves []func()
	for range revokersOfOne {
		leave, ok := turns.enter(t.Context(), "a")
		if !ok {
			t.Fatal("an organization has no turn")
		}
		leaves = append(leaves, leave)
	}
	if !waits("a", revokersOfOne) || len(turns.ofOne["a"].inside) != revokersOfOne {
		t.Error("an organization has more turns than its share")
	}
	for n := range revokers - revokersOfOne {
		name := fmt.Sprint(n)
		turns.reserve(name, "1")
		if _, ok := turns.enter(t.Context(), name); !ok {
			t.Fatal("another organization has no turn")
		}
	}
	turns.reserve("late", "1")
	if !waits("late", 1) || len(turns.ofOne["late"].inside) != 0 {
		t.Error("there are more turns than for all, or one that nobody waits for is taken")
	}
	leaves[0]()
	if _, ok := turns.enter(t.Context(), "late"); !ok || len(turns.ofOne["a"].inside) != revokersOfOne-1 {
		t.Error("who leaves makes no room")
	}
	turns.release("a", "1")
	if turns.ofOne["a"] == nil || !turns.reserve("a", "1") {
		t.Error("the share is forgotten before the last one is released")
	}
	turns.release("a", "1")
	if turns.release("a", "2"); turns.ofOne["a"] != nil {
		t.Error("the share of an organization with nothing to revoke is kept")
	}
}

// waitsForNothing is a provider whose endpoint takes some time and then fails.
type waitsForNothing struct {
	Protocol
	endpoint string
	wait     func()
	fails    error
	asked    *atomic.Int64
}

func (w waitsForNothing) Revoke(ctx context.Context, r oauth.RevokeRequest) error {
	if r.Endpoint != w.endpoint {
		return w.Protocol.Revoke(ctx, r)
	}
	w.asked.Add(1)
	w.wait()
	return fmt.Errorf("revocation endpoint: %w", w.fails)
}

// TestSilentProvider checks that a provider that kept an organization waiting for nothing is left alone for a minute, so
// that the organization's other providers have their turn. A provider that fails at once is not.
func TestSilentProvider(t *testing.T) {
	const many, endpoint, company = 10, "https://silent.example.test/revoke", "another organization"
	for name, c := range map[string]struct {
		takes time.Duration
		fails error
		most  int64 // of the requests of one round
	}{
		"hangs":           {slowRevocation, oauth.ErrUnavailable, revokersOfOne},
		"refuses slowly":  {slowRevocation, &oauth.ProtocolError{Endpoint: "revocation", Status: 400}, revokersOfOne},
		"fails at once":   {0, oauth.ErrUnavailable, many},
		"refuses at once": {0, &oauth.ProtocolError{Endpoint: "revocation", Status: 400}, many},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			asked := new(atomic.Int64)
			b.Broker.oauth = waitsForNothing{b.Broker.oauth, endpoint, func() { b.clock.advance(c.takes) }, c.fails, asked}
			for n := range many {
				b.stored(sealedRevocation{Server: "silent", Endpoint: endpoint, ClientID: "x", Method: oauth.AuthNone, Refresh: fmt.Sprint(n)}, b.who.OrganizationID, 0)
			}
			b.stored(b.accepted("good"), b.who.OrganizationID, 0)
			round := func() int64 {
				before := asked.Load()
				if err := b.RevokeDue(t.Context()); err != nil {
					t.Fatal(err)
				}
				return asked.Load() - before
			}
			first := round()
			if first == 0 || first > c.most || c.most == many && first < many {
				t.Errorf("asked %d times", first)
			}
			if len(b.revoked()) != 1 || len(b.waiting()) != many || b.countOf(RevokeFailed) != first {
				t.Errorf("revoked %v, %d are waiting, %d failed", b.revoked(), len(b.waiting()), b.countOf(RevokeFailed))
			}
			b.stored(sealedRevocation{Endpoint: endpoint, ClientID: "x", Method: oauth.AuthNone, Refresh: "other"}, company, 0)
			if n := round(); n == 0 {
				t.Error("another organization does not get its turn")
			}
			b.clock.advance(silence + lastRevokeWait)
			if n := round(); n == 0 {
				t.Error("the provider is never asked again")
			}
		})
	}
}
