package approval_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// plain seals nothing, but puts the place in front.
type plain struct{}

func (plain) Seal(p []byte, ad seal.AD) ([]byte, error) {
	return append(fmt.Append(nil, ad, "|"), p...), nil
}

func (plain) Open(p []byte, ad seal.AD) ([]byte, error) {
	prefix := fmt.Sprint(ad, "|")
	if len(p) < len(prefix) || string(p[:len(prefix)]) != prefix {
		return nil, seal.ErrOpen
	}
	return p[len(prefix):], nil
}

func newEngine(store approval.Store, bell *approval.Bell, now func() time.Time) *approval.Engine {
	return approval.New(approval.Options{Store: store, Vault: plain{}, Bell: bell, Clients: []string{"console", "agent-b"}, Now: now})
}

func call() *approval.Call {
	return &approval.Call{
		OrganizationID: "o", UserID: "alice", AgentID: "1", Client: "agent-a", ServerID: "s", Tool: "delete", Definition: "d1", PolicyID: "p",
		PolicyRevision: 1, Arguments: []byte(`{"id":1}`), Channel: storage.ChannelInBand,
	}
}

var console = approval.Decider{OrganizationID: "o", UserID: "alice", Client: "console"}

// TestChannel checks that only registered agents with this right are asked in band, and not when the rule demands the
// other channel.
func TestChannel(t *testing.T) {
	internal, external := &storage.Agent{}, &storage.Agent{Application: storage.Application{DCR: true}}
	trusted := &storage.Agent{Application: storage.Application{DCR: true}, ApprovalChannel: storage.ChannelInBand}
	for _, tc := range []struct {
		name     string
		agent    *storage.Agent
		demanded bool
		want     storage.ApprovalChannel
	}{
		{"internal", internal, false, storage.ChannelInBand},
		{"internal, demanded", internal, true, storage.ChannelOutOfBand},
		{"external", external, false, storage.ChannelOutOfBand},
		{"external, trusted", trusted, false, storage.ChannelInBand},
		{"not registered", nil, false, storage.ChannelOutOfBand},
	} {
		if got := approval.ChannelFor(tc.agent, tc.demanded); got != tc.want {
			t.Errorf("%s: %s", tc.name, got)
		}
	}
}

// TestBinding checks that every fact of an approval changes the binding, and that fields cannot run together.
func TestBinding(t *testing.T) {
	seen := map[string]string{string(call().Binding()): "none"}
	for name, change := range map[string]func(*approval.Call){
		"organization":                       func(c *approval.Call) { c.OrganizationID = "o2" },
		"user":                               func(c *approval.Call) { c.UserID = "bob" },
		"agent":                              func(c *approval.Call) { c.AgentID = "2" },
		"client":                             func(c *approval.Call) { c.Client = "agent-b" },
		"server":                             func(c *approval.Call) { c.ServerID = "s2" },
		"upstream":                           func(c *approval.Call) { c.Upstream = "https://b.example.com" },
		"account":                            func(c *approval.Call) { c.Account = "b" },
		"upstream and account exchanged":     func(c *approval.Call) { c.Upstream, c.Account = "", "https://b.example.com" },
		"tool":                               func(c *approval.Call) { c.Tool = "delet" },
		"M13 another definition of the tool": func(c *approval.Call) { c.Definition = "d2" },
		"policy":                             func(c *approval.Call) { c.PolicyID = "p2" },
		"M15 another revision":               func(c *approval.Call) { c.PolicyRevision = 2 },
		"arguments":                          func(c *approval.Call) { c.Arguments = []byte(`{"id":2}`) },
		"a number's spelling":                func(c *approval.Call) { c.Arguments = []byte(`{"id":1.0}`) },
		"task":                               func(c *approval.Call) { c.Beside = []byte(`{"task":{}}`) },
		"another task":                       func(c *approval.Call) { c.Beside = []byte(`{"task":{"ttl":1}}`) },
		"a task among the arguments":         func(c *approval.Call) { c.Arguments = []byte(`{"id":1}{"task":{}}`) },
		"channel":                            func(c *approval.Call) { c.Channel = "another" },
		"round":                              func(c *approval.Call) { c.Round = "r" },
		"fields that run together":           func(c *approval.Call) { c.Tool, c.Definition = "deleted", "1" },
		"fields that run together 2":         func(c *approval.Call) { c.ServerID, c.Tool = "sdelete", "" },
	} {
		c := call()
		change(c)
		binding := string(c.Binding())
		if other, taken := seen[binding]; taken {
			t.Errorf("%s and %s have one binding", name, other)
		}
		seen[binding] = name
	}
	for _, tc := range []struct{ a, b string }{
		{`{"a":1,"b":"x"}`, ` { "b" : "\u0078", "a" : 1 } `},
		{"", "{}"},
	} {
		a, err1 := approval.CanonicalArguments(optional(tc.a))
		b, err2 := approval.CanonicalArguments(optional(tc.b))
		if err1 != nil || err2 != nil || string(a) != string(b) {
			t.Errorf("%s and %s: %s, %s", tc.a, tc.b, a, b)
		}
	}
}

