package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/internal/audit/segments"
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

// TestQuery checks that rows of calls are complete and newest first, in pages and through filters, from many chunks and
// the store's own records. Reading the oldest first finds the same records.
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
		out.At = e.At.Add(11 * time.Minute) // after other calls have begun
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
	f := query.Filter{OrganizationID: acme, From: start, To: start.AddDate(0, 1, 0)}
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
	var paged []query.Row
	for number := 1; ; number++ {
		page, err := query.Page(t.Context(), store, f, storage.PageRequest{Number: number, Limit: 37})
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
		narrow func(*query.Filter)
		want   int
	}{
		"kind":    {func(f *query.Filter) { f.Kinds = []storage.AuditKind{storage.AuditAdmin} }, calls / 50},
		"tool":    {func(f *query.Filter) { f.Tool = "tool3" }, calls / 5},
		"outcome": {func(f *query.Filter) { f.Outcome = "upstream_error" }, calls/7 + 1},
		"time":    {func(f *query.Filter) { f.To = start.Add(70 * time.Minute) }, 10 + 1},
		"user":    {func(f *query.Filter) { f.UserID = "nobody" }, 0},
		"tenant":  {func(f *query.Filter) { f.OrganizationID = other }, 0},
	} {
		narrowed := f
		c.narrow(&narrowed)
		if page, err := query.Page(t.Context(), store, narrowed, storage.PageRequest{Number: 1, Limit: 5}); err != nil || page.Total != c.want {
			t.Errorf("%s: %d, want %d, %v", name, page.Total, c.want, err)
		}
	}
	var last time.Time
	seen := make(map[string]bool)
	if err := query.Records(t.Context(), store, storage.AuditFilter{OrganizationID: acme, From: start, To: f.To}, func(r *storage.AuditRecord) error {
		at := format.TimeOf(r.Text)
		if at.Before(last) || seen[fmt.Sprint(r.Segment, r.Sequence)] {
			t.Errorf("record %d of %s comes after what is later, or again", r.Sequence, r.Segment)
		}
		last, seen[fmt.Sprint(r.Segment, r.Sequence)] = at, true
		return nil
	}); err != nil || len(seen) != 2*calls+calls/50 {
		t.Errorf("%d records, %v", len(seen), err)
	}
	stop := errors.New("enough")
	if err := query.Records(t.Context(), store, storage.AuditFilter{OrganizationID: acme, From: start, To: f.To}, func(*storage.AuditRecord) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
}

// TestStoreAway checks that calls go on and the journal keeps all records while the store is unreachable. A batch with an
// unknown result is sent again unchanged.
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
	if _, err := trail.Query(t.Context(), query.Filter{OrganizationID: acme}, storage.PageRequest{}); err == nil {
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

// stuck is a sink that takes no records until it is released.
type stuck struct {
	release chan struct{}
	mu      sync.Mutex
	taken   int
}

func (*stuck) Name() string { return "stuck" }

func (s *stuck) Write(_ context.Context, records []format.Exported) error {
	<-s.release
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken += len(records)
	return nil
}

func (*stuck) Close() error { return nil }

// TestSinks checks Z-X01: a hanging sink does not delay calls, its losses are counted, and the other sinks get all
// records.
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

// TestRecall checks that the end of a chain of the store's own records is taken only from a record with a MAC of this
// gateway.
func TestRecall(t *testing.T) {
	var log lockedBuffer
	store := &failingStore{memory: new(memory)}
	j := openJournal(t, testOptions(t, t.TempDir()))
	trail := &Trail{journal: j, store: store, log: slog.New(slog.NewTextHandler(&log, nil))}
	for _, organization := range []string{acme, other} {
		if err := store.RecordAudit(storage.WithAudit(t.Context(), trail.Audited(organization, *intent("policy.update")))); err != nil {
			t.Fatal(err)
		}
	}
	clear(j.stored) // this is the state after a start
	if err := j.Append(acme, intent("create_issue")); err != nil {
		t.Fatal(err)
	}
	if err := newShipper(j, store).ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	store.records[1].MAC[0] ^= 1
	store.heads = func(all []storage.AuditChain) []storage.AuditChain {
		return append(all, format.ChainOf("empty", j.node, storage.AuditStoreSegment))
	}
	trail.recall(t.Context())
	if got := j.stored[acme]; len(j.stored) != 1 || got.Sequence != 1 || got.Hash != store.records[0].Hash {
		t.Errorf("%+v", j.stored)
	}
	if text := log.String(); strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, "organization="+other) || !strings.Contains(text, "run durward audit verify") {
		t.Errorf("log: %s", text)
	}
	log.Reset()
	store.chains = errDisk
	trail.recall(t.Context())
	if text := log.String(); !strings.Contains(text, errDisk.Error()) {
		t.Errorf("log: %s", text)
	}
}

