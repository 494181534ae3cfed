package integration

import (
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
)

// told returns the tokens that the provider was told to forget.
func (p *grantor) told() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, form := range p.revoked {
		all = append(all, form.Get("token"))
	}
	return all
}

// handedOut returns the tokens that the provider has given.
func (p *grantor) handedOut() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for token := range p.access {
		all = append(all, token)
	}
	for token := range p.refresh {
		all = append(all, token)
	}
	return all
}

func (p *grantor) toldAll() bool {
	told := p.told()
	return !slices.ContainsFunc(p.handedOut(), func(token string) bool { return !slices.Contains(told, token) })
}

// revocations counts the results of revocations.
func (g *gateway) revocations(event string) int {
	n, _ := strconv.Atoi(g.metric(`durward_connection_events_total{event="` + event + `"}`))
	return n
}

// TestRevokedAgain disconnects users whose provider cannot revoke just then: it is told again, a second later for the first time, and a
// restart in between does not keep it from that (RFC 7009).
func TestRevokedAgain(t *testing.T) {
	t.Parallel()
	disconnected := func(t *testing.T, g *gateway, p *grantor) {
		t.Helper()
		s := g.createServer(p.mcpURL(), p.entry())
		g.attackConnect(g.token(alice), s, p).want(t, http.StatusOK)
		g.api(g.token(alice), http.MethodDelete, "/api/servers/"+s.ID+"/connection", nil)
	}
	t.Run("a second later", func(t *testing.T) {
		g, p := startGateway(t, settings{}), newGrantor(t)
		var tries []time.Time
		p.revoke = func() bool {
			if tries = append(tries, time.Now()); len(tries) <= 2 { // of the refresh token and the access token
				return false
			}
			return true
		}
		disconnected(t, g, p)
		rig.Eventually(t, "the tokens to be revoked", p.toldAll)
		rig.Eventually(t, "the revocation to be counted", func() bool { return g.revocations("revoked") == 1 })
		if n := g.revocations("revoke_failed"); n != 1 {
			t.Errorf("%d tries are counted as failed", n)
		}
		if n := p.asked("/revoke"); n != 4 {
			t.Errorf("the provider was asked %d times", n)
		}
		if wait := tries[2].Sub(tries[1]); wait < time.Second/2 || wait > 15*time.Second { // a second, with room
			t.Errorf("it was asked again after %v", wait)
		}
	})
	t.Run("after a restart", func(t *testing.T) {
		g, p := startGateway(t, settings{}), newGrantor(t)
		order := false
		p.revoke = func() bool { return order }
		disconnected(t, g, p)
		rig.Eventually(t, "two tries to fail", func() bool { return g.revocations("revoke_failed") >= 2 })
		g.restart()
		p.set(func() { order = true })
		rig.Eventually(t, "the tokens to be revoked", p.toldAll)
		rig.Eventually(t, "the revocation to be counted", func() bool { return g.revocations("revoked") == 1 })
		if n := g.revocations("not_revoked"); n != 0 {
			t.Errorf("%d are counted as given up", n)
		}
	})
}
