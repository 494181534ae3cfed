package cluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
)

// upstream is an MCP server whose calls succeed and whose event streams send one event and stay open.
type upstream struct {
	server *httptest.Server
	calls  atomic.Int64
}

func newUpstream(t testing.TB) *upstream {
	t.Helper()
	u := new(upstream)
	u.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"n\":1}\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		u.calls.Add(1)
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`)
	}))
	t.Cleanup(func() {
		u.server.CloseClientConnections()
		u.server.Close()
	})
	return u
}

func (u *upstream) entry() members {
	return members{"url": u.server.URL + "/mcp", "events_url": u.server.URL + "/events"}
}

// right is a right that a trial takes away: until then the token calls the server and listens to it on every node.
type right struct {
	token  string
	server server
	take   func(n *node)
	// after checks a node's answer after that.
	after func(a answer) bool
	// reason is the reason in the last event of its streams.
	reason string
}

func status(codes ...int) func(a answer) bool {
	return func(a answer) bool {
		for _, code := range codes {
			if a.status == code {
				return true
			}
		}
		return false
	}
}

const keysPath = "/api/llm-gateway/user/api-keys"

// rights makes the rights to take away, by turns. It makes them through one node.
type rights struct {
	c      *cluster
	client *http.Client
	boss   string
	plain  server // needs no credential
	up     *upstream
	locked server // needs a credential
	ruled  server // has its policy disabled and enabled again

	nodeStops bool // before a key is revoked
}

func (c *cluster) newRights(up *upstream) *rights {
	c.t.Helper()
	r := &rights{c: c, client: newClient(c.t), boss: c.token(admin), up: up}
	n := c.nodes[0]
	r.plain, r.ruled = n.newServer(r.client, up.entry()), n.newServer(r.client, up.entry())
	entry := up.entry()
	entry["provider"], entry["requires_auth"] = "bearer_token", true
	r.locked = n.newServer(r.client, entry)
	return r
}

func leadsToConnect(a answer) bool { return rig.LeadsToConnect(a.status, a.body) }

var kinds = []string{"key", "policy", "server", "connection", "user", "session", "credential"}

func (r *rights) make(n *node, kind string) right {
	switch kind {
	case "key":
		token := r.c.token(atPage(person())) // one person may make 500 keys a day
		made := n.api(r.client, token, http.MethodPost, keysPath, members{"name": "Mine", "scopes": []string{"mcp"}})
		return right{token: made["key"].(string), server: r.plain, after: status(http.StatusUnauthorized), reason: "revoked", take: func(n *node) {
			path := keysPath + "/" + made["id"].(string)
			if r.nodeStops {
				n.apiWhenFree(r.client, token, http.MethodDelete, path)
				return
			}
			n.api(r.client, token, http.MethodDelete, path, nil)
		}}
	case "policy":
		n.api(r.client, r.boss, http.MethodPut, "/api/policy/enable?id="+r.ruled.policy, nil)
		denied := func(a answer) bool { return a.status == http.StatusOK && strings.Contains(string(a.body), `"error"`) }
		return right{token: r.c.token(alice), server: r.ruled, after: denied, reason: "policy", take: func(n *node) {
			n.api(r.client, r.boss, http.MethodPut, "/api/policy/disable?id="+r.ruled.policy, nil)
		}}
	case "server":
		s := n.newServer(r.client, r.up.entry())
		return right{token: r.c.token(alice), server: s, after: status(http.StatusNotFound), reason: "server_deleted", take: func(n *node) {
			n.api(r.client, r.boss, http.MethodDelete, "/api/servers/"+s.id, nil)
		}}
	case "connection":
		token := r.c.token(alice)
		n.api(r.client, token, http.MethodPost, "/api/servers/"+r.locked.id+"/connect", members{"bearer_token": "credential"})
		return right{token: token, server: r.locked, after: leadsToConnect, reason: "disconnected", take: func(n *node) {
			n.api(r.client, token, http.MethodDelete, "/api/servers/"+r.locked.id+"/connection", nil)
		}}
	case "user":
		token := r.c.token(atPage(person()))
		user := n.api(r.client, token, http.MethodPost, keysPath, members{"name": "Mine", "scopes": []string{"mcp"}})["user_id"].(string)
		return right{token: token, server: r.plain, after: status(http.StatusUnauthorized), reason: "revoked", take: func(n *node) {
			n.api(r.client, r.boss, http.MethodPost, "/api/users/"+user+"/revoke", members{})
		}}
	case "session":
		l := r.c.logIn(person())
		return right{token: l.access, server: r.plain, after: status(http.StatusUnauthorized), reason: "revoked", take: func(n *node) {
			n.api(r.client, l.access, http.MethodDelete, "/api/sessions/"+l.session(), nil)
		}}
	case "credential":
		agent := n.api(r.client, r.boss, http.MethodPost, "/api/agents", members{"application_directory": members{"external_id": fmt.Sprint("robot ", names.Add(1))}})
		path := "/api/agents/" + agent["id"].(string) + "/credentials"
		made := n.api(r.client, r.boss, http.MethodPost, path, members{})
		token := n.machineToken(r.client, made["client_id"].(string), made["client_secret"].(string))
		return right{token: token, server: r.plain, after: status(http.StatusUnauthorized), reason: "revoked", take: func(n *node) {
			n.api(r.client, r.boss, http.MethodDelete, path+"/"+made["id"].(string), nil)
		}}
	}
	panic(kind)
}

// machineToken logs an agent in without a person, for the whole gateway.
func (n *node) machineToken(client *http.Client, id, secret string) string {
	t := n.cluster.t
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {id}, "client_secret": {secret}}
	a := n.send(client, http.MethodPost, "/oauth/token", "", form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	var got struct {
		Access string `json:"access_token"`
	}
	if err := json.Unmarshal(a.body, &got); a.err != nil || err != nil || got.Access == "" {
		t.Fatalf("%s: no token for a machine: %v", n.name, a)
	}
	return got.Access
}

// stream is an open event stream at a node.
type stream struct {
	ended chan struct{}
	at    time.Time // read after ended
	last  string    // data of the last event
	close context.CancelFunc
}

// listen opens a stream once the node lets it.
func (n *node) listen(client *http.Client, r right) *stream {
	t := n.cluster.t
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s := &stream{ended: make(chan struct{}), close: cancel}
	var response *http.Response
	hung := time.AfterFunc(2*callTimeout, cancel) // where no head of an answer comes
	eventually(t, "a stream to open at "+n.name, func() bool {
		var err error
		if response, err = n.open(ctx, client, http.MethodGet, "/sse/"+r.server.slug, r.token, nil); err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusOK {
			_ = response.Body.Close()
		}
		return response.StatusCode == http.StatusOK
	})
	if !hung.Stop() {
		t.Fatalf("a stream at %s opened too late", n.name)
	}
	begun := make(chan struct{})
	go func() {
		defer close(s.ended)
		defer response.Body.Close()
		lines := bufio.NewScanner(response.Body)
		for said := 0; lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				s.last = data
				if said++; said == 2 { // that it is connected, and the upstream's event
					close(begun)
				}
			}
		}
		s.at = time.Now()
	}()
	select {
	case <-begun:
	case <-s.ended:
		t.Fatalf("a stream at %s ended with %s before it had begun", n.name, s.last)
	case <-time.After(callTimeout):
		t.Fatalf("a stream at %s does not begin", n.name)
	}
	return s
}

// outcome holds the times at which a right ended, counted from the answer to its removal.
type outcome struct {
	refused, cut time.Duration // at the last node
	own          bool          // the node that removed it refused from the first call on
	trouble      []string
}

// end removes a right through one node and watches all nodes in watched.
func (r right) end(by *node, watched []*node) outcome {
	t := by.cluster.t
	t.Helper()
	client := newClient(t)
	defer client.CloseIdleConnections()
	streams := make([]*stream, len(watched))
	for i, n := range watched {
		eventually(t, n.name+" to let the call pass", func() bool { return n.call(client, r.token, r.server).passed() })
		streams[i] = n.listen(client, r)
		defer streams[i].close()
	}
	r.take(by)
	taken := time.Now()
	var mu sync.Mutex
	o := outcome{own: true}
	note := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		o.trouble = append(o.trouble, fmt.Sprintf(format, args...))
	}
	var all sync.WaitGroup
	for i, n := range watched {
		all.Go(func() {
			ticker := time.NewTicker(5 * time.Millisecond)
			defer ticker.Stop()
			for tries := 0; ; tries++ {
				a := n.call(client, r.token, r.server)
				now := time.Since(taken)
				if a.passed() && now < callTimeout {
					<-ticker.C
					continue
				}
				mu.Lock()
				o.refused = max(o.refused, now)
				o.own = o.own && (n != by || tries == 0)
				mu.Unlock()
				if !r.after(a) {
					note("%s answers %v", n.name, a)
				}
				break
			}
			select {
			case <-streams[i].ended:
				mu.Lock()
				o.cut = max(o.cut, streams[i].at.Sub(taken))
				mu.Unlock()
				if !strings.Contains(streams[i].last, `"reason":"`+r.reason+`"`) {
					note("a stream at %s ended with %s instead of %s", n.name, streams[i].last, r.reason)
				}
			case <-time.After(callTimeout):
				note("a stream at %s goes on", n.name)
				mu.Lock()
				o.cut = max(o.cut, callTimeout)
				mu.Unlock()
			}
			if a := n.call(client, r.token, r.server); !r.after(a) {
				note("%s answers %v after it had refused", n.name, a)
			}
		})
	}
	all.Wait()
	return o
}

// revoke removes rights of every kind, through every node, and prints the latest times at which they ended. disturb,
// when there is one, runs right before.
func (c *cluster) revoke(r *rights, trials int, promised time.Duration, disturb func()) {
	c.t.Helper()
	worst := make(map[string]outcome)
	for i := range trials {
		kind, by := kinds[i%len(kinds)], c.nodes[i/len(kinds)%size]
		taken := r.make(c.nodes[(i+1)%size], kind)
		if take := taken.take; disturb != nil {
			taken.take = func(n *node) {
				disturb()
				take(n)
			}
		}
		o := taken.end(by, c.nodes)
		if !o.own {
			c.t.Errorf("%s: %s itself let a call pass after its answer", kind, by.name)
		}
		for _, trouble := range o.trouble {
			c.t.Errorf("%s through %s: %s", kind, by.name, trouble)
		}
		worst[kind] = outcome{refused: max(o.refused, worst[kind].refused), cut: max(o.cut, worst[kind].cut)}
		if c.t.Failed() {
			c.t.Fatalf("trial %d", i+1)
		}
	}
	for _, kind := range kinds {
		o := worst[kind]
		c.t.Logf("%-10s %d trials: refused on every node after %v, streams cut after %v at the latest (promised: %v)",
			kind, trials/len(kinds), o.refused.Round(time.Millisecond), o.cut.Round(time.Millisecond), promised)
		if o.refused > within(promised) || o.cut > within(promised) {
			c.t.Errorf("%s: later than %v", kind, within(promised))
		}
	}
}

// TestRevocation checks that a right that is removed through one node is refused by every node within a second, and
// open streams are cut.
func TestRevocation(t *testing.T) {
	c := startCluster(t)
	c.revoke(c.newRights(newUpstream(t)), number(t, "CLUSTER_TRIALS", 30), time.Second, nil)
}

// TestRevocationUnnotified checks the same within two seconds when the database's notifications do not arrive (Z-N02).
func TestRevocationUnnotified(t *testing.T) {
	c := startCluster(t)
	r := c.newRights(newUpstream(t))
	for _, n := range c.nodes {
		n.store.Keep('A')
	}
	c.revoke(r, max(len(kinds), number(t, "CLUSTER_TRIALS", 5)/10), 2*time.Second, nil)
}

// TestRevocationSilent: Z-N02, within three seconds when the connections on which the nodes listen are open and silent from that
// moment on: the processes at their other end stand still.
func TestRevocationSilent(t *testing.T) {
	c := startCluster(t)
	r := c.newRights(newUpstream(t))
	var still []int
	wake := func() {
		for _, pid := range still {
			if err := syscall.Kill(pid, syscall.SIGCONT); err != nil && !errors.Is(err, syscall.ESRCH) { // it may have ended
				t.Error(err)
			}
		}
	}
	t.Cleanup(wake)
	c.revoke(r, max(len(kinds), number(t, "CLUSTER_TRIALS", 5)/100), 3*time.Second, func() {
		wake()
		eventually(t, "processes that stood still to end", func() bool {
			return !slices.ContainsFunc(still, func(pid int) bool { return slices.Contains(c.listening(), pid) })
		})
		eventually(t, "all nodes to listen", func() bool {
			still = c.listening()
			return len(still) == size
		})
		for _, pid := range still {
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// listening returns the database's processes that serve the nodes' dedicated connections and are idle at the moment.
func (c *cluster) listening() (pids []int) {
	c.t.Helper()
	for _, text := range strings.Fields(c.database.Query(c.t, `SELECT COALESCE(string_agg(pid::text, ' '), '') FROM pg_stat_activity WHERE state = 'idle' AND
		(query LIKE 'SELECT pg_snapshot_xmin%' OR query = 'SELECT organization_id FROM change_log WHERE seq = $1')`)) {
		pid, err := strconv.Atoi(text)
		if err != nil {
			c.t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// TestRevocationUnheard checks the same when the database ends the connections on which the nodes listen at that moment
// (Z-N02).
func TestRevocationUnheard(t *testing.T) {
	c := startCluster(t)
	r := c.newRights(newUpstream(t))
	c.revoke(r, max(len(kinds), number(t, "CLUSTER_TRIALS", 5)/10), 2*time.Second, func() {
		c.database.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_snapshot_xmin%' AND pid <> pg_backend_pid()`)
	})
}
