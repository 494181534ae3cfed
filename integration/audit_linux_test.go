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
// there is room calls go on, and the log has no gap.
func TestAuditFull(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]string{"required": "", "best_effort": "audit {\n best_effort mcp\n }"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, settings{option: option})
			party := newThirdParty(t)
			s := g.createServer(party.url()+"/open", nil)
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
			switch {
			case name == "required" && (a.status != http.StatusServiceUnavailable || reached(party) != seen):
				t.Errorf("status %d, %d calls reached the third party: %s", a.status, reached(party)-seen, a.body)
			case name == "best_effort" && a.status != http.StatusOK:
				t.Errorf("status %d: %s", a.status, a.body)
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

// reached is how many requests have come to a third party's /open.
func reached(p *thirdParty) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.seen)
}
