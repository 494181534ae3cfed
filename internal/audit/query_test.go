package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// TestFilter checks that each set member of a filter compares its own member of an entry, and that unset members select
// all.
func TestFilter(t *testing.T) {
	e := storage.AuditEntry{
		Kind: storage.AuditCall, UserID: "user", AgentID: "agent", ServerID: "server", Tool: "tool", Decision: "allow", Outcome: "ok", PolicyID: "policy", ApprovalID: "approval",
		Session: "session",
	}
	if !(&Filter{}).passes(&e) || !(&Filter{}).passes(&storage.AuditEntry{}) {
		t.Error("a filter of nothing narrows")
	}
	for _, kinds := range [][]storage.AuditKind{{storage.AuditCall}, {storage.AuditAdmin, storage.AuditCall}, {storage.AuditAdmin}} {
		if got, want := (&Filter{Kinds: kinds}).passes(&e), slices.Contains(kinds, storage.AuditCall); got != want {
			t.Errorf("kinds %v: %v", kinds, got)
		}
	}
	for _, member := range []string{"UserID", "AgentID", "ServerID", "Tool", "Decision", "Outcome", "PolicyID", "ApprovalID", "Session"} {
		var f Filter
		set := reflect.ValueOf(&f).Elem().FieldByName(member)
		set.SetString(reflect.ValueOf(e).FieldByName(member).String())
		if !f.passes(&e) {
			t.Errorf("%s does not find what it says", member)
		}
		set.SetString("another")
		if f.passes(&e) {
			t.Errorf("%s finds another one", member)
		}
		if other := e; f.passes(&storage.AuditEntry{Kind: other.Kind}) {
			t.Errorf("%s finds one without", member)
		}
	}
}

// TestCompletions checks the outcomes with which an intent is shown, as of a time.
func TestCompletions(t *testing.T) {
	to := time.Unix(100, 0)
	before, at := to.Add(-1), to
	alone := storage.AuditEntry{
		At: before, Call: "call", Outcome: "ok", Duration: 7, UpstreamStatus: 200, ApprovalID: "approval", Detail: map[string]any{"a": 1, "b": 2},
	}
	intent := storage.AuditEntry{ID: "call", At: before, Detail: map[string]any{"b": 0, "c": 3}}
	late := alone
	late.At = at
	own := intent
	own.ApprovalID = "its own"
	bare := storage.AuditEntry{ID: "call"}
	several := storage.AuditEntry{At: at, Outcomes: []storage.AuditOutcome{
		{Call: "call", At: before, Outcome: "early", Duration: 1, UpstreamStatus: 1}, {Call: "call late", At: at, Outcome: "late"},
	}}
	for name, c := range map[string]struct {
		taken  []storage.AuditEntry
		isNone bool // the last entry completes no other
		of     storage.AuditEntry
		want   storage.AuditEntry
	}{
		"its outcome": {[]storage.AuditEntry{alone}, false, intent, storage.AuditEntry{
			ID: "call", At: before, Outcome: "ok", Duration: 7, UpstreamStatus: 200, ApprovalID: "approval", Detail: map[string]any{"a": 1, "b": 2, "c": 3},
		}},
		"without a detail":      {[]storage.AuditEntry{alone}, false, bare, storage.AuditEntry{ID: "call", Outcome: "ok", Duration: 7, UpstreamStatus: 200, ApprovalID: "approval", Detail: alone.Detail}},
		"with its own approval": {[]storage.AuditEntry{alone}, false, own, storage.AuditEntry{ID: "call", At: before, Outcome: "ok", Duration: 7, UpstreamStatus: 200, ApprovalID: "its own", Detail: map[string]any{"a": 1, "b": 2, "c": 3}}},
		"one that was later":    {[]storage.AuditEntry{late}, false, bare, bare},
		"one of several":        {[]storage.AuditEntry{several}, false, bare, storage.AuditEntry{ID: "call", Outcome: "early", Duration: 1, UpstreamStatus: 1}},
		"a later one of them":   {[]storage.AuditEntry{several}, false, storage.AuditEntry{ID: "call late"}, storage.AuditEntry{ID: "call late"}},
		"that of another":       {[]storage.AuditEntry{alone}, false, storage.AuditEntry{ID: "another"}, storage.AuditEntry{ID: "another"}},
		"an intent":             {[]storage.AuditEntry{intent}, true, bare, bare},
	} {
		all := make(completions)
		for i := range c.taken {
			e := c.taken[i]
			if got := all.take(&e, to); got == c.isNone {
				t.Errorf("%s: it completes others: %v", name, got)
			}
		}
		e := c.of
		if e.Detail != nil {
			e.Detail = map[string]any{}
			for k, v := range c.of.Detail {
				e.Detail[k] = v
			}
		}
		all.complete(&e)
		if diff := gocmp.Diff(c.want, e); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		again := bare
		if all.complete(&again); c.of.ID == "call" && again.Outcome != "" {
			t.Errorf("%s: it is shown twice", name)
		}
	}
}

