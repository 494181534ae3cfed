package integration

import (
	"crypto/tls"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
)

// TestReloadUnderLoadTLS checks calls over TLS across reloads, also on kept connections of HTTP/1.1, which cannot be
// passed on: at most one is lost in all, and none that ran, as long as each connection has two calls a second.
// RELOAD_RATE and RELOAD_COUNT make it longer. No other test of the package runs beside it: what needs more than half a
// second for its handshake is lost, as is said.
func TestReloadUnderLoadTLS(t *testing.T) {
	rate, reloads := rig.Number(t, "RELOAD_RATE", 100), rig.Number(t, "RELOAD_COUNT", 4)
	g := startGateway(t, settings{global: "skip_install_trust\n\tauto_https disable_redirects"})
	up := newNumbered(t)
	s := g.createServer(up.server.URL+"/mcp", nil)
	port := freePort(t)
	caddyfile := g.written() + fmt.Sprintf("\nhttps://localhost:%s {\n\tbind 127.0.0.1\n\ttls internal\n\tdurward\n}\n", port)
	g.load(caddyfile)
	trusting := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the certificate is made for this test
	g.eventually("the site has a certificate", func() bool {
		connection, err := tls.Dial("tcp", "localhost:"+port, trusting)
		return err == nil && connection.Close() == nil
	})

	c := newCallers("https://localhost:"+port+s.path, g.token(alice), rate, trusting)
	g.eventually("calls are answered", func() bool { return c.answered.Load() > 0 })
	began, first := time.Now(), c.serial.Load()
	var took time.Duration
	for range reloads {
		loading := time.Now()
		g.load(caddyfile)
		took += time.Since(loading)
		answered := c.answered.Load()
		g.eventually("calls go on", func() bool { return c.answered.Load() >= answered+int64(max(rate/5, 1)) })
	}
	perSecond := float64(c.serial.Load()-first) / time.Since(began).Seconds()
	c.stop()
	lost := c.judge(t, up)
	slices.Sort(c.took)
	judged := lost
	if os.Getenv("RELOAD_COUNT") == "" && c.took[len(c.took)/2] > time.Second/4 {
		judged.kept = 0 // so slow a machine needs so many connections that each has under two calls a second
	}
	if judged.total() > 1 {
		t.Errorf("%s", lost)
	}
	t.Logf("%d reloads (%v each), %d calls (%.0f/s, half within %v, all within %v): %s", reloads, took/time.Duration(reloads),
		c.serial.Load(), perSecond, c.took[len(c.took)/2], c.took[len(c.took)-1], lost)
}
