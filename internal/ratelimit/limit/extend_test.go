package limit

import (
	"slices"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// TestExtend checks that a call that is charged before its target is known counts once everywhere in the end, or
// nowhere.
func TestExtend(t *testing.T) {
	e, _ := newEngine()
	set := Compile(acme, []storage.RateLimit{
		rate("org", storage.Scope{Type: storage.ScopeOrganization}, storage.TrafficAll, number(3), number(1000)),
		rate("model", storage.Scope{Type: storage.ScopeModel, Value: "gpt-5-mini"}, storage.TrafficAll, number(1), number(500)),
	})
	early, late := caller(storage.TrafficLLM), caller(storage.TrafficLLM)
	early.ProviderID, early.ProviderName, early.Model = "", "", ""
	used := func(orgRequests, orgTokens, requests, tokens int64) {
		t.Helper()
		got := statusOf(t, e, set)
		if got[0].Requests.Used != orgRequests || got[0].Tokens.Used != orgTokens || got[1].Requests.Used != requests || got[1].Tokens.Used != tokens {
			t.Errorf("%+v %+v %+v %+v", got[0].Requests, got[0].Tokens, got[1].Requests, got[1].Tokens)
		}
	}
	extend := func(p *Permit, tokens int64) *Refusal {
		t.Helper()
		r, err := p.Extend(t.Context(), set.Match(late), tokens)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	p := mustCharge(t, e, set.Match(early), Cost{Requests: 1})
	used(1, 0, 0, 0)
	if r := extend(p, 300); r != nil || p.Reserved() != 300 {
		t.Fatalf("%+v, %d", r, p.Reserved())
	}
	used(1, 300, 1, 300)
	if _, err := p.Extend(t.Context(), set.Match(late), 300); err == nil {
		t.Error("extended twice")
	}
	p.Settle(40)
	used(1, 40, 1, 40)
	if _, err := p.Extend(t.Context(), set.Match(late), 300); err == nil {
		t.Error("extended after its end")
	}

	q := mustCharge(t, e, set.Match(early), Cost{Requests: 1})
	used(2, 40, 1, 40)
	if r := extend(q, 300); r == nil || r.Limit.ID != "model" || r.Measure != Requests || q.Reserved() != 0 {
		t.Fatalf("%+v", r)
	}
	used(2, 40, 1, 40)
	if !q.Cancel() || q.Cancel() || q.Settle(100) {
		t.Error("it ends once")
	}
	used(1, 40, 1, 40)

	left := mustCharge(t, e, set.Match(early), Cost{Requests: 1})
	left.Close()
	if left.Cancel() {
		t.Error("cancelled after its end")
	}
	used(2, 40, 1, 40)
	whole := mustCharge(t, e, set.Match(early), Cost{Requests: 1, Tokens: 100})
	whole.Cancel()
	used(2, 40, 1, 40)
}

// TestAgain covers T07: when a call moves on from a target without known usage, the assumed usage stays there and the
// rest is settled.
func TestAgain(t *testing.T) {
	e, _ := newEngine()
	set := Compile(acme, []storage.RateLimit{
		rate("org", storage.Scope{Type: storage.ScopeOrganization}, storage.TrafficAll, number(9), number(700)),
		rate("each", storage.Scope{Type: storage.ScopeModel}, storage.TrafficAll, number(9), number(1000)),
	})
	on := func(model string) *Matched {
		s := caller(storage.TrafficLLM)
		s.Model = model
		return set.Match(s)
	}
	used := func(requests, tokens int64, each ...SubjectUsage) {
		t.Helper()
		got := statusOf(t, e, set)
		if got[0].Requests.Used != requests || got[0].Tokens.Used != tokens {
			t.Errorf("%+v %+v", got[0].Requests, got[0].Tokens)
		}
		for _, want := range each {
			if !slices.Contains(got[1].Subjects, want) {
				t.Errorf("%+v is not %+v", got[1].Subjects, want)
			}
		}
	}
	p := mustCharge(t, e, on("first"), Cost{Requests: 1, Tokens: 300})
	if r, err := p.Again(t.Context(), on("second"), 250); r != nil || err != nil {
		t.Fatal(r, err)
	}
	used(1, 550, SubjectUsage{"first", 1, 250}, SubjectUsage{"second", 1, 300})
	if r, err := p.Again(t.Context(), on("third"), 1); r == nil || err != nil || r.Measure != Tokens {
		t.Fatal(r, err)
	}
	used(1, 550, SubjectUsage{"first", 1, 250}, SubjectUsage{"second", 1, 300})
	p.Settle(40)
	used(1, 290, SubjectUsage{"first", 1, 250}, SubjectUsage{"second", 1, 40})
	if _, err := p.Again(t.Context(), on("third"), 1); err == nil {
		t.Error("it has ended")
	}
}
