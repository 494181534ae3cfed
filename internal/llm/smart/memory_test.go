package smart

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/storage"
)

// conversation is a router on a clock of the test's own, with a sticky model.
type conversation struct {
	t      *testing.T
	now    time.Time
	router *Router
	model  *storage.SmartModel
	asked  int
	says   string
}

func newConversation(t *testing.T) *conversation {
	c := &conversation{t: t, now: changed, model: model(), says: "0"}
	c.model.Sticky = true
	c.router = New(func() time.Time { return c.now })
	return c
}

// expect routes a request and compares the slot, and the number of questions to the determiner so far, with the
// expected ones.
func (c *conversation) expect(what string, q Request, slot, asked int, reason Reason) {
	c.t.Helper()
	got, err := c.router.Route(c.t.Context(), "o", c.model, q, func(context.Context, string, Prompt) (string, error) {
		c.asked++
		return c.says, nil
	})
	if err != nil || got.Slot != slot || c.asked != asked || got.Reason != reason {
		c.t.Errorf("%s: slot %d, asked %d, %s, %v; want slot %d, asked %d, %s", what, got.Slot, c.asked, got.Reason, err, slot, asked, reason)
	}
}

func TestSticky(t *testing.T) {
	c := newConversation(t)
	q := Request{Caller: "alice", FirstUser: "hello", LastUser: "hello"}
	c.expect("the first", q, 0, 1, ByDeterminer)
	c.says = "2"
	q.LastUser = "prove it"
	c.expect("a later one", q, 0, 1, BySticky)
	q.Estimate = 1000
	c.expect("a longer one", q, 1, 1, ByFloor)
	q.Estimate = 10
	c.expect("a shorter one again", q, 0, 1, BySticky)

	other := q
	other.Caller = "bob"
	c.expect("another caller", other, 2, 2, ByDeterminer)
	other = q
	other.FirstUser = "Hello"
	c.expect("another conversation", other, 2, 3, ByDeterminer)
	other = q
	other.FirstUser = ""
	c.expect("nothing to tell it by", other, 2, 4, ByDeterminer)
	c.expect("nothing to tell it by", other, 2, 5, ByDeterminer)

	c.model.UpdatedAt = changed.Add(time.Microsecond)
	c.expect("a changed policy", q, 2, 6, ByDeterminer)
	c.model.ID = "m2"
	c.expect("another policy of the name", q, 2, 7, ByDeterminer)
	c.model.Sticky = false
	c.expect("not sticky any more", q, 2, 8, ByDeterminer)
}

