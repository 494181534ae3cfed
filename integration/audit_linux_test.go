package integration

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAuditFull checks that a call that cannot be recorded is not made, unless the configuration says best_effort; once
// there is room calls go on, and the log has no gap (Z-D01, Z-X01). Each kind of traffic has its own word.
func TestAuditFull(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		option        string
		mcp, sse, llm int
	}{
		"required":        {"", http.StatusServiceUnavailable, http.StatusServiceUnavailable, http.StatusServiceUnavailable},
		"best_effort mcp": {"audit {\n best_effort mcp\n }", http.StatusOK, http.StatusServiceUnavailable, http.StatusServiceUnavailable},
		"best_effort sse": {"audit {\n best_effort sse\n }", http.StatusServiceUnavailable, http.StatusOK, http.StatusServiceUnavailable},
		"best_effort llm": {"audit {\n best_effort llm\n }", http.StatusServiceUnavailable, http.StatusServiceUnavailable, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider := newLLMProvider(t, func(w http.ResponseWriter, _ *http.Request, _ string) { answerJSON(w, http.StatusOK, chatAnswer) })
			g := startGateway(t, settings{env: []string{"PROVIDER_KEY=sk-configured"}, option: tc.option + `
				provider openai house {
					base_url ` + provider.URL + `/v1
					key {env.PROVIDER_KEY}
				}
				alias small {
					target house gpt-real
				}`})
			party := newThirdParty(t)
			s := g.createServer(party.url()+"/open", members{"events_url": party.url() + "/open/events"})
			token := g.token(alice)
			session := g.initialize(token, s)
			g.callTool(token, s, session, "echo").want(t, http.StatusOK)
			g.send(http.MethodPost, chatPath, token, chatAsked).want(t, http.StatusOK)
			provider.calls()
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
			if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: uint64(info.Size()) + 10, Max: unix.RLIM_INFINITY}, &before); err != nil {
				t.Fatal(err)
			}
			seen := reached(party)
			a := g.callTool(token, s, session, "echo")
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
			const asked = 3
			for range asked {
				a := g.send(http.MethodPost, chatPath, token, chatAsked)
				if a.status != tc.llm || tc.llm != http.StatusOK && llmError(t, a) != "unavailable" {
					t.Errorf("a call to a model: status %d: %s", a.status, a.body)
				}
			}
			want := asked
			if tc.llm != http.StatusOK {
				want = 0
			}
			if came := provider.calls(); len(came) != want {
				t.Errorf("%d calls reached the provider, want %d", len(came), want)
			}
			if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &before, nil); err != nil {
				t.Fatal(err)
			}
			g.callTool(token, s, session, "echo").want(t, http.StatusOK)
			// A call that was made in spite of it is recorded when there is room again, or counted as lost.
			lost, err := strconv.Atoi(g.metric(`durward_audit_lost_total{where="journal"}`))
			if rows, _ := g.audit(g.token(admin), url.Values{"tool": {"small"}}); err != nil || len(rows)+lost < 1+want || tc.llm != http.StatusOK && len(rows) != 1 {
				t.Errorf("%d calls to models were made, %d are recorded, %d lost: %v", 1+want, len(rows), lost, err)
			}
			if rows, _ := g.audit(g.token(admin), url.Values{"tool": {"echo"}}); len(rows) < 2 {
				t.Errorf("%+v", rows)
			}
			g.mustVerifyAudit()
		})
	}
}
