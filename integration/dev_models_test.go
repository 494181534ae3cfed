package integration

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
)

// asked sends a request about models with a JSON body, or with none.
func (d *dev) asked(t *testing.T, token, method, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, d.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	return devAnswer(t, request)
}

// tokenOf returns a token of the client that stands for an agent.
func (d *dev) tokenOf(t *testing.T, user string) string {
	t.Helper()
	return d.tokenWith(t, user, "dev-agent")
}

func (d *dev) tokenWith(t *testing.T, user, client string) string {
	t.Helper()
	got := d.home.command(t, "token", "--as", user, "--agent", client, "--url", d.url)
	if got.code != 0 {
		t.Fatalf("token: exit code %d: %s", got.code, got.stderr)
	}
	return strings.TrimSpace(got.stdout)
}

// TestDevModels checks that the demo models answer at every address, for every organization, also after a restart; the
// smart model is acme's. A reset knows what usage leaves behind.
func TestDevModels(t *testing.T) {
	t.Parallel()
	home := newDevHome(t)
	d := home.start(t)
	for user, want := range map[string]string{"alice@example.test": "auto embed large medium small", "eve@rival.test": "embed large medium small"} {
		var list struct{ Data []struct{ ID string } }
		_, body := d.asked(t, d.tokenOf(t, user), http.MethodGet, llmBase+"/v1/models", "")
		if err := json.Unmarshal([]byte(body), &list); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		var ids []string
		for _, m := range list.Data {
			ids = append(ids, m.ID)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s has %s", user, got)
		}
	}
	everywhere := func(d *dev) {
		t.Helper()
		token := d.tokenOf(t, "alice@example.test")
		for path, body := range map[string]string{
			"chat/completions": `{"model":"auto","messages":[{"role":"user","content":"Hi"}]}`,
			"messages":         `{"model":"auto","max_tokens":99,"messages":[{"role":"user","content":"Hi"}]}`,
			"responses":        `{"model":"medium","input":"Hi"}`,
			"embeddings":       `{"model":"embed","input":"Hi"}`,
		} {
			if status, got := d.asked(t, token, http.MethodPost, llmBase+"/v1/"+path, body); status != http.StatusOK || !strings.Contains(got, `"demo-`) {
				t.Errorf("%s: %d %s", path, status, got)
			}
		}
	}
	everywhere(d)
	if code := d.end(t, syscall.SIGTERM); code != 0 {
		t.Errorf("SIGTERM: exit code %d", code)
	}
	d = home.start(t)
	everywhere(d)
	// Killed, it leaves what it had not stored yet.
	_ = d.process.command.Process.Kill()
	<-d.process.exited
	if err := os.Remove(home.file("data", "address")); err != nil {
		t.Fatal(err)
	}
	everywhere(home.start(t, "--reset"))
}
