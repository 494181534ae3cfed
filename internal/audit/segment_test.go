package audit

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/internal/audit/verify"
	"github.com/durward-gateway/durward/storage"
)

// lockedText collects a log.
type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// count returns how often the log has a text.
func (l *lockedText) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// loggedOptions returns the options of a journal with a log.
func loggedOptions(t *testing.T, dir string) (Options, *lockedText) {
	t.Helper()
	log := new(lockedText)
	o := testOptions(t, dir)
	o.Log = slog.New(slog.NewTextHandler(log, nil))
	return o, log
}

// checkpointsOf returns the checkpoints in a segment.
func checkpointsOf(t *testing.T, j *Journal, number int) (found []format.Checkpoint) {
	t.Helper()
	parser := former.NewParser()
	for line := range strings.Lines(readSegment(t, j.dir, number)) {
		parsed, err := parser.Parse([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			t.Fatal(err)
		}
		if parsed.Checkpoint != nil {
			c, err := format.ReadCheckpoint(parsed.Checkpoint.Data)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, c)
		}
	}
	return found
}

// headsOf returns the organizations in a checkpoint, in its order.
func headsOf(c format.Checkpoint) (organizations []string) {
	for _, h := range c.Chains {
		organizations = append(organizations, h.Organization)
	}
	return organizations
}

// TestClaim checks which journals a process does not continue, and that it says why and leaves them to others.
func TestClaim(t *testing.T) {
	const node = "0011223344556677"
	for name, tc := range map[string]struct {
		versions []int // formats of the segments
		trusted  func(dir string) bool
		says     string
		taken    bool
	}{
		"no segments":   {nil, nil, "", false},
		"this format":   {[]int{format.SegmentFormat}, nil, "", true},
		"later format":  {[]int{format.SegmentFormat, format.SegmentFormat + 1}, nil, "a later durward has left an audit journal", false},
		"oldest format": {[]int{format.LongSegmentFormat}, nil, "a former durward has left an audit journal", false},
		"without MACs":  {[]int{format.SegmentFormat, format.BareSegmentFormat}, nil, "a former durward has left an audit journal", false},
		"no first line": {[]int{0}, nil, "", true},
		"trusted":       {[]int{format.SegmentFormat}, func(dir string) bool { return filepath.Base(dir) == node }, "", true},
		"not trusted":   {[]int{format.SegmentFormat}, func(dir string) bool { return filepath.Base(dir) != node }, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, node)
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for i, version := range tc.versions {
				first := ""
				if version > 0 {
					first = string(format.Marshal(format.Header{Format: version, Node: node, Segment: segments.Name(i + 1)})) + "\n"
				}
				appendFile(t, segments.Path(dir, i+1), first)
			}
			o, log := loggedOptions(t, root)
			claimed, unlock, err := claim(root, o.Log, tc.trusted)
			if err != nil {
				t.Fatal(err)
			}
			defer unlock()
			if (claimed == dir) != tc.taken {
				t.Errorf("it takes %s", claimed)
			}
			if (tc.says == "") != (log.count("\n") == 0) || log.count(tc.says) == 0 {
				t.Errorf("the log says %s", &log.text)
			}
			if !tc.taken {
				again, err := segments.Lock(filepath.Join(dir, lockFile))
				if err != nil {
					t.Fatalf("nobody else may have it: %v", err)
				}
				again()
			}
		})
	}
}

// TestForgedFirstLine checks that a start uses no number of a checkpoint again, whatever the last segment's first line says
// or when it is none.
func TestForgedFirstLine(t *testing.T) {
	for name, forge := range map[string]func(h format.Header) string{
		"it follows no checkpoint": func(h format.Header) string {
			h.Checkpoint, h.Previous = 0, ""
			return string(format.Marshal(h))
		},
		"it is none": func(format.Header) string { return "first" },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j := openJournal(t, testOptions(t, dir))
			leaveAlone(j)
			intents(t, j, 1)
			if err := turn(j); err != nil {
				t.Fatal(err)
			}
			intents(t, j, 1)
			kill(t, j)
			path := segments.Path(j.dir, 2)
			found, err := segments.Scan(path, j.keys())
			if err != nil || found.Header.Checkpoint != 1 {
				t.Fatalf("%+v, %v", found, err)
			}
			_, rest, _ := strings.Cut(readFile(t, path), "\n")
			if err := os.WriteFile(path, []byte(forge(*found.Header)+"\n"+rest), 0o600); err != nil {
				t.Fatal(err)
			}
			again := openJournal(t, testOptions(t, dir))
			if again.node != j.node || again.last.number != 2 {
				t.Errorf("the next checkpoint follows number %d", again.last.number)
			}
			if len(findings(t, dir, new(memory))) == 0 {
				t.Error("nothing is found")
			}
		})
	}
}