// TestBeside checks that a call's members beside tool and arguments are part of its binding, in one canonical form.
func TestBeside(t *testing.T) {
	for _, tc := range []struct {
		params string
		modern bool
		want   string
	}{
		{`{"name":"x","arguments":{"task":1},"_meta":{"progressToken":1}}`, true, ``},
		{`{"name":"x","_meta":null}`, true, ``},
		{`{"name":"x","_meta": { } }`, false, ``},
		{`{"_meta":{"progressToken":1,"traceparent":"t","tracestate":"s","baggage":"b","io.modelcontextprotocol/x":{"y":1}}}`, false, ``},
		{`{"name":"x","task":{},"_meta":{"\u0070rogressToken":1, "z": [1.0] ,"com.example/as":"\u0061dmin"}}`, true,
			`{"_meta":{"com.example/as":"admin","z":[1.0]},"task":{}}`},
		{`{"name":"x","task":{ "ttl" : 1.0, "a":"\u0062" }}`, true, `{"task":{"a":"b","ttl":1.0}}`},
		{`{"task":null,"name":"x"}`, true, `{"task":null}`},
		{`{"name":"x","t\u0061sk":{}}`, true, `{"task":{}}`},
		{`{"name":"x","z":1,"a":[2]}`, false, `{"a":[2],"z":1}`},
		{`{"name":"x","requestState":"s","inputResponses":{}}`, true, ``},
		{`{"name":"x","requestState":"s"}`, false, `{"requestState":"s"}`},
	} {
		got, err := approval.CanonicalBeside([]byte(tc.params), tc.modern)
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: %s, %v", tc.params, got, err)
		}
	}
}

// TestReserved checks that besides progress and traces only the protocol's own members are left out of an approval.
func TestReserved(t *testing.T) {
	for name, bound := range map[string]bool{
		"io.modelcontextprotocol/clientInfo": false, "dev.mcp/": false, "org.modelcontextprotocol.api/x": false, "com.mcp.tools/x": false,
		"progressToken": false, "traceparent": false, "tracestate": false, "baggage": false,
		"com.example.mcp/x": true, "mcp/x": true, "modelcontextprotocol/x": true, "mcp.dev/x": true, "modelcontextprotocol.io/x": true,
		"io.modelcontextprotocol": true, "io.modelcontextprotocol.x": true, "io.ModelContextProtocol/x": true, "dev.MCP/x": true,
		".mcp/x": true, "9.mcp/x": true, "-a.mcp/x": true, "a-.mcp/x": true, "dev.mcp./x": true, "dev.mcp.a b/x": true, "ü.mcp/x": true,
		"/io.modelcontextprotocol/x": true, "x/io.modelcontextprotocol/y": true, "a-b9.mcp.c/x": false, "z.mcp/x": false, "a0.mcp/x": false, "a:.mcp/x": true,
		"ProgressToken": true, "progresstoken": true, "x/progressToken": true, "Traceparent": true, "traceparent/": true, "": true, "/": true,
	} {
		got, err := approval.CanonicalBeside([]byte(`{"_meta":{"`+name+`":1}}`), true)
		if err != nil || (got != nil) != bound {
			t.Errorf("%q: %s, %v", name, got, err)
		}
	}
}

func optional(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}

