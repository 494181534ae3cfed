package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// chunkOf packs entries as a node ships them.
func chunkOf(chain *storage.AuditChain, entries []storage.AuditEntry) storage.AuditChunk {
	first, previous := chain.Sequence+1, chain.Hash
	body := format.AppendChunkHead(nil, &previous)
	earliest, latest := entries[0].At.UnixNano(), entries[0].At.UnixNano()
	var scratch []byte
	for i := range entries {
		e := &entries[i]
		text := format.AppendEntry(nil, e)
		if format.Sharing(e) {
			text = format.AppendShared(format.AppendOwnOf(nil, e), format.AppendSharedOf(nil, e))
		}
		var hash [32]byte
		hash, scratch = format.Next(chain, text, scratch)
		body = format.AppendChunkRecord(body, &hash, text)
		earliest, latest = min(earliest, e.At.UnixNano()), max(latest, e.At.UnixNano())
	}
	format.SetLast(body, &chain.Hash)
	c := storage.AuditChunk{OrganizationID: chain.OrganizationID, Node: chain.Node, Segment: chain.Segment, First: first, Last: chain.Sequence, Data: format.AppendChunk(nil, body)}
	c.From, c.To = format.ChunkSpan(earliest, latest)
	return c
}

// pages reads all rows by cursors.
func pages(t interface {
	Helper()
	Fatal(...any)
}, store storage.Audits, f Filter, limit func() int) (rows []Row) {
	t.Helper()
	var after *Position
	for range 10_000 {
		found, err := Search(context.Background(), store, f, after, limit())
		if err != nil {
			t.Fatal(err)
		}
		if rows = append(rows, found.Rows...); found.Next == nil {
			return rows
		}
		if after, err = ParsePosition(found.Next.String()); err != nil || *after != *found.Next {
			t.Fatal("a cursor is not what was written: ", after, found.Next, err)
		}
	}
	t.Fatal("the pages have no end")
	return nil
}

// TestSearch checks that pages by cursors have exactly the rows of the pages that are counted, each with its outcome.
func TestSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, start := new(memory), time.Unix(1_800_000_000, 0).UTC()
		pick := func(name string, n int) string { return fmt.Sprint(name, rapid.IntRange(0, n-1).Draw(t, name)) }
		for node := range rapid.IntRange(1, 3).Draw(t, "nodes") {
			chain := format.ChainOf(acme, fmt.Sprint("n", node), "00000001")
			own := format.ChainOf(acme, fmt.Sprint("n", node), storage.AuditStoreSegment)
			var entries []storage.AuditEntry
			for i := range rapid.IntRange(1, 40).Draw(t, "calls") {
				at := start.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "at")) * time.Second)
				id := fmt.Sprintf("0190aaaa-0000-7000-8000-%03d%09d", node, i)
				e := storage.AuditEntry{ID: id, At: at, Kind: storage.AuditCall, Event: "decision", UserID: pick("user", 3), Tool: pick("tool", 3), Decision: "allow"}
				switch rapid.IntRange(0, 4).Draw(t, "end") {
				case 0:
					e.Decision, e.Outcome = "deny", "denied"
				case 1: // it is still running
				case 2:
					later := at.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "duration")) * time.Second)
					entries = append(entries, storage.AuditEntry{At: later, Kind: storage.AuditCall, Event: "outcome", Call: id, Outcome: pick("outcome", 2), ApprovalID: pick("approval", 2)})
				default:
					later := at.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "duration")) * time.Second)
					entries = append(entries, storage.AuditEntry{ID: fmt.Sprint("group", id), At: later.Add(time.Millisecond), Kind: storage.AuditCall, Event: "outcomes", Outcomes: []storage.AuditOutcome{
						{Call: id, At: later, Outcome: pick("outcome", 2), Duration: later.Sub(at)},
					}})
				}
				if entries = append(entries, e); i%7 == 0 {
					store.records = append(store.records, own.Next(format.Marshal(storage.AuditEntry{ID: fmt.Sprint("own", node, i), At: at, Kind: storage.AuditAdmin, Event: "policy.update", UserID: pick("user", 3)})))
				}
			}
			slices.SortStableFunc(entries, func(a, b storage.AuditEntry) int { return a.At.Compare(b.At) })
			for some := range slices.Chunk(entries, rapid.IntRange(1, 20).Draw(t, "chunk")) {
				store.chunks = append(store.chunks, chunkOf(&chain, some))
			}
		}
		slices.SortStableFunc(store.records, func(a, b storage.AuditRecord) int {
			return cmp.Compare(format.NanosOf(a.Text), format.NanosOf(b.Text))
		})
		f := Filter{OrganizationID: acme, From: start.Add(-time.Hour), To: start.Add(time.Duration(rapid.IntRange(10, 100).Draw(t, "to")) * time.Second)}
		if rapid.Bool().Draw(t, "narrow") {
			f.UserID, f.Outcome = rapid.SampledFrom([]string{"", "user1"}).Draw(t, "of"), rapid.SampledFrom([]string{"", "outcome1", "denied"}).Draw(t, "end of")
			f.ApprovalID = rapid.SampledFrom([]string{"", "approval1"}).Draw(t, "approved")
			f.Kinds = rapid.SampledFrom([][]storage.AuditKind{nil, {storage.AuditCall}}).Draw(t, "kinds")
		}
		want, err := Page(context.Background(), store, f, storage.PageRequest{Number: 1})
		if err != nil {
			t.Fatal(err)
		}
		got := pages(t, store, f, func() int { return rapid.IntRange(1, 5).Draw(t, "limit") })
		if diff := gocmp.Diff(want.Items, got); diff != "" {
			t.Errorf("(-counted +cursors)\n%s", diff)
		}
		counts, err := CountFacets(context.Background(), store, f, Facets)
		if err != nil || counts.Events != want.Total || counts.Partial {
			t.Fatalf("%+v of %d, %v", counts, want.Total, err)
		}
		byOutcome := make(map[string]int)
		for _, row := range want.Items {
			byOutcome[row.Outcome]++
		}
		for _, c := range counts.Values["outcome"] {
			if c.Events != byOutcome[c.Value] {
				t.Errorf("%d events of the outcome %q, want %d", c.Events, c.Value, byOutcome[c.Value])
			}
		}
	})
}

