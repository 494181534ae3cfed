package admission

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/ratelimit/window"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// TestOfMessages checks which messages of a request count.
func TestOfMessages(t *testing.T) {
	const ping, tool = `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}`
	const begun, news, answer = `{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`
	for _, tc := range []struct {
		name, body string
		unasked    bool
		repeated   int64
		want       Work
	}{
		{"a request", ping, false, 0, Work{Requests: 1}},
		{"a call of a tool", tool, false, 0, Work{Requests: 1, Results: 1}},
		{"the beginning of a session", begun, false, 0, Work{}},
		{"a notification", news, false, 0, Work{Requests: 1}},
		{"an answer", answer, false, 0, Work{}},
		{"an answer that nobody asked for", answer, true, 0, Work{Requests: 1}},
		{"an answer again", answer, false, 1, Work{Requests: 1}},
		{"a batch", "[" + ping + "," + tool + "," + begun + "," + tool + "]", false, 0, Work{Requests: 3, Results: 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			body, err := jsonrpc.Parse([]byte(tc.body), strictjson.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, OfMessages(body.Messages, tc.unasked, tc.repeated)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if w := OfMessages(nil, false, 0); w != (Work{}) {
		t.Errorf("without messages: %+v", w)
	}
}

// TestMarks checks that only a marked call is seen, and that only one that counts is charged, once.
func TestMarks(t *testing.T) {
	for _, tc := range []struct {
		name         string
		mark         func(*State)
		seen, counts bool
		requests     int64
	}{
		{"no mark", func(*State) {}, false, false, 0},
		{"exempt", (*State).Exempt, true, false, 0},
		{"counted", (*State).Count, true, true, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGate(t, rate(everybody, 10, 10_000))
			c := counted()
			*c.State = State{}
			tc.mark(c.State)
			if c.State.Seen() != tc.seen || c.State.Counts() != tc.counts {
				t.Errorf("seen %v, counts %v", c.State.Seen(), c.State.Counts())
			}
			for _, w := range []Work{{}, {Requests: 2}, {Requests: 3}} {
				if refused, err := g.Charge(t.Context(), c, w); refused != nil || err != nil {
					t.Error(refused, err)
				}
			}
			if refused, err := g.ChargeDelivered(t.Context(), c, []byte("12345678")); refused != nil || err != nil {
				t.Error(refused, err)
			}
			requests, tokens := g.used(t)
			if want := tc.requests; requests != want || tokens != want {
				t.Errorf("%d requests and %d tokens are counted, want %d", requests, tokens, want)
			}
		})
	}
}

// TestRefusals checks that a full limit refuses at each step, and where the metrics count it.
func TestRefusals(t *testing.T) {
	llm := func(g *gate, c *Call) (*limit.Refusal, error) { return g.LookModels(t.Context(), c) }
	for _, tc := range []struct {
		name  string
		limit storage.RateLimit
		step  func(*gate, *Call) (*limit.Refusal, error)
		want  []string
	}{
		{"look", rate(everybody, -1, 0), func(g *gate, c *Call) (*limit.Refusal, error) { return g.Look(t.Context(), c) }, []string{"mcp look requests"}},
		{"charge", rate(everybody, 1, 0), func(g *gate, c *Call) (*limit.Refusal, error) { return g.Charge(t.Context(), c, Work{Requests: 2}) }, []string{"mcp charge requests"}},
		{"stream", rate(everybody, 0, 1), func(g *gate, c *Call) (*limit.Refusal, error) {
			return g.ChargeDelivered(t.Context(), c, []byte("more than four bytes"))
		}, []string{"mcp stream tokens"}},
		{"look for a model", rate(everybody, -1, 0), llm, []string{"llm look requests"}},
		{"charge of a model", rate(everybody, -1, 0), func(g *gate, c *Call) (*limit.Refusal, error) {
			subject := c.Subject.LimitSubject(storage.TrafficLLM)
			m, err := g.MatchModels(t.Context(), c, &subject)
			if err != nil {
				return nil, err
			}
			_, refused, err := g.Engine().Charge(t.Context(), m, limit.Cost{Requests: 1})
			if refused != nil {
				g.ModelRefused(refused)
			}
			return refused, err
		}, []string{"llm charge requests"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGate(t, tc.limit)
			if refused, err := tc.step(g, counted()); refused == nil || err != nil {
				t.Errorf("%v, %v", refused, err)
			}
			if diff := cmp.Diff(tc.want, g.refused); diff != "" {
				t.Error(diff)
			}
			g.set()
			if refused, err := tc.step(g, counted()); refused != nil || err != nil {
				t.Errorf("without limits: %v, %v", refused, err)
			}
			g.err = errors.New("away")
			g.set()
			if refused, err := tc.step(g, counted()); refused != nil || !errors.Is(err, g.err) {
				t.Errorf("when the limits cannot be read: %v, %v", refused, err)
			}
			if len(g.refused) != 1 {
				t.Errorf("counted %v", g.refused)
			}
		})
	}
}

// TestExemptModels checks that no limit counts a call to a model for which limits are off.
func TestExemptModels(t *testing.T) {
	g := newGate(t, rate(everybody, -1, 0))
	c := counted()
	*c.State = State{}
	c.State.Exempt()
	if refused, err := g.LookModels(t.Context(), c); refused != nil || err != nil {
		t.Errorf("%v, %v", refused, err)
	}
}

// unreachable is a coordinator that counts nothing and lets nothing pass.
type unreachable struct{ limit.Local }

var errUnreachable = errors.New("the counters do not answer")

// Charge implements limit.Coordinator.
func (unreachable) Charge(context.Context, []window.Charge, []window.State) (limit.Verdict, error) {
	return limit.Verdict{}, errUnreachable
}

// TestRefusedIsNotCharged checks that a call which was refused, or could not be counted, does not pass uncounted when it
// is asked about again.
func TestRefusedIsNotCharged(t *testing.T) {
	g := newGate(t, rate(everybody, 1, 0))
	c := counted()
	for range 2 {
		if refused, err := g.Charge(t.Context(), c, Work{Requests: 2}); refused == nil || err != nil {
			t.Errorf("%v, %v", refused, err)
		}
	}
	reachable := g.engine
	g.engine = limit.NewEngine(unreachable{})
	for range 2 {
		if _, err := g.Charge(t.Context(), c, Work{Requests: 1}); !errors.Is(err, errUnreachable) {
			t.Errorf("uncounted: %v", err)
		}
	}
	g.engine = reachable
	for range 2 {
		if refused, err := g.Charge(t.Context(), c, Work{Requests: 1}); refused != nil || err != nil {
			t.Errorf("%v, %v", refused, err)
		}
	}
	if requests, _ := g.used(t); requests != 1 {
		t.Errorf("%d requests are counted", requests)
	}
}
