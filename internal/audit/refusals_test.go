package audit

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/storage"
)

// TestRefusals checks that a refused caller can neither fill the disk nor keep the refusals of others out of the log.
func TestRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRefusals(time.Now)
		count := func(n int, organization, user string) (taken int) {
			for range n {
				if r.allow(organization, user) {
					taken++
				}
			}
			return taken
		}
		want := func(what string, got, want int) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %d are recorded, want %d", what, got, want)
			}
		}
		want("wrong tokens", count(1000, "", ""), refusedTokensBurst)
		want("a user", count(1000, acme, "mallory"), refusalBurst)
		want("another user", count(1000, acme, "bob"), refusalBurst)
		want("the same user elsewhere", count(1000, other, "mallory"), refusalBurst)
		want("one after many", count(1, other, "alice"), 1)
		if got, want := r.dropped.Load(), int64(1000-refusedTokensBurst+3*(1000-refusalBurst)); got != want {
			t.Errorf("%d are counted as not recorded, want %d", got, want)
		}
		if got := r.tell(); len(got) != 3 || got[""] != 1000-refusedTokensBurst || got[acme] != 2*(1000-refusalBurst) || got[other] != 1000-refusalBurst {
			t.Errorf("not recorded: %v", got)
		}
		if got := r.tell(); got != nil {
			t.Errorf("it is told again: %v", got)
		}
		time.Sleep(time.Second) //nolint:forbidigo // the clock of synctest
		want("wrong tokens a second later", count(1000, "", ""), refusedTokensPerSecond)
		want("a user a second later", count(1000, acme, "mallory"), refusalsPerSecond)

		time.Sleep(time.Hour) //nolint:forbidigo // the clock of synctest
		total := 0
		for i := range 2 * maxRefused {
			total += count(1, acme, strconv.Itoa(i))
		}
		want("many users", total, allRefusalsBurst)
		if len(r.users) > maxRefused+1 {
			t.Errorf("%d users are remembered", len(r.users))
		}
		time.Sleep(time.Hour) //nolint:forbidigo // the clock of synctest
		want("somebody else an hour later", count(1, other, "zoe"), 1)
		if len(r.users) > maxRefused {
			t.Errorf("%d users are remembered", len(r.users))
		}
	})
}

// TestRefusedUsersAreSwept checks that users whose bound is whole again make room for others, and that nobody looks for
// them at each refusal.
func TestRefusedUsersAreSwept(t *testing.T) {
	now := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	r := newRefusals(func() time.Time { return now })
	fill := func() {
		for i := range maxRefused {
			r.allow(acme, strconv.Itoa(i))
		}
	}
	fill()
	now = now.Add(time.Second / 2) // each has the refusal back
	if r.allow(acme, "next"); len(r.users) != 1 {
		t.Errorf("%d users are remembered", len(r.users))
	}
	fill()
	now = now.Add(time.Second - 1)
	if r.allow(acme, "too early"); len(r.users) != maxRefused+1 || r.users[refusedUser{}] == nil {
		t.Errorf("%d users are remembered before a second has passed", len(r.users))
	}
	now = now.Add(1)
	if r.allow(acme, "in time"); len(r.users) > 2 {
		t.Errorf("%d users are remembered after a second", len(r.users))
	}
}

// TestUnrecorded checks that the number of unrecorded refusals is recorded in each organization's own log, within seconds
// and at the end.
func TestUnrecorded(t *testing.T) {
	for name, then := range map[string]func(*Trail) error{
		"while it runs": func(*Trail) error { pass(shipEvery + time.Millisecond); return nil },
		"at the end":    (*Trail).Close,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := new(memory)
				trail := newTrail(t, testOptions(t, t.TempDir()), store)
				for range refusalBurst + 7 {
					trail.AllowRefusal(acme, "mallory")
				}
				if err := then(trail); err != nil {
					t.Fatal(err)
				}
				page, err := query.Page(t.Context(), store, query.Filter{OrganizationID: acme, To: time.Now().Add(time.Hour)}, storage.PageRequest{Number: 1})
				if err != nil || page.Total != 1 || page.Items[0].Event != "refusals.unrecorded" || page.Items[0].Detail["refusals"] != float64(7) {
					t.Errorf("%+v, %v", page.Items, err)
				}
				if n := trail.Losses()["refusals"]; n != 7 {
					t.Errorf("%d are counted", n)
				}
			})
		})
	}
}
