package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"
)

// holder is a server whose calls need their user's approval.
type holder struct {
	c        *cluster
	client   *http.Client
	up       *upstream
	server   server
	caller   string // token of the agent
	approver string // token of the client with which the same user decides
}

func (c *cluster) newHolder() *holder {
	c.t.Helper()
	h := &holder{c: c, client: newClient(c.t), up: newUpstream(c.t)}
	h.caller, h.approver = c.token(alice), h.tokenOf("approver")
	h.server = c.nodes[0].newServerUnder(h.client, h.up.entry(), members{"name": "asks", "authorized": true, "actions": []string{"tools/call:echo:approve"}})
	for _, n := range c.nodes {
		eventually(c.t, n.name+" to know the server", func() bool {
			return n.send(h.client, http.MethodGet, "/api/servers/"+h.server.id, h.caller, nil).status == http.StatusOK
		})
	}
	return h
}

func (h *holder) tokenOf(client string) string {
	return h.c.token(members{"sub": alice["sub"], "email": alice["email"], "client_id": client, "azp": client})
}

// nextRound calls through a client of its own: a gateway asks a user about no more than 120 calls of a client in ten minutes.
func (h *holder) nextRound(i int) { h.caller = h.tokenOf(fmt.Sprint("caller-", i)) }

// These are the capabilities of clients.
const (
	knowsNothing = `{}`
	opensPages   = `{"elicitation":{"url":{}}}`
)

// call calls the tool with an argument; state is the state from an earlier answer.
func (h *holder) call(n *node, client *http.Client, argument int, capabilities, state string) answer {
	more := ""
	if state != "" {
		quoted, _ := json.Marshal(state)
		more = `,"inputResponses":{"durward_approval":{"action":"accept"}},"requestState":` + string(quoted)
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"n":%d},"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}%s}}`, argument, capabilities, more)
	return n.send(client, http.MethodPost, "/mcp/"+h.server.slug, h.caller, body, "Accept", "application/json, text/event-stream",
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "echo")
}

var page = regexp.MustCompile(`/approvals/([0-9a-f-]{36})`)

// held returns the id of the approval that an answer names, and the state to bring along, if any.
func (h *holder) held(a answer) (id, state string) {
	h.c.t.Helper()
	found := page.FindSubmatch(a.body)
	if a.status != http.StatusOK || found == nil {
		h.c.t.Fatalf("the call is not held: %v", a)
	}
	var said struct{ Result struct{ RequestState string } }
	if err := json.Unmarshal(a.body, &said); err != nil {
		h.c.t.Fatal(err)
	}
	return string(found[1]), said.Result.RequestState
}

func (h *holder) approve(n *node, id string) { h.say(n, id, "approve") }

func (h *holder) say(n *node, id, word string) {
	h.c.t.Helper()
	n.api(h.client, h.approver, http.MethodPost, "/api/approvals/"+id+"/"+word, nil)
}

// TestApprovals checks that a call that one node holds is approved on another and passes on any of them, once, however
// many try.
func TestApprovals(t *testing.T) {
	c := startCluster(t)
	h := c.newHolder()
	const tries = 30
	rounds := number(t, "CLUSTER_APPROVALS", 5)
	var slowest time.Duration
	for i := range rounds {
		h.nextRound(i)
		holds, decides := c.nodes[i%size], c.nodes[(i+1)%size]
		before := h.up.calls.Load()
		id, _ := h.held(h.call(holds, h.client, i, knowsNothing, ""))
		h.approve(decides, id)
		var mu sync.Mutex
		var passed int
		var all sync.WaitGroup
		for try := range tries {
			all.Go(func() {
				if h.call(c.nodes[(i+2+try)%size], h.client, i, knowsNothing, "").passed() {
					mu.Lock()
					defer mu.Unlock()
					passed++
				}
			})
		}
		all.Wait()
		if ran := h.up.calls.Load() - before; passed != 1 || ran != 1 {
			t.Fatalf("round %d: of %d calls %d passed, and %d ran", i, tries, passed, ran)
		}
		// The tries that came too late ask anew: too many of those that wait, and a client gets no more.
		id, _ = h.held(h.call(holds, h.client, i, knowsNothing, ""))
		h.say(decides, id, "deny")

		// The client of a call that waits at one node is answered when the word is said at another.
		_, state := h.held(h.call(holds, h.client, -1-i, opensPages, ""))
		waits := make(chan answer, 1)
		go func() { waits <- h.call(holds, newClient(t), -1-i, opensPages, state) }()
		id, _ = h.held(h.call(decides, h.client, -1-i, opensPages, ""))
		h.approve(decides, id)
		said := time.Now()
		select {
		case a := <-waits:
			slowest = max(slowest, time.Since(said))
			if !a.passed() {
				t.Fatalf("round %d: after the word: %v", i, a)
			}
		case <-time.After(callTimeout):
			t.Fatal("the call waits on")
		}
	}
	if slowest > within(2*time.Second) {
		t.Errorf("a call waited for %v after the word", slowest)
	}
	t.Logf("%d calls held on one node, approved on another: of %d tries on all nodes 1 passed each time; a call that waited was answered within %v of the word",
		rounds, tries, slowest.Round(time.Millisecond))
}

// TestApprovalsKilled checks the case that the node that holds a call dies. The word is said on another, and the call
// passes on the third, once.
func TestApprovalsKilled(t *testing.T) {
	c := startCluster(t)
	h := c.newHolder()
	kills := number(t, "CLUSTER_KILLS", 1)
	for i := range kills {
		h.nextRound(i)
		holds, decides, runs := c.nodes[i%size], c.nodes[(i+1)%size], c.nodes[(i+2)%size]
		before := h.up.calls.Load()
		id, state := h.held(h.call(holds, h.client, i, opensPages, ""))
		waits := make(chan answer, 1)
		go func() { waits <- h.call(holds, newClient(t), i, opensPages, state) }()
		eventually(t, "the call to wait", func() bool {
			a := holds.send(h.client, http.MethodGet, "/api/approvals/"+id, h.approver, nil)
			return a.status == http.StatusOK
		})
		holds.Kill()
		switch a := <-waits; {
		case a.err == nil:
			t.Fatalf("a node that was killed answers %v", a)
		case errors.Is(a.err, syscall.ECONNREFUSED):
			t.Fatal("the node was dead before it held the call")
		}
		h.approve(decides, id)
		if a := h.call(runs, h.client, i, opensPages, state); !a.passed() {
			t.Errorf("after the word: %v", a)
		}
		holds.restart()
		if a := h.call(holds, h.client, i, opensPages, state); a.passed() {
			t.Errorf("once more: %v", a)
		}
		if ran := h.up.calls.Load() - before; ran != 1 {
			t.Errorf("%d calls ran", ran)
		}
	}
	t.Logf("%d nodes killed that held a call: it passed on another node after the word, once", kills)
}
