package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

func newTrail(t testing.TB, o Options, store storage.Audits) *Trail {
	t.Helper()
	trail, err := NewTrail(o, store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = trail.Close() })
	return trail
}

// TestQuery: rows of calls are whole, newest first, in pages and through filters, from many chunks and the store's own
// records; the oldest-first reading finds the same records.
func TestQuery(t *testing.T) {
	store := new(memory)
	trail := newTrail(t, testOptions(t, t.TempDir()), store)
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const calls = 500
	for i := range calls {
		e := intent(fmt.Sprint("tool", i%5))
		e.At = start.Add(time.Duration(i) * 7 * time.Minute)
		if err := trail.Append(acme, e); err != nil {
			t.Fatal(err)
		}
		out := outcomeOf(e)
		out.At = e.At.Add(11 * time.Minute) // after others have begun
		if i%7 == 0 {
			out.Outcome = "upstream_error"
		}
		trail.Later(acme, out)
		if i%3 == 0 { // many small chunks that overlap
			if err := trail.Ship(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if i%50 == 0 {
			write := intent("")
			write.At, write.Kind, write.Event = e.At.Add(time.Second), storage.AuditAdmin, "policy.update"
			if err := store.RecordAudit(storage.WithAudit(t.Context(), trail.Audited(acme, *write))); err != nil {
				t.Fatal(err)
			}
		}
	}
	f := Filter{OrganizationID: acme, From: start, To: start.AddDate(0, 1, 0)}
	all, err := trail.Query(t.Context(), f, storage.PageRequest{Number: 1})
	if err != nil || all.Total != calls+calls/50 || len(all.Items) != all.Total {
		t.Fatalf("%d of %d, %v", len(all.Items), all.Total, err)
	}
	for i, row := range all.Items {
		if i > 0 && row.At.After(all.Items[i-1].At) {
			t.Errorf("row %d is newer than the one before", i)
		}
		if row.Kind == storage.AuditCall && (row.Outcome == "" || row.Duration == 0 || row.UpstreamStatus != 200) {
			t.Errorf("row %d has no outcome: %+v", i, row)
		}
	}
	var paged []Row
	for number := 1; ; number++ {
		page, err := Query(t.Context(), store, f, storage.PageRequest{Number: number, Limit: 37})
		if err != nil || page.Total != all.Total {
			t.Fatal(page.Total, err)
		}
		if paged = append(paged, page.Items...); len(page.Items) == 0 {
			break
		}
	}
	for i := range paged {
		if paged[i].ID != all.Items[i].ID {
			t.Fatalf("page row %d is another one", i)
		}
	}
	for name, c := range map[string]struct {
		narrow func(*Filter)
		want   int
	}{
		"kind":    {func(f *Filter) { f.Kinds = []storage.AuditKind{storage.AuditAdmin} }, calls / 50},
		"tool":    {func(f *Filter) { f.Tool = "tool3" }, calls / 5},
		"outcome": {func(f *Filter) { f.Outcome = "upstream_error" }, calls/7 + 1},
		"time":    {func(f *Filter) { f.To = start.Add(70 * time.Minute) }, 10 + 1},
		"user":    {func(f *Filter) { f.UserID = "nobody" }, 0},
		"tenant":  {func(f *Filter) { f.OrganizationID = other }, 0},
	} {
		narrowed := f
		c.narrow(&narrowed)
		if page, err := Query(t.Context(), store, narrowed, storage.PageRequest{Number: 1, Limit: 5}); err != nil || page.Total != c.want {
			t.Errorf("%s: %d, want %d, %v", name, page.Total, c.want, err)
		}
	}
	var last time.Time
	seen := make(map[string]bool)
	if err := Records(t.Context(), store, storage.AuditFilter{OrganizationID: acme, From: start, To: f.To}, func(r *storage.AuditRecord) error {
		at := timeOf(r.Text)
		if at.Before(last) || seen[fmt.Sprint(r.Segment, r.Sequence)] {
			t.Errorf("record %d of %s comes after what is later, or again", r.Sequence, r.Segment)
		}
		last, seen[fmt.Sprint(r.Segment, r.Sequence)] = at, true
		return nil
	}); err != nil || len(seen) != 2*calls+calls/50 {
		t.Errorf("%d records, %v", len(seen), err)
	}
	stop := errors.New("enough")
	if err := Records(t.Context(), store, storage.AuditFilter{OrganizationID: acme, From: start, To: f.To}, func(*storage.AuditRecord) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

// TestStoreAway: while the store takes nothing, calls go on and the journal keeps everything; a batch whose fate is unknown
// is sent again as it was.
func TestStoreAway(t *testing.T) {
	dir, store := t.TempDir(), new(memory)
	trail := newTrail(t, testOptions(t, dir), store)
	store.mu.Lock()
	store.err = storage.ErrUnavailable
	store.mu.Unlock()
	for range 10 {
		if err := trail.Append(acme, intent("create_issue")); err != nil {
			t.Fatal(err)
		}
		if err := trail.Ship(t.Context()); !errors.Is(err, storage.ErrUnavailable) {
			t.Fatal(err)
		}
	}
	if _, err := trail.Query(t.Context(), Filter{OrganizationID: acme}, storage.PageRequest{}); err == nil {
		t.Error("an incomplete log is shown as a whole one")
	}
	// The store took a batch and the answer was lost.
	trail.shipper.mu.Lock()
	unknown := trail.shipper.batch.chunks
	trail.shipper.mu.Unlock()
	store.mu.Lock()
	store.err = nil
	store.mu.Unlock()
	if err := store.AddAuditChunks(t.Context(), unknown); err != nil {
		t.Fatal(err)
	}
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	if report := wantClean(t, dir, store); report.Records != 10 {
		t.Errorf("%+v", report)
	}
}

// stuck is a sink that takes nothing until it is told to.
type stuck struct {
	release chan struct{}
	mu      sync.Mutex
	taken   int
}

func (*stuck) Name() string { return "stuck" }

func (s *stuck) Write(_ context.Context, records []Exported) error {
	<-s.release
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken += len(records)
	return nil
}

func (*stuck) Close() error { return nil }

// TestSinks: Z-X01: a sink that hangs costs calls nothing; what it loses is counted; the others get everything.
func TestSinks(t *testing.T) {
	dir := t.TempDir()
	trail := newTrail(t, testOptions(t, filepath.Join(dir, "audit")), new(memory))
	hangs := &stuck{release: make(chan struct{})}
	path := filepath.Join(dir, "sink.ndjson")
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	trail.SetSinks([]Sink{hangs, NewFileSink(path), NewFileSink(pipe), NewFileSink(filepath.Join(dir, "missing", "file"))})
	const records = sinkQueue + 1000
	for range records {
		trail.Later(acme, intent("create_issue"))
	}
	deadline := time.Now().Add(30 * time.Second)
	for trail.Losses()["stuck"] == 0 || trail.Losses()["file "+pipe] == 0 || trail.Losses()["file "+filepath.Join(dir, "missing", "file")] == 0 {
		if time.Now().After(deadline) {
			t.Fatalf("nothing is counted: %v", trail.Losses())
		}
		trail.Later(acme, intent("one more"))
	}
	if trail.Losses()["journal"] != 0 {
		t.Errorf("%v", trail.Losses())
	}
	close(hangs.release)
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	text := readFile(t, path)
	if n := strings.Count(text, "\n"); n == 0 || !strings.HasPrefix(text, `{"organization_id":"`+acme) {
		t.Errorf("%d lines: %.100s", n, text)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
