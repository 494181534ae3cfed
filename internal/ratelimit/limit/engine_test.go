package limit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/internal/ratelimit/window"
	"github.com/durward-gateway/durward/storage"
)

// tokensOnly returns a set of one limit on the tokens of the organization, and its counters for a call.
func tokensOnly(most int64) (*Set, *Matched) {
	set := Compile(acme, []storage.RateLimit{rate("t", storage.Scope{Type: storage.ScopeOrganization}, storage.TrafficAll, nil, number(most))})
	return set, set.Match(caller(storage.TrafficLLM))
}

// TestSettling covers T07: the tokens of a call are settled once, however the call ends.
func TestSettling(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(*Permit) bool
		want int64
	}{
		"less than reserved":   {func(p *Permit) bool { return p.Settle(30) }, 30},
		"more than reserved":   {func(p *Permit) bool { return p.Settle(150) }, 150},
		"past the limit":       {func(p *Permit) bool { return p.Settle(5000) }, 5000},
		"as reserved":          {func(p *Permit) bool { return p.Settle(100) }, 100},
		"upstream error":       {func(p *Permit) bool { return p.Settle(0) }, 0},
		"below nothing":        {func(p *Permit) bool { return p.Settle(-50) }, 0},
		"missing usage":        {func(p *Permit) bool { return p.Close() }, 100},
		"settled, then closed": {func(p *Permit) bool { return p.Settle(30) && !p.Close() }, 30},
		"closed, then settled": {func(p *Permit) bool { return p.Close() && !p.Settle(30) }, 100},
		"settled twice":        {func(p *Permit) bool { return p.Settle(30) && !p.Settle(60) }, 30},
		"nothing ends it":      {func(*Permit) bool { return true }, 100},
		"moved when it had settled": {func(p *Permit) bool {
			p.Settle(1)
			_, err := p.Move(context.Background(), p.matched)
			return err != nil
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			e, c := newEngine()
			set, m := tokensOnly(1000)
			p := mustCharge(t, e, m, Cost{Requests: 1, Tokens: 100})
			if p.Reserved() != 100 || p.Degraded() {
				t.Errorf("%d reserved, degraded %v", p.Reserved(), p.Degraded())
			}
			c.turn(20 * time.Second)
			if !test.end(p) {
				t.Error("another end counted")
			}
			if got := statusOf(t, e, set)[0].Tokens.Used; got != test.want {
				t.Errorf("%d tokens, want %d", got, test.want)
			}
		})
	}
}

// TestRefundAfterTheWindow checks that a refund makes no room when its second no longer counts.
func TestRefundAfterTheWindow(t *testing.T) {
	e, c := newEngine()
	set, m := tokensOnly(1000)
	old := mustCharge(t, e, m, Cost{Tokens: 900})
	c.turn(70 * time.Second)
	mustCharge(t, e, m, Cost{Tokens: 900})
	old.Settle(0)
	if got := statusOf(t, e, set)[0].Tokens.Used; got != 900 {
		t.Errorf("%d tokens", got)
	}
	mustRefuse(t, e, m, Cost{Tokens: 200})
}

// TestParallelStreams covers T01 and T07: of streams that start together, no more pass than the limit has tokens for.
// Their unused tokens are available again when they end, in whichever way.
func TestParallelStreams(t *testing.T) {
	e, _ := newEngine()
	set, m := tokensOnly(100_000)
	for round := range 10 {
		var permits [1000]*Permit
		var passed atomic.Int64
		var wait sync.WaitGroup
		for i := range permits {
			wait.Go(func() {
				if p, _, _ := e.Charge(context.Background(), m, Cost{Requests: 1, Tokens: 1000}); p != nil {
					permits[i] = p
					passed.Add(1)
				}
			})
		}
		wait.Wait()
		// Each round leaves 100 x 10 tokens charged.
		if want := (100_000 - int64(round)*1000) / 1000; passed.Load() != want {
			t.Fatalf("round %d: %d passed, want %d", round, passed.Load(), want)
		}
		var kept int64
		for _, p := range permits {
			if p == nil {
				continue
			}
			kept++
			used := int64(10)
			if kept == passed.Load() {
				used = 1000 - 10*(passed.Load()-1) // so that a round leaves 1,000
			}
			for range 2 { // the end of the stream, and the client that leaves
				wait.Go(func() { p.Settle(used) })
			}
		}
		wait.Wait()
		if got := statusOf(t, e, set)[0].Tokens.Used; got != int64(round+1)*1000 {
			t.Fatalf("round %d: %d tokens", round, got)
		}
	}
}

