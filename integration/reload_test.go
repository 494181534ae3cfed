package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// running is a gateway in the middle of its work: a connected user with a session and every kind of open stream.
type running struct {
	*gateway
	party             *thirdParty
	oauth             server // connected with OAuth
	user              string // alice's token
	session           string
	events, get, post *eventStream
}

func startRunning(t *testing.T, s settings) *running {
	t.Helper()
	r := &running{gateway: startGateway(t, s), party: newThirdParty(t)}
	r.user = r.token(alice)
	r.oauth = r.createServer(r.party.url()+"/mcp", map[string]any{"provider": "oauth2", "requires_auth": true, "events_url": r.party.url() + "/events"})
	r.connectOAuth(r.user, r.oauth).want(t, http.StatusOK)
	r.session = r.initialize(r.user, r.oauth)
	r.events = r.listen(http.MethodGet, "/sse/"+r.oauth.Slug, r.user, nil)
	if e := r.events.next(); e.name != "connected" {
		t.Fatalf("the first event is %v", e)
	}
	r.get = r.listen(http.MethodGet, r.oauth.path, r.user, nil, mcpHeader(r.session)...)
	r.post = r.listen(http.MethodPost, r.oauth.path, r.user, toolCall("stream"), mcpHeader(r.session)...)
	r.deliver("before")
	return r
}

// deliver fails the test unless every stream passes an event on.
func (r *running) deliver(word string) {
	r.t.Helper()
	data := `{"type":"issue","id":"` + word + `","changes":{}}`
	message := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + word + `"}}`
	for _, stream := range []struct {
		name  string
		open  *eventStream
		event event
	}{
		{"events", r.events, event{"data_update", data}}, {"get", r.get, event{"message", message}}, {"post", r.post, event{"message", message}},
	} {
		if n := r.party.publish(stream.name, stream.event.name, stream.event.data); n != 1 {
			r.t.Fatalf("%s: %d streams are open at the third party", stream.name, n)
		}
		stream.open.want(stream.event.name, stream.event.data)
	}
}

// call fails the test unless a tool can be called in the session from before.
func (r *running) call() {
	r.t.Helper()
	r.callTool(r.user, r.oauth, r.session, "echo").want(r.t, http.StatusOK)
}

// TestReload checks that a reload keeps streams, sessions, connections, caches and counters.
func TestReload(t *testing.T) {
	t.Parallel()
	r := startRunning(t, settings{})
	r.call()
	keys := r.identity.keyFetches()
	registrations, documents := r.party.counts()
	const calls, open = `durward_calls_total{family="mcp",result="ok"}`, `durward_open_streams{family="sse"}`
	counted, err := strconv.Atoi(r.metric(calls))
	if err != nil {
		t.Fatalf("%s: %v", calls, err)
	}
	changes := []string{r.written(),
		strings.Replace(r.written(), "egress {", "origins https://app.example\n\t\tegress {", 1),
		strings.Replace(r.written(), "egress {", "sizes {\n\t\t\tevent 2MiB\n\t\t}\n\t\tegress {", 1)}
	for i, changed := range changes {
		r.mustReload(changed)
		r.deliver("after " + strconv.Itoa(i))
		r.call()
	}
	if r.connection(r.user, r.oauth) != "connected" {
		t.Error("the connection is lost")
	}
	if got := r.identity.keyFetches(); got != keys {
		t.Errorf("the identity provider's keys were fetched %d times more", got-keys)
	}
	if a, b := r.party.counts(); a != registrations || b != documents {
		t.Errorf("clients were registered %d and metadata fetched %d times more", a-registrations, b-documents)
	}
	if got := r.metric(calls); got != strconv.Itoa(counted+len(changes)) {
		t.Errorf("%s is %s after %d calls more than %d", calls, got, len(changes), counted)
	}
	if got := r.metric(open); got != "1" {
		t.Errorf("%s is %s", open, got)
	}
	// A stream of the first configuration ends with its right like any other.
	r.api(r.user, http.MethodDelete, "/api/servers/"+r.oauth.ID+"/connection", nil)
	r.events.want("status_change", `{"reason":"disconnected","status":"disconnected"}`)
	if rest := append(append(r.events.ended(), r.get.ended()...), r.post.ended()...); len(rest) > 0 {
		t.Errorf("after the end of the connection came %v", rest)
	}
}