// TestDecide covers R04, R05 and M18: it checks who may decide, and in which channel.
func TestDecide(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, tc := range []struct {
		name   string
		change func(*approval.Call)
		decide func(e *approval.Engine, id string) error
		want   error
	}{
		{"with the console", nil, func(e *approval.Engine, id string) error {
			_, err := e.Decide(t.Context(), console, id, true)
			return err
		}, nil},
		{"on the page", nil, func(e *approval.Engine, id string) error {
			_, err := e.Decide(t.Context(), approval.Decider{OrganizationID: "o", UserID: "alice", Browser: true}, id, true)
			return err
		}, nil},
		{"R04 another user", nil, func(e *approval.Engine, id string) error {
			_, err := e.Decide(t.Context(), approval.Decider{OrganizationID: "o", UserID: "bob", Client: "console"}, id, true)
			return err
		}, storage.ErrNotFound},
		{"another organization", nil, func(e *approval.Engine, id string) error {
			_, err := e.Decide(t.Context(), approval.Decider{OrganizationID: "o2", UserID: "alice", Client: "console"}, id, true)
			return err
		}, storage.ErrNotFound},
		{"R04 the agent's own token", nil, func(e *approval.Engine, id string) error {
			_, err := e.Decide(t.Context(), approval.Decider{OrganizationID: "o", UserID: "alice", Client: "agent-a"}, id, true)
			return err
		}, approval.ErrClient},
		{"R04 the agent's own token, listed", func(c *approval.Call) { c.Client = "agent-b" }, func(e *approval.Engine, id string) error {
			_, err := e.Decide(t.Context(), approval.Decider{OrganizationID: "o", UserID: "alice", Client: "agent-b"}, id, true)
			return err
		}, approval.ErrClient},
		{"a token without a client", func(c *approval.Call) { c.Client = "" }, func(e *approval.Engine, id string) error {
			_, err := e.Decide(t.Context(), approval.Decider{OrganizationID: "o", UserID: "alice"}, id, true)
			return err
		}, approval.ErrClient},
		{"R05 a machine", nil, func(e *approval.Engine, id string) error {
			_, err := e.Decide(t.Context(), approval.Decider{OrganizationID: "o", UserID: "alice", Client: "console", Machine: true}, id, true)
			return err
		}, approval.ErrClient},
		{"in band", nil, func(e *approval.Engine, id string) error {
			_, err := e.DecideInBand(t.Context(), "o", "alice", id, true)
			return err
		}, nil},
		{"M18 in band, which the agent may not", func(c *approval.Call) { c.Channel = storage.ChannelOutOfBand }, func(e *approval.Engine, id string) error {
			_, err := e.DecideInBand(t.Context(), "o", "alice", id, true)
			return err
		}, approval.ErrChannel},
		{"in band, which the agent may not: a no is one", func(c *approval.Call) { c.Channel = storage.ChannelOutOfBand }, func(e *approval.Engine, id string) error {
			if a, err := e.DecideInBand(t.Context(), "o", "alice", id, false); err != nil || a.Status != storage.ApprovalDenied {
				t.Errorf("%s, %v", a.Status, err)
			}
			_, err := e.Decide(t.Context(), console, id, true)
			return err
		}, storage.ErrConflict},
		{"in band, another user's", nil, func(e *approval.Engine, id string) error {
			_, err := e.DecideInBand(t.Context(), "o", "bob", id, true)
			return err
		}, storage.ErrNotFound},
		{"unknown", nil, func(e *approval.Engine, _ string) error {
			_, err := e.Decide(t.Context(), console, "x", true)
			return err
		}, storage.ErrNotFound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := newEngine(new(memory), new(approval.Bell), func() time.Time { return now })
			c := call()
			if tc.change != nil {
				tc.change(c)
			}
			a, err := e.Request(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if err := tc.decide(e, a.ID); !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
				t.Errorf("%v, want %v", err, tc.want)
			}
			_, err = e.Take(t.Context(), c, a.ID)
			if (err == nil) != (tc.want == nil) {
				t.Errorf("taken: %v", err)
			}
		})
	}
}