// TestTake checks that each piece counts alone, that refused pieces do not count, and that counters of requests are not
// checked.
func TestTake(t *testing.T) {
	e, _ := newEngine()
	set, m := tokensOnly(100)
	for i, piece := range []struct {
		tokens, used int64
		refused      bool
	}{{60, 60, false}, {41, 60, true}, {-5, 60, false}, {40, 100, false}, {0, 100, true}, {1, 100, true}} {
		refused, err := e.Take(t.Context(), m, piece.tokens)
		if err != nil || (refused != nil) != piece.refused {
			t.Errorf("piece %d: %v, %v", i, refused, err)
		}
		if got := statusOf(t, e, set)[0].Tokens.Used; got != piece.used {
			t.Errorf("piece %d: %d tokens", i, got)
		}
	}
	if refused, err := e.Take(t.Context(), new(Matched), 1); refused != nil || err != nil {
		t.Errorf("without limits: %v, %v", refused, err)
	}
}

// TestCosts checks that counters of uncounted units are not checked, and that a full counter of tokens refuses every
// call.
func TestCosts(t *testing.T) {
	e, _ := newEngine()
	org := storage.Scope{Type: storage.ScopeOrganization}
	set := Compile(acme, []storage.RateLimit{rate("r", org, storage.TrafficAll, number(3), nil), rate("t", org, storage.TrafficAll, nil, number(50))})
	m := set.Match(caller(storage.TrafficMCP))
	mustRefuse(t, e, m, Cost{Requests: 4}) // a batch of four
	mustCharge(t, e, m, Cost{Requests: 2})
	mustRefuse(t, e, m, Cost{Requests: 2})
	mustCharge(t, e, m, Cost{Requests: 1})
	if r := mustRefuse(t, e, m, Cost{Requests: 1}); r.Measure != Requests || r.Limit.ID != "r" || r.Used != 3 || r.Most != 3 {
		t.Errorf("%+v", r)
	}
	mustCharge(t, e, m, Cost{Tokens: 40}) // a determiner's call does not count as a request
	if r := mustRefuse(t, e, m, Cost{Tokens: 11}); r.Measure != Tokens || r.Limit.ID != "t" || r.Used != 40 || r.Most != 50 {
		t.Errorf("%+v", r)
	}
	mustCharge(t, e, m, Cost{Requests: -5, Tokens: -5})
	mustCharge(t, e, m, Cost{Tokens: 10})
	mustRefuse(t, e, m, Cost{})
	if got := statusOf(t, e, set); got[0].Requests.Used != 3 || got[1].Tokens.Used != 50 || got[0].Tokens != (Gauge{}) || got[1].Requests != (Gauge{}) {
		t.Errorf("%+v", got)
	}
	if most, ok := m.SmallestTokens(); most != 50 || !ok {
		t.Errorf("smallest %d %v", most, ok)
	}
}

