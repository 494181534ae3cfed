package integration

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
)

// TestRekeyUnderLoad checks the case that the master key and the data keys are rotated under calls that come at a rate,
// each of which opens what the store holds sealed. None of them fails, the former master key is of no use afterwards,
// and nothing was ever stored that can be read (figure 22). Without REKEY_WHOLE the rotation of data keys is left
// before every gateway uses the new one, which takes a minute and a half. REKEY_RATE and REKEY_USERS make it harder.
func TestRekeyUnderLoad(t *testing.T) {
	t.Parallel()
	rate, users := rig.Number(t, "REKEY_RATE", 60), rig.Number(t, "REKEY_USERS", 40)
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	g := startGateway(t, settings{
		global: "servers {\nprotocols h1 h2 h2c\n}", // at a reload, connections of HTTP/1.1 can end under a call
		env:    []string{"DURWARD_NEW_KEY=" + base64.StdEncoding.EncodeToString(key)},
	})
	l := newSealedLoad(t, g, users)
	halt := sync.OnceFunc(atRate(rate, &l.serial, l.call))
	defer halt()
	further := func() {
		t.Helper()
		until := l.answered.Load() + int64(2*rate)
		g.eventually("calls go on", func() bool { return l.answered.Load() >= until })
	}
	further()

	former := g.written()
	reload := func(masters string) {
		t.Helper()
		config := strings.Replace(former, "{env.DURWARD_TEST_KEY}", masters, 1)
		if err := os.WriteFile(g.config, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		g.load(config)
		further()
	}
	reload("{env.DURWARD_NEW_KEY} {env.DURWARD_TEST_KEY}")
	if output, err := g.run("rekey", "--config", g.config, "--adapter", "caddyfile"); err != nil || !strings.Contains(output, "1 data key rewrapped") {
		t.Fatalf("%v: %s", err, output)
	}
	further()
	reload("{env.DURWARD_NEW_KEY}")

	rotate := func(says string) *process {
		t.Helper()
		p := startProcess(t, g.directory, g.command.Env, durward(t), "rekey", "--data-keys", "--config", g.config, "--adapter", "caddyfile")
		p.Poll(t, says, func() bool { return regexp.MustCompile(says).MatchString(p.output.String()) })
		further()
		return p
	}
	rotate(`made data key 2\n(.*\n)*\d+ values sealed anew; waiting until every gateway uses the new key`).kill()
	rotation := rotate(`going on with the rotation to data key 2: \d+ values? left\n(.*\n)*\d+ values? sealed anew`)
	if os.Getenv("REKEY_WHOLE") != "" {
		select {
		case <-rotation.exited:
		case <-time.After(suiteTimeout):
			t.Error("the rotation does not end")
		}
		if output := rotation.output.String(); rotation.Err != nil || !regexp.MustCompile(`all \d+ are sealed with data key 2\n$`).MatchString(output) {
			t.Errorf("%v: %s", rotation.Err, output)
		}
		further()
	}
	rotation.kill()
	t.Logf("the rotation said:\n%s", rotation.output)
	halt()
	l.judge()

	// Without the former key.
	g.stop(t)
	dump := map[string]string{"log": g.output.String()}
	g.readFiles(dump, "stopped")
	for where, text := range dump {
		if found := regexp.MustCompile(`(credential|provider)-of-[\w-]+`).FindString(text); found != "" {
			t.Errorf("%s: %s", where, found)
		}
	}
	env := slices.DeleteFunc(slices.Clone(g.command.Env), func(v string) bool { return strings.HasPrefix(v, "DURWARD_TEST_KEY=") })
	g.process = startProcess(t, g.directory, env, durward(t), g.command.Args[1:]...)
	g.waitFor(t, g.url+"/readyz")
	for range 10 * users {
		l.call(l.serial.Add(1))
	}
	for _, f := range l.failed {
		t.Errorf("without the former master key: %s", f)
	}
}

// sealedLoad makes calls for which a gateway opens sealed secrets in its store: of ten, six use a user's connection,
// three a model provider's secret by a key of the user's, and one connects a user anew. A new connection ends all
// cached facts of the organization, and the calls between two of them are of different users: every one reads the
// store.
type sealedLoad struct {
	t                *testing.T
	g                *gateway
	client           *http.Client
	server           server
	readers, writers []sealedUser
	serial, answered atomic.Int64
	begun            time.Time

	mu     sync.Mutex
	came   map[int64]string // the secret with which a call reached its upstream, by the call's number
	failed []string
	slow   time.Duration
}

type sealedUser struct {
	name, token, key string
	mu               *sync.Mutex
}

const providerSecret = "provider-of-rekey"

func newSealedLoad(t *testing.T, g *gateway, users int) *sealedLoad {
	t.Helper()
	two := new(http.Protocols)
	two.SetUnencryptedHTTP2(true)
	l := &sealedLoad{t: t, g: g, came: map[int64]string{}, client: &http.Client{Timeout: callTimeout, Transport: &http.Transport{Protocols: two}}}
	t.Cleanup(l.client.CloseIdleConnections)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		number := regexp.MustCompile(`number-(\d+)`).FindSubmatch(body)
		if err != nil || number == nil {
			t.Errorf("the upstream got %q, %v", body, err)
			return
		}
		n, _ := strconv.ParseInt(string(number[1]), 10, 64)
		l.mu.Lock()
		l.came[n] = strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		l.mu.Unlock()
		if r.URL.Path == "/mcp" {
			answerJSON(w, http.StatusOK, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}`, n))
			return
		}
		answerJSON(w, http.StatusOK, chatAnswer)
	}))
	t.Cleanup(upstream.Close)
	l.server = g.createServer(upstream.URL+"/mcp", map[string]any{"provider": "bearer_token", "requires_auth": true})
	boss := g.token(admin)
	provider := g.object(boss, http.MethodPost, llmBase+"/admin/providers", members{
		"name": "Stored", "kind": "openai", "base_url": upstream.URL + "/v1", "api_key": providerSecret,
	})
	g.object(boss, http.MethodPost, llmBase+"/admin/model-mappings", members{
		"model_alias": "stored", "targets": []any{members{"provider_id": provider["id"], "model": "gpt-real"}},
	})
	for i := range users {
		name := fmt.Sprintf("0190cccc-0000-7000-8000-%012d", i)
		u := sealedUser{name: name, token: g.token(alice.with(claims{"sub": name, "email": fmt.Sprintf("user%d@acme.test", i)})), mu: new(sync.Mutex)}
		u.key, _ = g.makeKey(u.token, "llm")
		g.connectBearer(u.token, l.server, "credential-of-"+name)
		if i%4 == 0 {
			l.writers = append(l.writers, u)
		} else {
			l.readers = append(l.readers, u)
		}
	}
	l.begun = time.Now()
	return l
}

// call makes one call, and compares the secret that reached the upstream with the caller's.
func (l *sealedLoad) call(n int64) {
	begun := time.Now()
	want, err := l.make(n)
	l.mu.Lock()
	defer l.mu.Unlock()
	if came := l.came[n]; err == nil && came != want {
		err = fmt.Errorf("the upstream got %q instead of %q", came, want)
	}
	delete(l.came, n)
	if err != nil {
		l.failed = append(l.failed, fmt.Sprintf("call %d: %v", n, err))
		return
	}
	l.slow = max(l.slow, time.Since(begun))
	l.answered.Add(1)
}

// make makes a call and returns the secret with which it has to reach its upstream.
func (l *sealedLoad) make(n int64) (want string, err error) {
	user := &l.readers[n%int64(len(l.readers))]
	switch n % 10 {
	case 0:
		user = &l.writers[n/10%int64(len(l.writers))]
		user.mu.Lock() // a new connection by another call must not come between
		defer user.mu.Unlock()
		want = fmt.Sprintf("credential-of-%s-%d", user.name, n)
		body, _ := json.Marshal(map[string]any{"bearer_token": want})
		if err := post(context.Background(), l.client, l.g.url+"/api/servers/"+l.server.ID+"/connect", user.token, string(body)); err != nil {
			return want, fmt.Errorf("connecting: %w", err)
		}
	case 2, 5, 8:
		return providerSecret, post(context.Background(), l.client, l.g.url+chatPath, user.key,
			fmt.Sprintf(`{"model":"stored","messages":[{"role":"user","content":"number-%d"}]}`, n))
	default:
		want = "credential-of-" + user.name
	}
	return want, post(context.Background(), l.client, l.g.url+l.server.path, user.token,
		fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"count","arguments":{"serial":"number-%d"}}}`, n, n))
}

// judge fails the test when a call has failed, or when the gateway says that it could not open something.
func (l *sealedLoad) judge() {
	l.t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, f := range l.failed {
		if i < 20 {
			l.t.Error(f)
		}
	}
	calls := l.serial.Load()
	l.t.Logf("%d calls (%.0f/s), %d failed, all within %v", calls, float64(calls)/time.Since(l.begun).Seconds(), len(l.failed), l.slow)
	if strings.Contains(l.g.output.String(), "cannot be opened") {
		l.t.Error("the gateway could not open what its store holds")
	}
}