// TestLife checks that an approval is asked for once, and is good once, for ten minutes after the decision.
func TestLife(t *testing.T) {
	now := time.Unix(1000, 0)
	e := newEngine(new(memory), new(approval.Bell), func() time.Time { return now })
	first, err := e.Request(t.Context(), call())
	if err != nil {
		t.Fatal(err)
	}
	said, err := e.Said(&first)
	if err != nil || string(said.Arguments) != `{"id":1}` || said.Beside != nil || first.ArgumentsDigest != approval.Digest(said.Arguments) {
		t.Errorf("%s, %v", said, err)
	}
	moved := first
	moved.UserID = "bob"
	if _, err := e.Said(&moved); !errors.Is(err, seal.ErrOpen) {
		t.Errorf("moved to another user, the arguments open: %v", err)
	}
	again, err := e.Request(t.Context(), call())
	if err != nil || again.ID != first.ID {
		t.Errorf("asked again: %s, %v", again.ID, err)
	}
	if _, err := e.Take(t.Context(), call(), first.ID); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("taken before the word: %v", err)
	}
	now = now.Add(approval.DecideFor - time.Second)
	if _, err := e.Decide(t.Context(), console, first.ID, true); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Decide(t.Context(), console, first.ID, false); !errors.Is(err, storage.ErrConflict) {
		t.Errorf("decided twice: %v", err)
	}
	other := call()
	other.Arguments = []byte(`{"id":2}`)
	if _, err := e.Take(t.Context(), other, first.ID); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("taken for another call: %v", err)
	}
	now = now.Add(approval.UseFor)
	if _, err := e.Take(t.Context(), call(), first.ID); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("M15 taken too late: %v", err)
	}

	second, err := e.Request(t.Context(), call())
	if err != nil || second.ID == first.ID {
		t.Fatalf("%s, %v", second.ID, err)
	}
	now = now.Add(approval.DecideFor)
	if _, err := e.Decide(t.Context(), console, second.ID, true); !errors.Is(err, storage.ErrConflict) {
		t.Errorf("decided too late: %v", err)
	}
}