// TestLook checks that a look gives the answer of a charge, and charges nothing.
func TestLook(t *testing.T) {
	e, c := newEngine()
	set, m := tokensOnly(10)
	look := func() *Refusal {
		t.Helper()
		r, err := e.Look(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if look() != nil {
		t.Fatal("refused")
	}
	mustCharge(t, e, m, Cost{Requests: 1, Tokens: 10})
	for range 3 {
		if r := look(); r == nil || r.RetryAfter != 61*time.Second {
			t.Fatalf("%+v", r)
		}
	}
	if got := statusOf(t, e, set)[0].Tokens; got != (Gauge{10, 10, 100}) {
		t.Errorf("%+v", got)
	}
	c.turn(61 * time.Second)
	if look() != nil {
		t.Fatal("refused when waited")
	}
	none := Compile(acme, nil)
	m = none.Match(caller(storage.TrafficLLM))
	if look() != nil || none.Len() != 0 {
		t.Error("refused without limits")
	}
	mustCharge(t, e, m, Cost{Requests: 1, Tokens: math.MaxInt64}).Settle(5)
}

// TestBlocking checks that a limit of 0 blocks at once.
func TestBlocking(t *testing.T) {
	for _, l := range []storage.RateLimit{
		rate("r", storage.Scope{Type: storage.ScopeModelAlias, Value: "fast"}, storage.TrafficLLM, number(0), nil),
		rate("t", storage.Scope{Type: storage.ScopeModelAlias}, storage.TrafficLLM, nil, number(0)),
	} {
		e, _ := newEngine()
		set := Compile(acme, []storage.RateLimit{l})
		m := set.Match(caller(storage.TrafficLLM))
		if r, err := e.Look(t.Context(), m); r == nil || err != nil {
			t.Errorf("%s: looks free: %v", l.ID, err)
		}
		if r := mustRefuse(t, e, m, Cost{Requests: 1}); r.Most != 0 || r.RetryAfter != 61*time.Second {
			t.Errorf("%+v", r)
		}
		mustCharge(t, e, set.Match(caller(storage.TrafficMCP)), Cost{Requests: 1})
		s := statusOf(t, e, set)[0]
		if l.ID == "r" && (s.Requests != Gauge{Percentage: 100} || s.Tokens != Gauge{}) || l.ID == "t" && s.Tokens != (Gauge{Percentage: 100}) {
			t.Errorf("%+v", s)
		}
	}
}

// TestMove checks that a fallback is charged at its new target, and only there.
func TestMove(t *testing.T) {
	e, _ := newEngine()
	set := Compile(acme, []storage.RateLimit{
		rate("org", storage.Scope{Type: storage.ScopeOrganization}, storage.TrafficAll, number(10), number(1000)),
		rate("models", storage.Scope{Type: storage.ScopeModel}, storage.TrafficAll, number(2), number(500)),
	})
	to := func(model string) *Matched {
		s := caller(storage.TrafficLLM)
		s.Model = model
		return set.Match(s)
	}
	used := func(orgRequests, orgTokens, aRequests, aTokens, bRequests, bTokens int64) {
		t.Helper()
		got := statusOf(t, e, set)
		want := map[string]SubjectUsage{"a": {"a", aRequests, aTokens}, "b": {"b", bRequests, bTokens}}
		for _, u := range got[1].Subjects {
			if want[u.Subject] != u {
				t.Errorf("%+v", u)
			}
			delete(want, u.Subject)
		}
		for name, u := range want {
			if u.Requests+u.Tokens != 0 {
				t.Errorf("nothing of %s, want %+v", name, u)
			}
		}
		if got[0].Requests.Used != orgRequests || got[0].Tokens.Used != orgTokens {
			t.Errorf("organization: %+v %+v", got[0].Requests, got[0].Tokens)
		}
	}
	move := func(p *Permit, model string) *Refusal {
		t.Helper()
		r, err := p.Move(t.Context(), to(model))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	p := mustCharge(t, e, to("a"), Cost{Requests: 1, Tokens: 300})
	used(1, 300, 1, 300, 0, 0)
	if r := move(p, "b"); r != nil {
		t.Fatalf("%+v", r)
	}
	used(1, 300, 1, 0, 1, 300)
	q := mustCharge(t, e, to("a"), Cost{Requests: 1, Tokens: 400})
	used(2, 700, 2, 400, 1, 300)
	if r := move(q, "b"); r == nil || r.Limit.ID != "models" || r.Measure != Tokens {
		t.Fatalf("%+v", r)
	}
	used(2, 700, 2, 400, 1, 300) // nothing changed
	p.Settle(100)
	q.Settle(450)
	used(2, 550, 2, 450, 1, 100)

	back := mustCharge(t, e, to("b"), Cost{Requests: 1, Tokens: 10})
	if r := move(back, "a"); r == nil || r.Measure != Requests {
		t.Errorf("a third request to a: %+v", r)
	}
	if r := move(back, "b"); r != nil { // it is there already
		t.Errorf("%+v", r)
	}
	back.Settle(0)
	used(3, 550, 2, 450, 2, 100)
}

// TestRefusal checks that of several limits the refusal names the one that takes longest, and checks its header fields.
func TestRefusal(t *testing.T) {
	e, c := newEngine()
	org := storage.Scope{Type: storage.ScopeOrganization}
	set := Compile(acme, []storage.RateLimit{
		rate("early", org, storage.TrafficAll, number(1), nil),
		rate("late", storage.Scope{Type: storage.ScopeUser}, storage.TrafficAll, nil, number(100)),
	})
	m := set.Match(caller(storage.TrafficLLM))
	mustCharge(t, e, m, Cost{Requests: 1, Tokens: 50})
	c.turn(10500 * time.Millisecond)
	mustCharge(t, e, m, Cost{Tokens: 50})
	r := mustRefuse(t, e, m, Cost{Requests: 1, Tokens: 60})
	if r.Limit.ID != "late" || r.RetryAfter != 60500*time.Millisecond || r.Seconds() != 61 || r.Degraded {
		t.Errorf("%+v", r)
	}
	h := http.Header{}
	r.SetHeader(h)
	want := http.Header{"Retry-After": {"61"}, "Ratelimit-Policy": {`"tokens";q=100;w=60`}, "Ratelimit": {`"tokens";r=0;t=61`}}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Error(diff)
	}
	r = mustRefuse(t, e, m, Cost{Requests: 1, Tokens: 40}) // the first half is enough for it, as for the request
	r.SetHeader(h)
	if r.RetryAfter != 50500*time.Millisecond || h.Get("Retry-After") != "51" {
		t.Errorf("%+v", r)
	}
	(&Refusal{Measure: Tokens, Most: math.MaxInt64, RetryAfter: 1}).SetHeader(h)
	if h.Get("RateLimit") != `"tokens";r=999999999999999;t=1` {
		t.Error(h)
	}
}

// TestOrganizations covers T08 and T11: organizations share nothing, even if their limits had one id. Refusals for one
// organization do not contain the numbers of another.
func TestOrganizations(t *testing.T) {
	e, _ := newEngine()
	mine := rate("same", storage.Scope{Type: storage.ScopeUser}, storage.TrafficAll, number(1), nil)
	theirs := mine
	theirs.OrganizationID = globex
	off := mine
	off.ID, off.Enabled = "off", false
	here, there := Compile(acme, []storage.RateLimit{mine, theirs, off}), Compile(globex, []storage.RateLimit{mine, theirs, off})
	if here.Len() != 1 || there.Len() != 1 {
		t.Fatalf("%d and %d limits", here.Len(), there.Len())
	}
	s := caller(storage.TrafficLLM)
	mustCharge(t, e, here.Match(s), Cost{Requests: 1})
	if got := statusOf(t, e, there)[0]; got.Requests.Used != 0 || got.Active != 0 || got.Subjects != nil || got.Limit.OrganizationID != globex {
		t.Errorf("%+v", got)
	}
	mustCharge(t, e, there.Match(s), Cost{Requests: 1})
	if r := mustRefuse(t, e, there.Match(s), Cost{Requests: 1}); r.Limit.OrganizationID != globex {
		t.Errorf("%+v", r)
	}
}

// TestCompilingAgain checks that counters go on when numbers change, and start anew for another scope.
func TestCompilingAgain(t *testing.T) {
	e, _ := newEngine()
	l := rate("l", storage.Scope{Type: storage.ScopeUser}, storage.TrafficAll, number(5), nil)
	s := caller(storage.TrafficLLM)
	mustCharge(t, e, Compile(acme, []storage.RateLimit{l}).Match(s), Cost{Requests: 5})
	l.RequestsPerMinute, l.Name, l.Traffic = number(7), "renamed", storage.TrafficLLM
	m := Compile(acme, []storage.RateLimit{l}).Match(s)
	mustRefuse(t, e, m, Cost{Requests: 3})
	mustCharge(t, e, m, Cost{Requests: 2})
	l.Scope = storage.Scope{Type: storage.ScopeUser, ID: alice}
	mustCharge(t, e, Compile(acme, []storage.RateLimit{l}).Match(s), Cost{Requests: 7})
}

// TestStatusOfSubjects checks the fullest counter, and its subject.
func TestStatusOfSubjects(t *testing.T) {
	e, _ := newEngine()
	set := Compile(acme, []storage.RateLimit{
		rate("models", storage.Scope{Type: storage.ScopeModel}, storage.TrafficLLM, number(10), number(100)),
		rate("users", storage.Scope{Type: storage.ScopeUser}, storage.TrafficAll, number(1000), nil),
	})
	for i, model := range []string{"a", "b", "b", "b", "c", acme, "018F3C2E-0000-7000-8000-00000000000A"} {
		s := caller(storage.TrafficLLM)
		s.Model = model
		s.UserID = fmt.Sprintf("018f3c2e-0000-7000-8000-%012d", i)
		tokens := int64(1)
		if model == "c" {
			tokens = 90
		}
		mustCharge(t, e, set.Match(s), Cost{Requests: 1, Tokens: tokens})
	}
	got := statusOf(t, e, set)
	if got[0].Requests != (Gauge{3, 10, 30}) || got[0].Tokens != (Gauge{90, 100, 90}) || got[0].Active != 5 || !got[0].Apart {
		t.Errorf("%+v", got[0])
	}
	if diff := cmp.Diff([]SubjectUsage{{"c", 1, 90}, {"b", 3, 3}}, got[0].Subjects[:2]); diff != "" {
		t.Error(diff)
	}
	names := map[string]bool{}
	for _, u := range got[0].Subjects {
		names[u.Subject] = true
	}
	if diff := cmp.Diff(map[string]bool{"a": true, "b": true, "c": true, acme: true, "018F3C2E-0000-7000-8000-00000000000A": true}, names); diff != "" {
		t.Error(diff)
	}
	for i := range 500 {
		s := caller(storage.TrafficMCP)
		s.UserID = fmt.Sprintf("018f3c2e-0000-7000-8001-%012d", i)
		mustCharge(t, e, set.Match(s), Cost{Requests: int64(i + 1)})
	}
	got = statusOf(t, e, set)
	if users := got[1]; users.Active != 507 || len(users.Subjects) != MaxSubjects || users.Subjects[0] != (SubjectUsage{"018f3c2e-0000-7000-8001-000000000499", 500, 0}) || users.Requests.Used != 500 {
		t.Errorf("%d active, %d named, first %+v", users.Active, len(users.Subjects), users.Subjects[0])
	}
	// A newly compiled set knows no names yet; it knows ids.
	again := Compile(acme, []storage.RateLimit{got[0].Limit})
	for _, u := range statusOf(t, e, again)[0].Subjects {
		if len(u.Subject) != 32 && u.Subject != acme {
			t.Errorf("%q", u.Subject)
		}
	}
}

// TestStatusUnderLoad covers T11: while calls come, the status is never above the charges so far, and never below the
// charges from before it was requested.
func TestStatusUnderLoad(t *testing.T) {
	e, _ := newEngine()
	set := Compile(acme, []storage.RateLimit{
		rate("o", storage.Scope{Type: storage.ScopeOrganization}, storage.TrafficAll, number(1<<30), nil),
		rate("u", storage.Scope{Type: storage.ScopeUser}, storage.TrafficAll, number(1<<30), nil),
	})
	m := set.Match(caller(storage.TrafficLLM))
	var begun, ended atomic.Int64
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 5000 {
				begun.Add(1)
				if p, _, _ := e.Charge(context.Background(), m, Cost{Requests: 1}); p == nil {
					t.Error("refused")
				}
				ended.Add(1)
			}
		})
	}
	for range 200 {
		least := ended.Load()
		got := statusOf(t, e, set)
		most := begun.Load()
		for _, s := range got {
			if s.Requests.Used < least || s.Requests.Used > most {
				t.Errorf("%s: %d, between %d and %d were charged", s.Limit.ID, s.Requests.Used, least, most)
			}
		}
	}
	wait.Wait()
	for _, s := range statusOf(t, e, set) {
		if s.Requests.Used != 20_000 {
			t.Errorf("%d of 20,000", s.Requests.Used)
		}
	}
}

