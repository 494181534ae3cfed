package integration

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const keysPath = "/api/llm-gateway/user/api-keys"

// approvalConsole is the client with which users decide on held calls, and make keys for MCP servers.
const approvalConsole = "approval_clients console"

// consoleToken returns a token of that client.
func (g *gateway) consoleToken(c claims) string {
	return g.token(c.with(claims{"azp": "console", "client_id": "console"}))
}

// makeKey makes a key for a user.
func (g *gateway) makeKey(token string, scopes ...string) (raw, id string) {
	g.t.Helper()
	made := g.object(token, http.MethodPost, keysPath, members{"name": "Mine", "scopes": scopes})
	return made["key"].(string), made["id"].(string)
}

// TestAPIKeys checks that a key calls as its user, in either header, until it is revoked: the answer to that comes
// after the last call that was let through, and its streams end.
func TestAPIKeys(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{site: "log", option: approvalConsole})
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		if r.URL.Path == "/events" {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"n\":1}\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		answerTo(w, body, `{"content":[]}`)
	})
	s := g.createServer(up.url, members{"events_url": up.server.URL + "/events"})
	user, boss := g.consoleToken(alice), g.token(admin)
	key, id := g.makeKey(user, "mcp")
	other, _ := g.makeKey(user, "llm")
	ping := func(token string, header ...string) answer {
		return g.send(http.MethodPost, s.path, token, pingMessage, append([]string{"Accept", bothKinds}, header...)...)
	}
	ping(key).want(t, http.StatusOK)
	ping("", "X-Api-Key", key).want(t, http.StatusOK)
	ping(key, "X-Api-Key", key).want(t, http.StatusOK)
	if a := g.callTool(key, s, "", "tool"); a.status != http.StatusOK || !strings.Contains(string(a.body), `"content":[]`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	ping(other).wantError(t, http.StatusForbidden, "Forbidden") // K07
	ping(key, "X-Api-Key", other).wantError(t, http.StatusUnauthorized, "Unauthorized")
	for _, path := range []string{"/api/servers", keysPath, "/api/approvals", "/api/llm-gateway/admin/api-keys"} {
		g.send(http.MethodGet, path, key, nil).wantError(t, http.StatusUnauthorized, "Unauthorized")
	}
	if strings.Contains(up.bytes(), key) {
		t.Error("the upstream saw the key")
	}

	t.Run("audit", func(t *testing.T) {
		var page struct {
			Data []struct {
				Kind, Tool string
				UserID     string `json:"user_id"`
				Detail     members
			}
		}
		g.send(http.MethodGet, "/api/audit?limit=100&kind=call", boss, nil).want(t, http.StatusOK).decode(t, &page)
		found := false
		for _, r := range page.Data {
			found = found || r.Detail["api_key_id"] == id && r.Tool == "tool" && r.UserID != ""
		}
		if !found {
			t.Errorf("no record says which key it was: %+v", page.Data)
		}
	})

	t.Run("K02 revoked", func(t *testing.T) {
		events := g.listen(http.MethodGet, "/sse/"+s.Slug, key, nil)
		if e := events.next(); e.name != "connected" {
			t.Errorf("the first event is %+v", e)
		}
		events.next()
		revoked, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for late := 0; late < 100; {
				want := []int{http.StatusOK, http.StatusUnauthorized} // until the answer
				select {
				case <-revoked:
					late++
					want = want[1:]
				default:
				}
				if a := ping(key); !slices.Contains(want, a.status) {
					t.Errorf("answered %d, not %v", a.status, want)
				}
			}
		}()
		g.api(user, http.MethodDelete, keysPath+"/"+id, nil)
		close(revoked)
		at := time.Now()
		last := events.ended()
		t.Logf("the stream ended %v after the answer", time.Since(at))
		if len(last) != 1 || last[0].name != "status_change" || last[0].data != `{"reason":"revoked","status":"disconnected"}` {
			t.Errorf("the stream ended with %+v", last)
		}
		<-done
		g.send(http.MethodGet, "/sse/"+s.Slug, key, nil).wantError(t, http.StatusUnauthorized, "Unauthorized")
	})

	t.Run("T12 guesses", func(t *testing.T) {
		known, _ := g.makeKey(user, "mcp")
		ping(known).want(t, http.StatusOK)
		told := make(map[int]int)
		for i := range 150 {
			a := ping(fmt.Sprintf("dw-%049d", i), "X-Forwarded-For", fmt.Sprint("203.0.113.", i)) // T04
			if told[a.status]++; a.status == http.StatusTooManyRequests && a.header.Get("Retry-After") == "" {
				t.Error("429 without Retry-After")
			}
		}
		if told[http.StatusUnauthorized] == 0 || told[http.StatusUnauthorized] > 60 || told[http.StatusUnauthorized]+told[http.StatusTooManyRequests] != 150 {
			t.Errorf("answered %v", told)
		}
		ping(known).want(t, http.StatusOK)
		ping(g.token(bob)).want(t, http.StatusOK)
	})

	g.stop(t)
	log := g.output.String()
	if !strings.Contains(log, `"api_key":"`+id+`"`) {
		t.Error("the access log does not say which key it was")
	}
	for _, raw := range []string{key, other} {
		if strings.Contains(log, raw) {
			t.Error("the log holds a key")
		}
		err := filepath.WalkDir(g.directory, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			if strings.Contains(string(content), raw) {
				t.Errorf("%s holds a key", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