// TestCap covers M16: a user and client have at most 20 waiting calls; another client has its own 20.
func TestCap(t *testing.T) {
	e := newEngine(new(memory), new(approval.Bell), nil)
	for i := range approval.MaxPending {
		c := call()
		c.Arguments = fmt.Appendf(nil, `{"id":%d}`, i)
		if _, err := e.Request(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	c := call()
	c.Arguments = []byte(`{}`)
	if _, err := e.Request(t.Context(), c); !errors.Is(err, storage.ErrTooManyPending) {
		t.Errorf("one too many: %v", err)
	}
	if _, err := e.Request(t.Context(), call()); err != nil {
		t.Errorf("one that waits already: %v", err)
	}
	c.Client = "agent-b"
	if _, err := e.Request(t.Context(), c); err != nil {
		t.Errorf("of another client: %v", err)
	}
}

// TestAsked covers M16: a user and client ask at most 120 times in ten minutes, even when each call is decided at once.
// The rounds of a call whose upstream asks do not count.
func TestAsked(t *testing.T) {
	now := time.Unix(10_000, 0)
	e := newEngine(new(memory), new(approval.Bell), func() time.Time {
		now = now.Add(time.Microsecond)
		return now
	})
	ask := func(i int, client string) (storage.Approval, error) {
		c := call()
		c.Client, c.Arguments = client, fmt.Appendf(nil, `{"id":%d}`, i)
		return e.Request(t.Context(), c)
	}
	for i := range approval.MaxAsked {
		a, err := ask(i, "agent-a")
		if err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
		if _, err := e.DecideInBand(t.Context(), "o", "alice", a.ID, i == 0); err != nil {
			t.Fatal(err)
		}
		c := call()
		c.Client = "agent-a"
		if _, _, err := e.Prolong(t.Context(), &storage.Approval{DecidedBy: "alice", DecidedVia: storage.ChannelInBand}, c); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ask(1, "agent-a"); !errors.Is(err, storage.ErrTooManyAsked) {
		t.Errorf("one too many: %v", err)
	}
	if a, err := ask(0, "agent-a"); err != nil || a.Status != storage.ApprovalApproved {
		t.Errorf("one that is approved: %v", err)
	}
	if _, err := ask(1, "agent-b"); err != nil {
		t.Errorf("of another client: %v", err)
	}
	now = time.Unix(10_000, 0).Add(approval.AskedWithin + time.Millisecond)
	if _, err := ask(1, "agent-a"); err != nil {
		t.Errorf("ten minutes after the first: %v", err)
	}
	if _, err := ask(2, "agent-a"); !errors.Is(err, storage.ErrTooManyAsked) {
		t.Errorf("and another one: %v", err)
	}
}

// TestTooLarge covers M16: a call that is too large to be read is not held.
func TestTooLarge(t *testing.T) {
	for _, tc := range []struct {
		arguments, beside int
		want              error
	}{{approval.MaxArguments, 0, nil}, {approval.MaxArguments + 1, 0, approval.ErrTooLarge}, {approval.MaxArguments, 1, approval.ErrTooLarge}} {
		store := new(memory)
		c := call()
		c.Arguments, c.Beside = make([]byte, tc.arguments), make([]byte, tc.beside)
		if _, err := newEngine(store, new(approval.Bell), nil).Request(t.Context(), c); !errors.Is(err, tc.want) || (len(store.all) == 0) != (tc.want != nil) {
			t.Errorf("%d and %d bytes: %v", tc.arguments, tc.beside, err)
		}
	}
}

// TestArgumentsKept checks that arguments are shown while there is a decision or a call left to make.
func TestArgumentsKept(t *testing.T) {
	e := newEngine(new(memory), new(approval.Bell), nil)
	a, err := e.Request(t.Context(), call())
	if err != nil {
		t.Fatal(err)
	}
	for status, kept := range map[storage.ApprovalStatus]bool{
		storage.ApprovalPending: true, storage.ApprovalApproved: true, storage.ApprovalDenied: false, storage.ApprovalUsed: false, storage.ApprovalExpired: false,
	} {
		a.Status = status
		if said, err := e.Said(&a); err != nil || (said.Arguments != nil) != kept {
			t.Errorf("%s: %s, %v", status, said, err)
		}
	}
	c := call()
	c.Arguments, c.Beside = []byte(`{"a":"\n"}`), []byte(`{"task":{}}`)
	if a, err = e.Request(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if said, err := e.Said(&a); err != nil || string(said.Arguments) != `{"a":"\n"}` || string(said.Beside) != `{"task":{}}` {
		t.Errorf("%s, %v", said, err)
	}
}

// TestWait checks that a wait ends at once with a decision in this process, within a second with one in another
// process, with the end of the time to decide, and with its context.
func TestWait(t *testing.T) {
	for _, tc := range []struct {
		name string
		act  func(t *testing.T, e, elsewhere *approval.Engine, id string, give context.CancelFunc)
		want storage.ApprovalStatus
		err  error
		took time.Duration
	}{
		{"here", func(t *testing.T, e, _ *approval.Engine, id string, _ context.CancelFunc) {
			if _, err := e.Decide(t.Context(), console, id, true); err != nil {
				t.Error(err)
			}
		}, storage.ApprovalApproved, nil, 0},
		{"another process", func(t *testing.T, _, elsewhere *approval.Engine, id string, _ context.CancelFunc) {
			if _, err := elsewhere.Decide(t.Context(), console, id, false); err != nil {
				t.Error(err)
			}
		}, storage.ApprovalDenied, nil, time.Second},
		{"nobody", func(*testing.T, *approval.Engine, *approval.Engine, string, context.CancelFunc) {}, storage.ApprovalExpired, nil, approval.DecideFor},
		{"client gone", func(_ *testing.T, _, _ *approval.Engine, _ string, give context.CancelFunc) { give() }, "", context.Canceled, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := new(memory)
				e, elsewhere := newEngine(store, new(approval.Bell), nil), newEngine(store, new(approval.Bell), nil)
				a, err := e.Request(t.Context(), call())
				if err != nil {
					t.Fatal(err)
				}
				ctx, give := context.WithCancel(t.Context())
				defer give()
				started := time.Now()
				done := make(chan struct{})
				go func() {
					defer close(done)
					got, err := e.Wait(ctx, &a)
					if got.Status != tc.want || !errors.Is(err, tc.err) {
						t.Errorf("%s, %v", got.Status, err)
					}
					if took := time.Since(started); took != tc.took {
						t.Errorf("took %v", took)
					}
				}()
				synctest.Wait()
				tc.act(t, e, elsewhere, a.ID, give)
				<-done
			})
		})
	}
}

// TestWaiters covers M16: the number of waits for one decision is bounded, because each wait reads the store every
// second.
func TestWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(new(memory), new(approval.Bell), nil)
		a, err := e.Request(t.Context(), call())
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range approval.MaxPending {
			wg.Go(func() {
				if _, err := e.Wait(t.Context(), &a); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if _, err := e.Wait(t.Context(), &a); !errors.Is(err, storage.ErrTooManyPending) {
			t.Errorf("one more: %v", err)
		}
		if _, err := e.Decide(t.Context(), console, a.ID, false); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if _, err := e.Wait(t.Context(), &a); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}