// broken is a coordinator whose store has failed.
type broken struct{ Coordinator }

var errLost = errors.New("store lost")

func (broken) Charge(context.Context, []window.Charge, []window.State) (Verdict, error) {
	return Verdict{}, errLost
}
func (broken) Look(context.Context, []window.Charge, []window.State) (Verdict, error) {
	return Verdict{}, errLost
}
func (broken) Used(context.Context, []window.Key, []int64) (Verdict, error) {
	return Verdict{}, errLost
}
func (broken) Members(context.Context, window.Digest) ([]window.Member, error) { return nil, errLost }

// alone is a coordinator that answers without the other nodes.
type alone struct{ Local }

func (a alone) Charge(ctx context.Context, c []window.Charge, s []window.State) (Verdict, error) {
	v, err := a.Local.Charge(ctx, c, s)
	v.Degraded = true
	return v, err
}

// TestCoordinatorFails covers T09: an error of the store lets no call through, and a node that answers alone says so.
func TestCoordinatorFails(t *testing.T) {
	set, m := tokensOnly(10)
	e := NewEngine(broken{})
	if p, r, err := e.Charge(t.Context(), m, Cost{Requests: 1}); p != nil || r != nil || !errors.Is(err, errLost) {
		t.Errorf("%v %v %v", p, r, err)
	}
	if r, err := e.Look(t.Context(), m); r != nil || !errors.Is(err, errLost) {
		t.Errorf("%v %v", r, err)
	}
	if _, err := e.Status(t.Context(), set); !errors.Is(err, errLost) {
		t.Error(err)
	}
	each := Compile(acme, []storage.RateLimit{rate("u", storage.Scope{Type: storage.ScopeUser}, storage.TrafficAll, number(1), nil)})
	if _, err := e.Status(t.Context(), each); !errors.Is(err, errLost) {
		t.Error(err)
	}
	e = NewEngine(alone{Local{window.New(newClock().now)}})
	if p := mustCharge(t, e, m, Cost{Tokens: 10}); !p.Degraded() {
		t.Error("not told")
	}
	if r := mustRefuse(t, e, m, Cost{Tokens: 10}); !r.Degraded {
		t.Error("not told")
	}
}