func TestStickyPerOrganization(t *testing.T) {
	c := newConversation(t)
	q := Request{Caller: "alice", FirstUser: "hello"}
	c.expect("the first", q, 0, 1, ByDeterminer)
	got, err := c.router.Route(t.Context(), "o2", c.model, q, says("2"))
	if err != nil || got.Reason != ByDeterminer || got.Slot != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestFailuresAreNotSticky(t *testing.T) {
	c := newConversation(t)
	q := Request{Caller: "alice", FirstUser: "hello"}
	c.says = "?"
	c.expect("garbage", q, 1, 1, ByGarbage)
	c.says = "2"
	c.expect("the next", q, 2, 2, ByDeterminer)
	c.expect("the one after", q, 2, 2, BySticky)
}

func TestStickyEnds(t *testing.T) {
	c := newConversation(t)
	q := Request{Caller: "alice", FirstUser: "hello"}
	c.expect("the first", q, 0, 1, ByDeterminer)
	c.says = "2"
	for range 3 {
		c.now = c.now.Add(rememberedFor - 1)
		c.expect("within the hour", q, 0, 1, BySticky)
	}
	c.now = c.now.Add(rememberedFor)
	c.expect("after it", q, 2, 2, ByDeterminer)
	c.now = c.now.Add(-24 * time.Hour)
	c.expect("the clock stepped back", q, 2, 2, BySticky)
}

func TestMemoryIsBounded(t *testing.T) {
	const most = 8
	rapid.Check(t, func(t *rapid.T) {
		m := memory{most: most}
		var recent []byte // keys in the order of their last use, the latest last
		for _, k := range rapid.SliceOfN(rapid.ByteMax(40), 1, 200).Draw(t, "keys") {
			key := conversationKey{k}
			_, known := m.recall(key, changed)
			within := false // is it among the most recently used keys?
			for i := len(recent) - 1; i >= 0; i-- {
				if recent[i] == k {
					within = len(recent)-i <= most
					recent = append(recent[:i], recent[i+1:]...)
					break
				}
			}
			recent = append(recent, k)
			if within && !known {
				t.Fatalf("%d was forgotten among %d", k, most)
			}
			if got := m.keep(key, int(k), changed); got != int(k) {
				t.Fatalf("%d has the answer %d", k, got)
			}
			if n := len(m.young) + len(m.old); n > 2*most {
				t.Fatalf("%d kept", n)
			}
		}
	})
}

// TestFirstAnswerStays checks that two requests of one conversation that are decided at the same time go to the same
// slot afterwards.
func TestFirstAnswerStays(t *testing.T) {
	c := newConversation(t)
	q := Request{Caller: "alice", FirstUser: "hello"}
	outer, err := c.router.Route(t.Context(), "o", c.model, q, func(ctx context.Context, _ string, _ Prompt) (string, error) {
		inner, err := c.router.Route(ctx, "o", c.model, q, says("2"))
		if err != nil || inner.Slot != 2 {
			t.Errorf("%+v, %v", inner, err)
		}
		return "0", nil
	})
	if err != nil || outer.Slot != 2 || outer.Reason != ByDeterminer {
		t.Errorf("%+v, %v", outer, err)
	}
}

// TestNeverBelowTheFloor checks for any request, policy and answer that the slot is at least the floor. When the
// determiner failed it is the default.
func TestNeverBelowTheFloor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := model()
		m.Slots = nil
		for i := range rapid.IntRange(1, 6).Draw(t, "slots") {
			m.Slots = append(m.Slots, storage.ModelSlot{Alias: "a" + strconv.Itoa(i)})
		}
		m.Breakpoints = nil
		for at, i := 0, 0; i < rapid.IntRange(0, len(m.Slots)-1).Draw(t, "breakpoints"); i++ {
			at += rapid.IntRange(1, 50).Draw(t, "step")
			m.Breakpoints = append(m.Breakpoints, at)
		}
		m.DefaultSlot = rapid.IntRange(0, len(m.Slots)-1).Draw(t, "default")
		m.Sticky = rapid.Bool().Draw(t, "sticky")
		router := New(func() time.Time { return changed })
		for range 4 {
			q := Request{Estimate: rapid.Int64Range(0, 300).Draw(t, "tokens"), Caller: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "caller"), FirstUser: "hello"}
			answer := rapid.OneOf(rapid.Just("?"), rapid.Map(rapid.IntRange(-1, 8), strconv.Itoa)).Draw(t, "answer")
			var failure error
			if rapid.Bool().Draw(t, "fails") {
				failure = errors.New("no")
			}
			got, err := router.Route(t.Context(), "o", m, q, func(context.Context, string, Prompt) (string, error) { return answer, failure })
			if err != nil {
				t.Fatal(err)
			}
			floor := 0
			for _, at := range m.Breakpoints {
				if int64(at) <= q.Estimate {
					floor++
				}
			}
			switch {
			case got.Floor != floor || got.Alias != m.Slots[got.Slot].Alias:
				t.Fatalf("floor %d: %+v", floor, got)
			case got.Reason.Failed() && got.Slot != m.DefaultSlot, !got.Reason.Failed() && got.Slot != max(floor, got.Answer):
				t.Fatalf("default %d: %+v", m.DefaultSlot, got)
			}
		}
	})
}

func TestConcurrently(t *testing.T) {
	router := New(nil)
	router.sticky.most = 4
	m := model()
	m.Sticky = true
	var asked atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 200 {
				q := Request{Caller: fmt.Sprint("c", (i+j)%12), FirstUser: "hello"}
				got, err := router.Route(t.Context(), "o", m, q, func(context.Context, string, Prompt) (string, error) {
					asked.Add(1)
					return strconv.Itoa(len(q.Caller) % 3), nil
				})
				if err != nil || got.Slot != len(q.Caller)%3 {
					t.Errorf("%+v, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
	if asked.Load() == 0 {
		t.Error("nobody was asked")
	}
}

func BenchmarkSticky(b *testing.B) {
	router := New(nil)
	m := model()
	m.Sticky = true
	q := Request{Caller: "018f3c2e-0000-7000-8000-000000000001", FirstUser: "How do I prove that?"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := router.Route(b.Context(), "o", m, q, says("1")); err != nil {
			b.Fatal(err)
		}
	}
}