// TestBehindShipped checks that a start goes on behind the checkpoint that the first line names, when the file with that
// checkpoint is in the store and gone.
func TestBehindShipped(t *testing.T) {
	dir, store := t.TempDir(), new(memory)
	j := openJournal(t, testOptions(t, dir))
	leaveAlone(j)
	intents(t, j, 1)
	if err := turn(j); err != nil {
		t.Fatal(err)
	}
	if err := newShipper(j, store).ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	intents(t, j, 1)
	kill(t, j)
	again := openJournal(t, testOptions(t, dir))
	if numbers, err := segments.List(j.dir); err != nil || !slices.Equal(numbers, []int{2, 3}) || again.last.number != 2 {
		t.Errorf("%v are there, the next checkpoint follows number %d, %v", numbers, again.last.number, err)
	}
	wantClean(t, dir, store)
}

// TestSyncPath checks that it is told when a directory cannot be synced.
func TestSyncPath(t *testing.T) {
	dir := t.TempDir()
	if err := syncPath(dir); err != nil {
		t.Error(err)
	}
	if err := syncPath(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("one that is missing: %v", err)
	}
}

// TestNumbersOfSetAside checks that the numbers of damaged segments are not used again.
func TestNumbersOfSetAside(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, testOptions(t, dir))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	appendFile(t, segments.Path(j.dir, 7)+segments.DamagedSuffix, "damaged")
	if again := openJournal(t, testOptions(t, dir)); again.dir != j.dir || again.segment.number != 8 {
		t.Errorf("segment %d of %s", again.segment.number, again.dir)
	}
}

// TestFirstLine checks what becomes of a segment whose first line is not whole: it is removed when nothing else can have
// been in it, and kept otherwise.
func TestFirstLine(t *testing.T) {
	for name, tc := range map[string]struct {
		size int
		kept bool
	}{"empty": {0, false}, "torn": {100, false}, "as long as can be": {maxHeader, false}, "longer": {maxHeader + 1, true}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j := openJournal(t, testOptions(t, dir))
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			path := segments.Path(j.dir, 2)
			appendFile(t, path, strings.Repeat("x", tc.size))
			o, log := loggedOptions(t, dir)
			again := openJournal(t, o)
			_, err := os.Stat(path + segments.DamagedSuffix)
			if (err == nil) != tc.kept || (again.segment.number == 3) != tc.kept || (log.count("has no beginning and is set aside") == 1) != tc.kept {
				t.Errorf("segment %d follows, kept: %v; %s", again.segment.number, err, &log.text)
			}
		})
	}
}