// longLog is a log of many calls, one a millisecond.
func longLog(t *testing.T, calls int) (*memory, time.Time) {
	t.Helper()
	store, start := new(memory), time.Unix(1_800_000_000, 0).UTC()
	chain := format.ChainOf(acme, "n", "00000001")
	var entries []storage.AuditEntry
	for i := range calls {
		entries = append(entries, storage.AuditEntry{
			ID: fmt.Sprintf("0190aaaa-0000-7000-8000-%012d", i), At: start.Add(time.Duration(i) * time.Millisecond), Kind: storage.AuditCall, Event: "decision",
			UserID: "often", Tool: fmt.Sprint("tool", i%30),
		})
	}
	entries[0].UserID = "rare"
	for some := range slices.Chunk(entries, 1000) {
		store.chunks = append(store.chunks, chunkOf(&chain, some))
	}
	return store, start
}

// TestSearchIsBounded checks that a search that finds nothing ends at its bound, says so, and goes on from there.
func TestSearchIsBounded(t *testing.T) {
	const calls = maxRead + 5_000
	store, start := longLog(t, calls)
	f := Filter{OrganizationID: acme, From: start, To: start.Add(time.Hour), UserID: "rare"}
	found, err := Search(context.Background(), store, f, nil, 10)
	if err != nil || len(found.Rows) > 0 || !found.Partial || found.Next == nil || !found.From.Equal(start.Add((calls-maxRead)*time.Millisecond)) {
		t.Fatalf("%+v, %v", found, err)
	}
	if found, err = Search(context.Background(), store, f, found.Next, 10); err != nil || len(found.Rows) != 1 || found.Next != nil {
		t.Errorf("%+v, %v", found, err)
	}
	// The call has no outcome. Whether there is one was not looked for in all of the log.
	if !found.Partial {
		t.Error("a search for an outcome has an end, and does not say so")
	}
	f.UserID = ""
	c, err := CountFacets(context.Background(), store, f, []string{"tool"})
	if err != nil || c.Events != maxRead || !c.Partial || !c.From.Equal(start.Add((calls-maxRead)*time.Millisecond)) {
		t.Errorf("%+v, %v", c, err)
	}
	if n := c.Values["tool"]; len(n) != maxValues || n[0].Events != (maxRead+29)/30 || c.Others["tool"] != maxRead/30*(30-maxValues) {
		t.Errorf("%+v", c)
	}
	store.before = func(string) error { return errDisk }
	if _, err := Search(context.Background(), store, f, nil, 1); !errors.Is(err, errDisk) {
		t.Error(err)
	}
	if _, err := CountFacets(context.Background(), store, f, nil); !errors.Is(err, errDisk) {
		t.Error(err)
	}
}

// TestPosition checks that nothing but a position is read as one.
func TestPosition(t *testing.T) {
	p := &Position{time.Unix(1, 2).UTC(), "node", "store", 3}
	if len(p.String()) >= MaxPosition {
		t.Error("a position is too long")
	}
	for _, text := range []string{"", "x", "AAAA", p.String()[:20], p.String() + "=", p.String() + "\n", "!" + p.String()[1:]} {
		if got, err := ParsePosition(text); !errors.Is(err, ErrPosition) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func FuzzParsePosition(f *testing.F) {
	f.Add((&Position{time.Unix(1, 2), "node", "store", 3}).String())
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := ParsePosition(text); err == nil && p.String() != text {
			t.Errorf("%q is also %q", text, p.String())
		}
	})
}