// TestPages checks that a page has the rows of its number and limit, up to the last row.
func TestPages(t *testing.T) {
	store := new(memory)
	start := time.Unix(1_800_000_000, 0).UTC()
	chain := format.ChainOf(acme, "n", storage.AuditStoreSegment)
	for i := range 5 {
		store.records = append(store.records, chain.Next(format.Marshal(storage.AuditEntry{ID: fmt.Sprint(i), At: start.Add(time.Duration(i) * time.Second), Kind: storage.AuditAdmin})))
	}
	store.records = append(store.records, chain.Next([]byte(`"tampered with"`)))
	for _, c := range []struct {
		page     storage.PageRequest
		from, to time.Duration
		want     string
		total    int
	}{
		{storage.PageRequest{Number: 1}, 0, time.Hour, "43210", 5}, {storage.PageRequest{Number: 1, Limit: 2}, 0, time.Hour, "43", 5}, {storage.PageRequest{Number: 2, Limit: 2}, 0, time.Hour, "21", 5},
		{storage.PageRequest{Number: 3, Limit: 2}, 0, time.Hour, "0", 5}, {storage.PageRequest{Number: 4, Limit: 2}, 0, time.Hour, "", 5}, {storage.PageRequest{Number: 1, Limit: 5}, 0, time.Hour, "43210", 5},
		{storage.PageRequest{Number: 1}, time.Second, 3 * time.Second, "21", 2}, {storage.PageRequest{Number: 1}, time.Second, 3*time.Second + 1, "21", 2},
		{storage.PageRequest{Number: 1}, time.Second, 3*time.Second + format.Precision, "321", 3}, {storage.PageRequest{Number: 1}, time.Second, time.Second, "", 0}, {storage.PageRequest{Number: 1}, time.Second, 0, "", 0},
	} {
		page, err := Query(t.Context(), store, Filter{OrganizationID: acme, From: start.Add(c.from), To: start.Add(c.to)}, c.page)
		got := ""
		for _, row := range page.Items {
			got += row.ID
		}
		if err != nil || got != c.want || page.Total != c.total {
			t.Errorf("%+v: %s of %d, %v", c, got, page.Total, err)
		}
	}
}

// crowdedStore is a store with chunks that all overlap.
func crowdedStore(t *testing.T, chunks int) (*memory, time.Time) {
	t.Helper()
	store, start := new(memory), time.Unix(1_800_000_000, 0).UTC()
	for i := range chunks {
		w := newChunk("n", segmentName(i+1), acme, new([32]byte), 1, nil)
		chain := format.ChainOf(acme, "n", segmentName(i+1))
		for n := range 2 {
			at := start.Add(time.Duration(n) * time.Minute).Add(time.Duration(i) * time.Millisecond)
			text := format.AppendEntry(nil, &storage.AuditEntry{ID: fmt.Sprint(i), At: at, Kind: storage.AuditCall, Event: "decision"})
			hash, _ := format.Next(&chain, text, nil)
			w.add(chain.Sequence, &hash, text, at.UnixNano())
		}
		c, _ := w.finish(nil)
		store.chunks = append(store.chunks, c)
	}
	return store, start
}

// TestWindows checks that a window ends where the store may have more records, and that no record is read twice or
// skipped.
func TestWindows(t *testing.T) {
	for _, chunks := range []int{1, pageChunks - 1, pageChunks, pageChunks + 1, 3 * pageChunks} {
		store, start := crowdedStore(t, chunks)
		f := storage.AuditFilter{OrganizationID: acme, From: start, To: start.Add(time.Hour)}
		var times []time.Time
		each := func(r *storage.AuditRecord) error { times = append(times, format.TimeOf(r.Text)); return nil }
		if err := Records(t.Context(), store, f, each); err != nil || len(times) != 2*chunks || !slices.IsSortedFunc(times, time.Time.Compare) {
			t.Errorf("%d records of %d chunks in this order: %v", len(times), chunks, err)
		}
		times = nil
		if err := backwards(t.Context(), store, f, func(r *storage.AuditRecord) { _ = each(r) }); err != nil || len(times) != 2*chunks {
			t.Errorf("backwards %d records of %d chunks: %v", len(times), chunks, err)
		}
		if slices.Reverse(times); !slices.IsSortedFunc(times, time.Time.Compare) {
			t.Errorf("backwards %d chunks are in another order", chunks)
		}
		// This is a part of the span.
		for _, c := range []struct {
			from, to time.Duration
			want     int
		}{{0, 0, 0}, {0, format.Precision, 1}, {format.Precision, time.Minute, chunks - 1}, {time.Minute, time.Minute + format.Precision, 1}, {time.Minute + format.Precision, time.Hour, chunks - 1}, {time.Second, time.Minute, 0}} {
			times = nil
			f.From, f.To = start.Add(c.from), start.Add(c.to)
			if err := Records(t.Context(), store, f, each); err != nil || len(times) != c.want {
				t.Errorf("of %d chunks, from %s to %s: %d records, want %d, %v", chunks, c.from, c.to, len(times), c.want, err)
			}
		}
	}
	failing := &failingStore{memory: new(memory), chunks: errDisk}
	f := storage.AuditFilter{OrganizationID: acme, From: time.Unix(0, 0), To: time.Unix(1, 0)}
	if err := Records(t.Context(), failing, f, nil); !errors.Is(err, errDisk) {
		t.Error(err)
	}
	if _, err := Query(t.Context(), failing, Filter{OrganizationID: acme, From: f.From, To: f.To}, storage.PageRequest{Number: 1}); !errors.Is(err, errDisk) {
		t.Error(err)
	}
	if err := Records(t.Context(), ownFails{new(memory)}, f, nil); !errors.Is(err, errDisk) {
		t.Error(err)
	}
}