// TestCutOff checks that the journal notices that its file was cut off, says so once, and goes on in another one. A
// verification finds the gap when a checkpoint had covered it.
func TestCutOff(t *testing.T) {
	for name, tc := range map[string]struct {
		keep    func(text string) int
		records int // that are there in the end
		aside   bool
		found   bool
	}{
		"within a record": {func(text string) int { return len(text) - 10 }, 3, false, false},
		"before a checkpoint": {func(text string) int {
			return strings.Index(text, "create_issue") + strings.Index(text[strings.Index(text, "create_issue"):], "\n") + 1
		}, 2, false, true},
		"all of it": {func(string) int { return 0 }, 1, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o, log := loggedOptions(t, dir)
			j := openJournal(t, o)
			leaveAlone(j)
			intents(t, j, 1)
			if err := j.Checkpoint(); err != nil {
				t.Fatal(err)
			}
			intents(t, j, 2)
			path := segments.Path(j.dir, 1)
			if err := os.Truncate(path, int64(tc.keep(readFile(t, path)))); err != nil {
				t.Fatal(err)
			}
			j.notice()
			j.notice()
			if !errors.Is(j.failure, errFault) || log.count("was cut off") != 1 {
				t.Errorf("%v; %s", j.failure, &log.text)
			}
			if err := j.advance(); err != nil || j.segment.number != 2 {
				t.Fatalf("segment %d: %v", j.segment.number, err)
			}
			intents(t, j, 1)
			if _, err := os.Stat(path + segments.DamagedSuffix); (err == nil) != tc.aside || (log.count("is set aside") == 1) != tc.aside {
				t.Errorf("set aside: %v; %s", err, &log.text)
			}
			report, err := verify.Log(t.Context(), verify.Journals{Dir: dir, All: true}, new(memory), sharedKeys())
			if err != nil || report.Records != tc.records || (len(report.Findings) > 0) != tc.found {
				t.Errorf("%d records, %v, %v", report.Records, report.Findings, err)
			}
			// The shipper sends what the files have, and not what was kept of the part that is gone.
			store := new(memory)
			if err := newShipper(j, store).ship(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, f := range findings(t, dir, store) {
				if !tc.found || strings.Contains(f.String(), "after the segment had ended") {
					t.Errorf("found with the store: %s", f)
				}
			}
		})
	}
}

// TestNotice checks what the journal takes for a lost file.
func TestNotice(t *testing.T) {
	o, log := loggedOptions(t, t.TempDir())
	j := openJournal(t, o)
	leaveAlone(j)
	path := j.segment.path
	j.segment.path = filepath.Join(path, "below a file")
	if j.notice(); j.failure != nil {
		t.Errorf("it cannot be looked at: %v", j.failure)
	}
	at := j.segment.at
	j.segment.path, j.segment.at = path+".gone", nil
	if j.notice(); j.failure != nil {
		t.Errorf("nobody knows which file it was: %v", j.failure)
	}
	j.segment.at, j.failure = at, errDisk
	if j.notice(); !errors.Is(j.failure, errDisk) || log.count("\n") != 0 {
		t.Errorf("the first failure is forgotten: %v; %s", j.failure, &log.text)
	}
	j.failure = nil
	if j.notice(); !errors.Is(j.failure, errGone) || log.count("was removed or replaced") != 1 {
		t.Errorf("it is gone: %v; %s", j.failure, &log.text)
	}
	j.segment.path = path
}

// TestWriteFault checks that a file whose existing part cannot be written is left at once.
func TestWriteFault(t *testing.T) {
	o, log := loggedOptions(t, t.TempDir())
	faulty, disk := faultyOptions(t, "")
	o.create = faulty.create
	j := openJournal(t, o)
	leaveAlone(j)
	first := disk()
	first.set(func() { first.write = errFault })
	j.Later(acme, intent("waits"))
	if err := j.Append(acme, intent("create_issue")); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("acknowledged: %v", err)
	}
	if err := j.Flush(); !errors.Is(err, errFault) || log.count("its disk fails") != 1 {
		t.Errorf("%v; %s", err, &log.text)
	}
	select {
	case <-j.rotation:
	default:
		t.Error("nobody is asked to begin another segment")
	}
	if err := j.advance(); err != nil || j.segment.number != 2 {
		t.Errorf("segment %d: %v", j.segment.number, err)
	}
}

