package query

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

const acme = "0190aaaa-0000-7000-8000-000000000001"

var errDisk = errors.New("no space left on device")

// memory is the part of a store that queries read.
type memory struct {
	storage.Audits
	chunks  []storage.AuditChunk
	records []storage.AuditRecord
	ends    []storage.AuditChain
	before  func(call string) error // comes before each call; nil: nothing does
}

func (m *memory) called(call string) error {
	if m.before == nil {
		return nil
	}
	return m.before(call)
}

func (m *memory) AuditChains(context.Context, string) ([]storage.AuditChain, error) {
	err := m.called("chains")
	return slices.Clone(m.ends), err
}

func (m *memory) AuditChunks(_ context.Context, f storage.AuditFilter) ([]storage.AuditChunk, error) {
	if err := m.called("chunks"); err != nil {
		return nil, err
	}
	var all []storage.AuditChunk
	for _, c := range m.chunks {
		if c.OrganizationID == f.OrganizationID && !c.To.Before(f.From) && c.From.Before(f.To) {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b storage.AuditChunk) int { return b.To.Compare(a.To) })
	return all[:min(f.Limit, len(all))], nil
}

func (m *memory) AuditRecords(_ context.Context, f storage.AuditFilter) ([]storage.AuditRecord, error) {
	if err := m.called("records"); err != nil {
		return nil, err
	}
	var all []storage.AuditRecord
	for _, r := range slices.Backward(m.records) {
		if at := format.TimeOf(r.Text); r.OrganizationID == f.OrganizationID && !at.Before(f.From) && at.Before(f.To) {
			all = append(all, r)
		}
	}
	return all, nil
}

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
		{storage.PageRequest{Number: 1}, time.Second, 3*time.Second + format.Precision, "321", 3}, {storage.PageRequest{Number: 1}, time.Second + format.Precision - 1, 3 * time.Second, "21", 2}, {storage.PageRequest{Number: 1}, time.Second, time.Second, "", 0}, {storage.PageRequest{Number: 1}, time.Second, 0, "", 0},
	} {
		page, err := Page(t.Context(), store, Filter{OrganizationID: acme, From: start.Add(c.from), To: start.Add(c.to)}, c.page)
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
		chain := format.ChainOf(acme, "n", fmt.Sprintf("%08d", i+1))
		body := format.AppendChunkHead(nil, new([32]byte))
		var times []time.Time
		for n := range 2 {
			at := start.Add(time.Duration(n) * time.Minute).Add(time.Duration(i) * time.Millisecond)
			text := format.AppendEntry(nil, &storage.AuditEntry{ID: fmt.Sprint(i), At: at, Kind: storage.AuditCall, Event: "decision"})
			hash, _ := format.Next(&chain, text, nil)
			body = format.AppendChunkRecord(body, &hash, text)
			times = append(times, at)
		}
		format.SetLast(body, &chain.Hash)
		c := storage.AuditChunk{OrganizationID: acme, Node: "n", Segment: chain.Segment, First: 1, Last: 2, Data: format.AppendChunk(nil, body)}
		c.From, c.To = format.ChunkSpan(times[0].UnixNano(), times[1].UnixNano())
		store.chunks = append(store.chunks, c)
	}
	return store, start
}

// TestWindows checks that a window ends where the store may have more records, and that no record is read twice or
// skipped.
func TestWindows(t *testing.T) {
	for _, chunks := range []int{1, pageChunks - 1, pageChunks, pageChunks + 1, 3 * pageChunks} {
		store, start := crowdedStore(t, chunks)
		asked := 0
		store.before = func(string) error {
			if asked++; asked > 10_000 {
				return errDisk // it would read on without an end
			}
			return nil
		}
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
		}{{0, 0, 0}, {0, format.Precision, 1}, {format.Precision, time.Minute, chunks - 1}, {time.Minute, time.Minute + format.Precision, 1}, {time.Minute + format.Precision, time.Hour, chunks - 1}, {time.Second, time.Minute, 0}, {format.Precision - 1, format.Precision, 1}, {time.Minute, time.Minute + 2*format.Precision - 1, 1}} {
			times = nil
			f.From, f.To = start.Add(c.from), start.Add(c.to)
			if err := Records(t.Context(), store, f, each); err != nil || len(times) != c.want {
				t.Errorf("of %d chunks, from %s to %s: %d records, want %d, %v", chunks, c.from, c.to, len(times), c.want, err)
			}
		}
	}
	away := func(call string) *memory {
		return &memory{before: func(this string) error {
			if this == call {
				return errDisk
			}
			return nil
		}}
	}
	failing := away("chunks")
	f := storage.AuditFilter{OrganizationID: acme, From: time.Unix(0, 0), To: time.Unix(1, 0)}
	if err := Records(t.Context(), failing, f, nil); !errors.Is(err, errDisk) {
		t.Error(err)
	}
	if _, err := Page(t.Context(), failing, Filter{OrganizationID: acme, From: f.From, To: f.To}, storage.PageRequest{Number: 1}); !errors.Is(err, errDisk) {
		t.Error(err)
	}
	if err := Records(t.Context(), away("records"), f, nil); !errors.Is(err, errDisk) {
		t.Error(err)
	}
}

// TestPageOfOutcomes checks that an intent and its outcome are one row, and that an outcome without its intent is none.
func TestPageOfOutcomes(t *testing.T) {
	store := new(memory)
	at := time.Unix(1_800_000_000, 0).UTC()
	chain := format.ChainOf(acme, "n", storage.AuditStoreSegment)
	for _, e := range []storage.AuditEntry{
		{ID: "call", At: at, Kind: storage.AuditCall, Event: "decision"},
		{ID: "outcome", At: at.Add(1), Kind: storage.AuditCall, Event: "outcome", Call: "call", Outcome: "ok"},
		{ID: "lost", At: at.Add(2), Kind: storage.AuditCall, Event: "outcome", Call: "another", Outcome: "ok"},
	} {
		store.records = append(store.records, chain.Next(format.Marshal(e)))
	}
	page, err := Page(t.Context(), store, Filter{OrganizationID: acme, From: at, To: at.Add(time.Hour), Outcome: "ok"}, storage.PageRequest{Number: 1})
	if err != nil || page.Total != 1 || len(page.Items) != 1 || page.Items[0].ID != "call" || page.Items[0].Outcome != "ok" {
		t.Errorf("%+v, %v", page, err)
	}
}