// TestTrusted checks when a journal can be continued, and the log message when it cannot.
func TestTrusted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(store *failingStore)
		want   string // a part of the log; "": the journal is continued
	}{
		"as it was":     {func(*failingStore) {}, ""},
		"no answer":     {func(store *failingStore) { store.chains = errDisk }, "level=WARN"},
		"another state": {func(store *failingStore) { store.memory.checkpoints[0].Signature[0] ^= 1 }, "level=ERROR"},
	} {
		var log lockedBuffer
		store := &failingStore{memory: new(memory)}
		j := killShipped(t, t.TempDir(), store.memory, "tool", 1)
		c.change(store)
		trail := &Trail{store: store, macs: sharedGateway().macs, log: slog.New(slog.NewTextHandler(&log, nil))}
		if got := trail.trusted(j.dir); got != (c.want == "") || (log.Len() == 0) != got || !strings.Contains(log.String(), c.want) || strings.Count(log.String(), "level=") > 1 {
			t.Errorf("%s: %v, log: %s", name, got, log.String())
		}
	}
}

// TestAdoptAgain checks that shipping another node's journal is tried again while the store is unreachable, and that a
// failure to ship is logged.
func TestAdoptAgain(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		done bool
		log  string
	}{
		"the store is there": {nil, true, ""}, "it is away": {storage.ErrUnavailable, false, "shipping the audit journal of another node"}, "it fails": {errDisk, true, "shipping the audit journal of another node"},
	} {
		var log lockedBuffer
		root, store := t.TempDir(), &failingStore{memory: new(memory)}
		left, used, busy := openJournal(t, testOptions(t, root)), openJournal(t, testOptions(t, root)), openJournal(t, testOptions(t, root))
		begun, later := filepath.Join(root, "0011223344556677"), filepath.Join(root, "7766554433221100")
		if err := errors.Join(os.Mkdir(begun, 0o700), os.Mkdir(later, 0o700)); err != nil {
			t.Fatal(err)
		}
		ofLater := string(format.Marshal(format.Header{Format: format.SegmentFormat + 1, Node: filepath.Base(later), Segment: segments.Name(1)})) + "\n"
		appendFile(t, segments.Path(later, 1), ofLater)
		appendSome(t, left, acme, "left", 2)
		kill(t, left)
		o := testOptions(t, root)
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		trail := &Trail{journal: openJournal(t, testOptions(t, t.TempDir())), store: store, macs: o.MACs, log: o.Log}
		trail.journal.dir = used.dir
		store.chains = c.err
		if done := trail.adopt(t.Context(), o.withDefaults()); done != c.done {
			t.Errorf("%s: it need not be tried again: %v", name, done)
		}
		if text := log.String(); c.log == "" && strings.Contains(text, "level=ERROR") || !strings.Contains(text, c.log) {
			t.Errorf("%s: log: %s", name, text)
		}
		if n := stored(t, store.memory, acme)["left"]; (n == 2) != (c.err == nil) {
			t.Errorf("%s: %d are shipped", name, n)
		}
		if _, err := os.Stat(left.dir); errors.Is(err, os.ErrNotExist) != (c.err == nil) {
			t.Errorf("%s: its directory: %v", name, err)
		}
		for _, dir := range []string{used.dir, busy.dir, begun} {
			if _, err := os.Stat(dir); err != nil {
				t.Errorf("%s: one that is used is gone: %v", name, err)
			}
		}
		if entries, err := os.ReadDir(later); err != nil || len(entries) != 1 || readFile(t, segments.Path(later, 1)) != ofLater {
			t.Errorf("%s: that of a later durward is not left alone: %v, %v", name, entries, err)
		}
	}
}

// nodeStore is a store that does not answer about some nodes.
type nodeStore struct {
	*memory
	errs map[string]error
}

func (s nodeStore) AuditChains(ctx context.Context, node string) ([]storage.AuditChain, error) {
	if err := s.errs[node]; err != nil {
		return nil, err
	}
	return s.memory.AuditChains(ctx, node)
}

// TestAdoptUntilAll checks that shipping is tried again when one of the journals was not shipped because the store was
// away, whatever became of the journals after it.
func TestAdoptUntilAll(t *testing.T) {
	root := t.TempDir()
	one, two := openJournal(t, testOptions(t, root)), openJournal(t, testOptions(t, root))
	kill(t, one)
	kill(t, two)
	o := testOptions(t, root).withDefaults()
	store := nodeStore{new(memory), map[string]error{min(one.node, two.node): storage.ErrUnavailable, max(one.node, two.node): errDisk}}
	trail := &Trail{journal: new(Journal), store: store, macs: o.MACs, log: o.Log}
	if trail.adopt(t.Context(), o) {
		t.Error("one of them is never shipped")
	}
}

// TestAdoptNowhere checks that operators learn when the journals cannot be listed, and that it is not tried again.
func TestAdoptNowhere(t *testing.T) {
	o, log := loggedOptions(t, filepath.Join(t.TempDir(), "missing"))
	if trail := (&Trail{journal: new(Journal), log: o.Log}); !trail.adopt(t.Context(), o) || log.count("listing audit journals") != 1 {
		t.Errorf("%s", &log.text)
	}
}

// TestTrailSyncsAlways checks that a trail that syncs always has each record on the disk when it acknowledges it.
func TestTrailSyncsAlways(t *testing.T) {
	trail := newTrail(t, testOptions(t, t.TempDir()), new(memory))
	leaveAlone(trail.journal)
	for _, always := range []bool{false, true} {
		trail.SyncAlways(always)
		appendSome(t, trail, acme, "tool", 1)
		if synced, written := trail.journal.synced.Load(), trail.journal.writtenSoFar(); (synced == written) != always {
			t.Errorf("%v: %d of %d bytes are synced", always, synced, written)
		}
	}
}