// TestReloadsLeaveNothing checks that configurations that were replaced are gone, and so are those that were refused,
// late ones too.
func TestReloadsLeaveNothing(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	config := g.written()
	g.mustReload(config)
	before, open := g.goroutines(), g.descriptors()
	// Everything is provisioned and some of it serves when this one finds that it cannot listen.
	refused := strings.Replace(config, "durward.db", "other.db", 1) + "\nhttp://:1 {\n\tbind 192.0.2.7\n\tdurward\n}\n"
	for range 5 {
		g.mustReload(config)
		if output, err := g.reload(refused); err == nil || !strings.Contains(output, "192.0.2.7") {
			t.Fatalf("a configuration that cannot listen: %v %s", err, output)
		}
	}
	g.eventually("the goroutines of configurations end", func() bool { return g.goroutines() <= before+2 })
	g.eventually("the files of configurations are closed", func() bool { return g.descriptors() <= open+4 })
	if left, err := filepath.Glob(filepath.Join(g.directory, "other.db-*")); err != nil || len(left) > 0 {
		t.Errorf("the store of a configuration that never ran is open: %v %v", left, err)
	}
}

// descriptors returns the number of files and sockets that the gateway has open; 0 where the system does not tell.
func (g *gateway) descriptors() int {
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", g.command.Process.Pid))
	if err != nil {
		return 0
	}
	return len(open)
}

// goroutines returns the number of goroutines of the gateway or its stores.
func (g *gateway) goroutines() int {
	g.t.Helper()
	total := 0
	for block := range strings.SplitSeq(g.admin("/debug/pprof/goroutine?debug=1"), "\n\n") {
		count, stack, _ := strings.Cut(block, " @ ")
		n, err := strconv.Atoi(strings.TrimSpace(count))
		if err == nil && strings.Contains(stack, "durward") {
			total += n
		}
	}
	return total
}

// eventually waits until holds returns true.
func (g *gateway) eventually(what string, holds func() bool) {
	g.t.Helper()
	rig.Eventually(g.t, what, holds)
}

// TestReloadRefused checks that a configuration that cannot be loaded changes nothing and says what is wrong with it.
func TestReloadRefused(t *testing.T) {
	t.Parallel()
	r := startRunning(t, settings{})
	line := func(config, text string) string {
		before, _, ok := strings.Cut(config, text)
		if !ok {
			t.Fatalf("%q is not in the configuration", text)
		}
		return "Caddyfile.new:" + strconv.Itoa(strings.Count(before, "\n")+1)
	}
	nowhere := "/proc/nowhere/durward.db"
	if r.database() != "" {
		nowhere = "{file./proc/nowhere}"
	}
	swap := func(old, replacement string) string { return strings.Replace(r.written(), old, replacement, 1) }
	for _, test := range []struct {
		name, config string
		at           string // text on the line that the message names
		says         string
	}{
		{"a bad word", swap("store ", "stoer "), "stoer", `unrecognized word "stoer"`},
		{"a bad word in a block", swap("http 127", "htpp 127"), "htpp", `unrecognized word "htpp"`},
		{"an unknown store", swap("store "+r.driver(), "store oracle"), "oracle", `unrecognized store "oracle"`},
		{"a key in the open", swap("{env.DURWARD_TEST_KEY}", strings.Repeat("ab", 32)), "master_key", "references"},
		{"an unknown family", swap("\n\tdurward\n}", "\n\tdurward mpc\n}"), "durward mpc", `"mpc"`},
		{"a key file that is missing", swap("{env.DURWARD_TEST_KEY}", "{file./nowhere/key}"), "", "{file./nowhere/key}"},
		{"a key variable that is missing", swap("{env.DURWARD_TEST_KEY}", "{env.DURWARD_NO_KEY}"), "", "{env.DURWARD_NO_KEY}"},
		{"another key", swap("{env.DURWARD_TEST_KEY}", "{env.DURWARD_OTHER_KEY}"), "", "DURWARD_OTHER_KEY"},
		{"a store that cannot be made", swap(r.place(), nowhere), "", "/proc/nowhere"},
	} {
		t.Run(test.name, func(t *testing.T) {
			output, err := r.reload(test.config)
			output = strings.ReplaceAll(output, `\"`, `"`) // it is part of a log line
			if err == nil {
				t.Fatalf("it was loaded: %s", output)
			}
			if !strings.Contains(output, test.says) {
				t.Errorf("%q is not said: %s", test.says, output)
			}
			if test.at != "" && !strings.Contains(output, line(test.config, test.at)) {
				t.Errorf("%s is not named: %s", line(test.config, test.at), output)
			}
		})
	}
	r.deliver("after")
	r.call()
	r.mustReload(r.written())
	r.deliver("at the end")
}

// driver and place are the words of the store's line.
func (g *gateway) driver() string {
	if g.database() != "" {
		return "postgres"
	}
	return "sqlite"
}

