package integration

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAuditFull: Z-D01, Z-X01: a call that cannot be recorded is not made, unless the configuration says best_effort; once
// there is room calls go on, and the log has no gap. Each kind of traffic has its own word.
func TestAuditFull(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		option   string
		mcp, sse int
	}{
		"required":        {"", http.StatusServiceUnavailable, http.StatusServiceUnavailable},
		"best_effort mcp": {"audit {\n best_effort mcp\n }", http.StatusOK, http.StatusServiceUnavailable},
		"best_effort sse": {"audit {\n best_effort sse\n }", http.StatusServiceUnavailable, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, settings{option: tc.option})
			party := newThirdParty(t)
			s := g.createServer(party.url()+"/open", members{"events_url": party.url() + "/open/events"})
			token := g.token(alice)
			session := g.initialize(token, s)
			g.callTool(token, s, session, "echo").want(t, http.StatusOK)
			// Files may not grow beyond what the journal has: writes fail like on a full disk.
			journal, err := filepath.Glob(filepath.Join(g.local(), "audit", "*", "*.ndjson"))
			if err != nil || len(journal) == 0 {
				t.Fatal(journal, err)
			}
			info, err := os.Stat(journal[len(journal)-1])
			if err != nil {
				t.Fatal(err)
			}
			var before unix.Rlimit
			pid := g.command.Process.Pid
			if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(info.Size()) + 100, Max: unix.RLIM_INFINITY}, &before); err != nil {
				t.Fatal(err)
			}
			// What the journal has laid out ahead is still written.
			seen := reached(party)
			a := g.callTool(token, s, session, "echo")
			for calls := 0; a.status == http.StatusOK && calls < 1_000; calls++ {
				seen = reached(party)
				a = g.callTool(token, s, session, "echo")
			}
			if a.status != tc.mcp || tc.mcp != http.StatusOK && reached(party) != seen {
				t.Errorf("status %d, %d calls reached the third party: %s", a.status, reached(party)-seen, a.body)
			}
			seen = reached(party)
			ctx, cancel := cancellable(t)
			stream := g.open(ctx, http.MethodGet, "/sse/"+s.Slug, token, nil)
			cancel()
			_ = stream.Body.Close()
			if stream.StatusCode != tc.sse || tc.sse != http.StatusOK && reached(party) != seen {
				t.Errorf("the stream: status %d, %d requests reached the third party", stream.StatusCode, reached(party)-seen)
			}
			if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &before, nil); err != nil {
				t.Fatal(err)
			}
			g.callTool(token, s, session, "echo").want(t, http.StatusOK)
			if rows, _ := g.audit(g.token(admin), url.Values{"tool": {"echo"}}); len(rows) < 2 {
				t.Errorf("%+v", rows)
			}
			g.mustVerifyAudit()
		})
	}
}