// ownFails is a store whose own records cannot be read.
type ownFails struct{ *memory }

func (ownFails) AuditRecords(context.Context, storage.AuditFilter) ([]storage.AuditRecord, error) {
	return nil, errDisk
}

// TestEverythingAsked checks that the requested records of stores and journals come once, and that each record of a
// journal follows the one before it.
func TestEverythingAsked(t *testing.T) {
	root, store := t.TempDir(), new(memory)
	j := openJournal(t, testOptions(t, root))
	start := time.Unix(1_800_000_000, 0).UTC()
	trail := &Trail{journal: j, store: store}
	add := func(organization, tool string, second int) {
		e := intent(tool)
		e.At = start.Add(time.Duration(second) * time.Second)
		if err := j.Append(organization, e); err != nil {
			t.Fatal(err)
		}
	}
	add(acme, "1", 1)
	add(other, "2", 2)
	for _, organization := range []string{acme, other} {
		e := intent("3")
		e.At = start.Add(3 * time.Second)
		if err := store.RecordAudit(storage.WithAudit(t.Context(), trail.Audited(organization, *e))); err != nil {
			t.Fatal(err)
		}
	}
	if err := newShipper(j, store).ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	add(acme, "4", 4)
	add("", "5", 5)
	if err := j.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	add("", "6", 6)
	add(other, "7", 7)
	add("", "8", 8)
	kill(t, j)
	s := &scene{root: root, dir: j.dir, store: store, journal: j}
	lines := slices.DeleteFunc(s.lines(t, 1), func(line []byte) bool { return len(line) == 0 || line[0] == 0 })
	s.rewrite(t, 1, slices.Insert(lines, len(lines)-1, []byte("nothing to see here\n")))
	// Chains come in any order: those of one organization may be apart.
	store.heads = func(all []storage.AuditChain) []storage.AuditChain {
		slices.SortFunc(all, func(a, b storage.AuditChain) int {
			return cmp.Or(strings.Compare(a.Segment, b.Segment), strings.Compare(a.OrganizationID, b.OrganizationID))
		})
		return all
	}
	for _, c := range []struct {
		organization   string
		from, to       int
		stored, behind string // tools of the records in the store, and of those only in the journal
	}{
		{"*", 0, 9, "1233", "45678"}, {acme, 0, 9, "13", "4"}, {other, 0, 9, "23", "7"}, {"", 0, 9, "", "568"}, {"*", 2, 7, "233", "456"}, {"*", 5, 6, "", "5"}, {acme, 4, 4, "", ""}, {"nobody", 0, 9, "", ""},
	} {
		var stored, behind []byte
		last := make(map[string][32]byte) // the last hash of an organization's records in the journal
		err := Everything(t.Context(), root, store, c.organization, start.Add(time.Duration(c.from)*time.Second), start.Add(time.Duration(c.to)*time.Second), func(r *storage.AuditRecord) error {
			e, err := format.EntryOf(r)
			if err != nil || e.Tool <= "3" {
				stored = append(stored, e.Tool...)
				return err
			}
			behind = append(behind, e.Tool...)
			if before, ok := last[r.OrganizationID]; ok && r.Previous != before {
				t.Errorf("%+v: record %s does not follow the one before", c, e.Tool)
			}
			last[r.OrganizationID] = r.Hash
			return nil
		})
		if slices.Sort(stored); err != nil || string(stored) != c.stored || string(behind) != c.behind { // organizations come one after the other
			t.Errorf("%+v: %s and %s, %v", c, stored, behind, err)
		}
	}
	stop := errors.New("enough")
	for _, organization := range []string{acme, ""} {
		if err := Everything(t.Context(), root, store, organization, start, start.Add(time.Hour), func(*storage.AuditRecord) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("%q: %v", organization, err)
		}
	}
	if err := Everything(t.Context(), root, &failingStore{memory: store, chains: errDisk}, "*", start, start.Add(time.Hour), nil); !errors.Is(err, errDisk) {
		t.Error(err)
	}
}

func TestEntryOf(t *testing.T) {
	if _, err := format.EntryOf(&storage.AuditRecord{Text: []byte("nothing")}); err == nil {
		t.Error("what is no entry is one")
	}
	if e, err := format.EntryOf(&storage.AuditRecord{Text: format.Marshal(intent("tool"))}); err != nil || e.Tool != "tool" || !json.Valid(format.LongText([]byte("nothing"))) {
		t.Errorf("%+v, %v", e, err)
	}
}