func (g *gateway) place() string {
	if g.database() != "" {
		return "{env.DURWARD_DATABASE_URL}"
	}
	return "durward.db"
}

// storeIsOpen looks from outside whether any process has the gateway's first store open.
func (g *gateway) storeIsOpen() bool {
	g.t.Helper()
	if database := g.database(); database != "" {
		return pgtest.Texts(g.t, database, `SELECT count(*)::text FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'durward'`)[0] != "0"
	}
	// SQLite removes the log of a database that no process has open any more.
	_, err := os.Stat(filepath.Join(g.directory, "durward.db-wal"))
	return err == nil
}

// TestReloadOfStore checks that another store takes over for new requests while the streams of the old one go on; it
// closes after the last of them.
func TestReloadOfStore(t *testing.T) {
	t.Parallel()
	var s settings
	other := "other.db"
	if s.onPostgres() {
		other = "{env.DURWARD_OTHER_DATABASE_URL}"
		s.env = []string{"DURWARD_OTHER_DATABASE_URL=" + pgtest.Database(t)}
	}
	r := startRunning(t, s)
	r.mustReload(strings.Replace(r.written(), r.place(), other, 1))
	r.deliver("after")
	r.callTool(r.user, r.oauth, "", "echo").want(t, http.StatusNotFound)
	server := r.createServer(r.party.url()+"/open", nil)
	r.callTool(r.user, server, "", "echo").want(t, http.StatusOK)
	if !r.storeIsOpen() {
		t.Error("the first store is closed under its streams")
	}
	r.events.close()
	r.get.close()
	r.post.close()
	r.eventually("the first store is closed", func() bool { return !r.storeIsOpen() })
	r.mustReload(r.written())
	r.call()
	if regexp.MustCompile(`(?i)"level":"error"`).MatchString(r.output.String()) {
		t.Error("the log has errors")
	}
}

// TestReloadOfIssuer checks that another issuer takes over for new requests while the streams of the old one's users go
// on; when it is back, everything is. Organizations are an issuer's own: the other one speaks for another.
func TestReloadOfIssuer(t *testing.T) {
	t.Parallel()
	r := startRunning(t, settings{})
	other := newIdentityProvider(t)
	r.mustReload(strings.Replace(r.written(), "identity oidc "+r.identity.issuer(), "identity oidc "+other.issuer(), 1))
	r.deliver("after")
	r.callTool(r.user, r.oauth, r.session, "echo").want(t, http.StatusUnauthorized)
	token := other.sign(other.complete(eve, r.url), map[string]any{"alg": "ES256", "typ": "at+jwt", "kid": kidES256})
	r.send(http.MethodGet, "/api/servers", token, nil).want(t, http.StatusOK)
	r.mustReload(r.written())
	r.deliver("at the end")
	r.call()
	r.send(http.MethodGet, "/api/servers", token, nil).want(t, http.StatusUnauthorized)
}

// TestReloadUnderTraffic checks that no request is refused because of a reload, on connections old and new. What Caddy
// itself does at a reload is not judged: it resets connections that wait for the old listener and closes those that are
// idle.
func TestReloadUnderTraffic(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	s := g.createServer(newThirdParty(t).url()+"/open", nil)
	stop, token := make(chan struct{}), g.token(alice)
	var callers sync.WaitGroup
	var calls atomic.Int64
	for i := range 4 {
		client := &http.Client{Timeout: callTimeout, Transport: &http.Transport{DisableKeepAlives: i%2 == 0}}
		t.Cleanup(client.CloseIdleConnections)
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				var refused *refusedError
				if err := call(client, g.url+s.path, token); errors.As(err, &refused) {
					t.Error(err)
				} else if err == nil {
					calls.Add(1)
				}
			}
		})
	}
	for range 8 {
		before := calls.Load()
		g.mustReload(g.written())
		g.eventually("calls go on", func() bool { return calls.Load() > before+4 })
	}
	close(stop)
	callers.Wait()
	t.Logf("%d calls", calls.Load())
}

// refusedError is an answer other than the tool's.
type refusedError struct {
	status int
	body   []byte
}

func (e *refusedError) Error() string { return fmt.Sprintf("status %d: %s", e.status, e.body) }

// call calls a tool, without a test to end.
func call(client *http.Client, address, token string) error {
	return post(context.Background(), client, address, token, toolCall("echo"))
}

// post posts a message; nil means that it was answered 200, to the end.
func post(ctx context.Context, client *http.Client, address, token, message string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(message))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = &refusedError{response.StatusCode, body}
	}
	return err
}