// TestCallsAgainstReference compares calls of any kind, with every end, with a list of their usage.
func TestCallsAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, c := newEngine()
		const most = 1000
		set, m := tokensOnly(most)
		type use struct {
			at     time.Time
			tokens int64
		}
		var uses []*use
		type call struct {
			permit *Permit
			use    *use
		}
		var open []call
		sum := func() (n int64) {
			for _, u := range uses {
				if c.now().Sub(u.at.Truncate(time.Second)) < 61*time.Second { // the clock of the test starts at a full second
					n += u.tokens
				}
			}
			return n
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				tokens := rapid.Int64Range(0, 400).Draw(t, "tokens")
				p, refused, err := e.Charge(context.Background(), m, Cost{Requests: 1, Tokens: tokens})
				if err != nil || (p != nil) != (sum()+max(tokens, 1) <= most) || (p == nil) == (refused == nil) {
					t.Fatalf("%d with %d used: %v %v %v", tokens, sum(), p, refused, err)
				}
				if p != nil {
					u := &use{c.now(), tokens}
					uses = append(uses, u)
					open = append(open, call{p, u})
				}
			case 2:
				if len(open) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				k := open[i]
				open = append(open[:i], open[i+1:]...)
				if rapid.Bool().Draw(t, "usage known") {
					used := rapid.Int64Range(0, 500).Draw(t, "used")
					k.permit.Settle(used)
					if used <= k.use.tokens {
						k.use.tokens = used
					} else {
						uses = append(uses, &use{c.now(), used - k.use.tokens})
					}
				}
				k.permit.Close()
			case 3:
				c.turn(time.Duration(rapid.Int64Range(0, int64(40*time.Second)).Draw(t, "pause")))
			}
			out, err := e.Status(context.Background(), set)
			if err != nil || out[0].Tokens.Used != sum() {
				t.Fatalf("%d tokens, the list has %d: %v", out[0].Tokens.Used, sum(), err)
			}
		}
	})
}

func BenchmarkCharge(b *testing.B) {
	e := NewEngine(Local{window.New(nil)})
	set := Compile(acme, []storage.RateLimit{
		rate("o", storage.Scope{Type: storage.ScopeOrganization}, storage.TrafficAll, number(1<<40), nil),
		rate("u", storage.Scope{Type: storage.ScopeUser}, storage.TrafficAll, number(1<<40), nil),
		rate("s", storage.Scope{Type: storage.ScopeMCPServer}, storage.TrafficAll, number(1<<40), nil),
		rate("a", storage.Scope{Type: storage.ScopeAgent}, storage.TrafficAll, nil, number(1<<40)),
	})
	m := set.Match(caller(storage.TrafficMCP))
	ctx := context.Background()
	b.Run("charge", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if p, _, _ := e.Charge(ctx, m, Cost{Requests: 1, Tokens: 10}); p == nil {
				b.Fatal("refused")
			}
		}
	})
	b.Run("charge and settle", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			p, _, _ := e.Charge(ctx, m, Cost{Requests: 1, Tokens: 10})
			p.Settle(7)
		}
	})
	b.Run("look", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if r, _ := e.Look(ctx, m); r != nil {
				b.Fatal("refused")
			}
		}
	})
}