// TestCheckpoints checks that a checkpoint lists the chains with records since the one before, sorted, and the last one of
// a segment all of them.
func TestCheckpoints(t *testing.T) {
	j := openJournal(t, testOptions(t, t.TempDir()))
	leaveAlone(j)
	for _, organization := range []string{other, acme} {
		if err := j.Append(organization, intent("create_issue")); err != nil {
			t.Fatal(err)
		}
	}
	j.Stored(storage.AuditChain{OrganizationID: "stored", Segment: storage.AuditStoreSegment, Sequence: 2})
	j.Stored(storage.AuditChain{OrganizationID: "stored", Segment: storage.AuditStoreSegment, Sequence: 1})
	if err := j.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(other, intent("create_issue")); err != nil {
		t.Fatal(err)
	}
	if err := j.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	checkpoints := checkpointsOf(t, j, 1)
	if len(checkpoints) != 3 {
		t.Fatalf("%d checkpoints", len(checkpoints))
	}
	for i, want := range [][]string{{acme, other, "stored"}, {other}, {acme, other}} {
		if got := headsOf(checkpoints[i]); !slices.Equal(got, want) {
			t.Errorf("checkpoint %d lists %v, want %v", i, got, want)
		}
	}
	if stored := checkpoints[0].Chains[2]; stored.Sequence != 2 {
		t.Errorf("the store's chain is at %d", stored.Sequence)
	}
}

// TestCheckpointOfNothing checks that a checkpoint lists no chain of which the disk has taken no record.
func TestCheckpointOfNothing(t *testing.T) {
	dir := t.TempDir()
	o, disk := faultyOptions(t, dir)
	j := openJournal(t, o)
	leaveAlone(j)
	disk().set(func() { disk().write = errDisk })
	if err := j.Append(other, intent("refused")); !errors.Is(err, errDisk) {
		t.Fatal(err)
	}
	disk().set(func() { disk().write = nil })
	intents(t, j, 1)
	if err := errors.Join(j.Checkpoint(), j.Close()); err != nil {
		t.Fatal(err)
	}
	for _, c := range checkpointsOf(t, j, 1) {
		if got := headsOf(c); !slices.Equal(got, []string{acme}) {
			t.Errorf("it lists %v", got)
		}
	}
	wantClean(t, dir, new(memory))
}

// TestCheckpointsWhenDue checks that a checkpoint is made when it is due and something is new, and not otherwise.
func TestCheckpointsWhenDue(t *testing.T) {
	o := testOptions(t, t.TempDir())
	now := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	o.Now = func() time.Time { return now }
	j := openJournal(t, o)
	leaveAlone(j)
	made := func() int { return len(checkpointsOf(t, j, 1)) }
	if err := j.advance(); err != nil || made() != 0 {
		t.Errorf("%d without a record, %v", made(), err)
	}
	if err := j.Append(acme, intent("create_issue")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		now = now.Add(defaultCheckpointEvery)
		if err := j.advance(); err != nil || made() != 1 {
			t.Errorf("%d after a record, %v", made(), err)
		}
	}
	if err := j.Append(acme, intent("create_issue")); err != nil {
		t.Fatal(err)
	}
	now = now.Add(-time.Nanosecond)
	if err := j.advance(); err != nil || made() != 1 {
		t.Errorf("%d too early, %v", made(), err)
	}
	j.Stored(storage.AuditChain{OrganizationID: acme, Segment: storage.AuditStoreSegment, Sequence: 1})
	now = now.Add(time.Nanosecond)
	if err := j.advance(); err != nil || made() != 2 {
		t.Errorf("%d for a record of the store, %v", made(), err)
	}
}

// TestEndedOnce checks that a segment gets one final checkpoint, also when the next segment cannot be made at first.
func TestEndedOnce(t *testing.T) {
	o := testOptions(t, t.TempDir())
	var refuse error
	o.create = func(path string) (file, error) {
		if refuse != nil {
			return nil, refuse
		}
		return createFile(path)
	}
	j := openJournal(t, o)
	leaveAlone(j)
	if err := j.Append(acme, intent("create_issue")); err != nil {
		t.Fatal(err)
	}
	refuse = errDisk
	for range 2 {
		if err := turn(j); !errors.Is(err, errDisk) {
			t.Errorf("%v", err)
		}
	}
	refuse = nil
	if err := j.advance(); err != nil || j.segment.number != 2 {
		t.Errorf("segment %d: %v", j.segment.number, err)
	}
	if checkpoints := checkpointsOf(t, j, 1); len(checkpoints) != 1 || !checkpoints[0].Final {
		t.Errorf("%+v", checkpoints)
	}
}
