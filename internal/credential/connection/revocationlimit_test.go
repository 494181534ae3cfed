package connection

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/credential/oauth"
)

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
