package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// TestJournal checks that acknowledged records are in the directory at once, that records that may wait follow, and that
// a restart continues the journal.
func TestJournal(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, testOptions(t, dir))
	e := intent("create_issue")
	if err := j.Append(acme, e); err != nil {
		t.Fatal(err)
	}
	if text := readSegment(t, j.dir, 1); !strings.Contains(text, e.ID) {
		t.Errorf("an acknowledged record is not in %s", text)
	}
	j.Later(acme, outcomeOf(e))
	if err := j.Append(other, intent("delete_issue")); err != nil {
		t.Fatal(err)
	}
	if text := readSegment(t, j.dir, 1); strings.Count(text, "\n") != 4 {
		t.Errorf("what waited did not go with the next record: %s", text)
	}
	if info, err := os.Stat(j.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(segments.Path(j.dir, 1)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(acme, e); !errors.Is(err, ErrUnavailable) {
		t.Errorf("appended to a closed journal: %v", err)
	}
	again := openJournal(t, testOptions(t, dir))
	if again.Node() != j.Node() || again.segment.number != 2 {
		t.Errorf("node %s became %s, segment %d", j.Node(), again.Node(), again.segment.number)
	}
	if err := again.Append(acme, intent("create_issue")); err != nil {
		t.Fatal(err)
	}
	report := wantClean(t, dir, new(memory))
	if report.Records != 4 || report.Segments != 2 || len(report.Anchors) != 1 {
		t.Errorf("%+v", report)
	}
	if err := again.Append("a\"b", e); err == nil {
		t.Error("took an organization that is no id")
	}
}

// TestCheckpointOfWaiting checks that a checkpoint covers the records before it in the file, whichever records wait to be
// written.
func TestCheckpointOfWaiting(t *testing.T) {
	dir := t.TempDir()
	o := testOptions(t, dir)
	o.CheckpointEvery = time.Nanosecond
	j := openJournal(t, o)
	for range 20 {
		if err := j.Append(acme, intent("create_issue")); err != nil {
			t.Fatal(err)
		}
		j.Later(acme, intent("waits"))
		if err := j.advance(); err != nil {
			t.Fatal(err)
		}
	}
	kill(t, j)
	report := wantClean(t, dir, new(memory))
	if report.Checkpoints < 20 || report.Records != 40 {
		t.Errorf("%+v", report)
	}
}

// TestJournalGone checks that the journal goes on in another file after its file was removed or replaced, where its
// records would be lost. Verify finds the gap.
func TestJournalGone(t *testing.T) {
	for name, remove := range map[string]func(path string) error{
		"removed": os.Remove,
		"replaced": func(path string) error {
			return errors.Join(os.Rename(path, path+".old"), os.WriteFile(path, make([]byte, 1<<20), 0o600)) // larger: it is not cut off
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j := openJournal(t, testOptions(t, dir))
			if err := j.Append(acme, intent("create_issue")); err != nil {
				t.Fatal(err)
			}
			if err := remove(segments.Path(j.dir, 1)); err != nil {
				t.Fatal(err)
			}
			if err := j.advance(); err != nil {
				t.Fatal(err)
			}
			if err := j.Append(acme, intent("create_issue")); err != nil || j.segment.number != 2 {
				t.Fatalf("segment %d: %v", j.segment.number, err)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if found := findings(t, dir, new(memory)); len(found) == 0 {
				t.Error("nothing was found")
			}
		})
	}
	t.Run("with its directory", func(t *testing.T) {
		j := openJournal(t, testOptions(t, t.TempDir()))
		// This is one step: a journal that notices half of it would make a file in the rest.
		if err := os.Rename(j.dir, j.dir+".away"); err != nil {
			t.Fatal(err)
		}
		if err := j.advance(); err == nil {
			t.Error("it goes on nowhere")
		}
		if err := j.Append(acme, intent("create_issue")); !errors.Is(err, ErrUnavailable) {
			t.Errorf("a record of nothing: %v", err)
		}
	})
}

// TestJournalLater checks that records that may wait do not wait for the next call.
func TestJournalLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := openJournal(t, testOptions(t, t.TempDir()))
		j.Later(acme, intent("create_issue"))
		if text := readSegment(t, j.dir, 1); strings.Contains(text, "create_issue") {
			t.Error("written at once")
		}
		time.Sleep(laterDelay + time.Millisecond) //nolint:forbidigo // the clock of synctest
		synctest.Wait()
		if text := readSegment(t, j.dir, 1); !strings.Contains(text, "create_issue") {
			t.Error("not written")
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestJournalTwice checks that two processes with one directory have a journal each, and that one ships the journal that
// the other has left.
func TestJournalTwice(t *testing.T) {
	dir, store := t.TempDir(), new(memory)
	one, two := openJournal(t, testOptions(t, dir)), openJournal(t, testOptions(t, dir))
	if one.Node() == two.Node() {
		t.Fatal("two journals have one name")
	}
	for _, j := range []*Journal{one, two} {
		if err := j.Append(acme, intent("create_issue")); err != nil {
			t.Fatal(err)
		}
	}
	kill(t, one)
	kill(t, two)
	trail, err := NewTrail(testOptions(t, dir), store)
	if err != nil {
		t.Fatal(err)
	}
	for len(chunksOf(store)) < 2 {
		if err := trail.Ship(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	if report := wantClean(t, dir, store); report.Records != 2 {
		t.Errorf("%+v", report)
	}
}

func chunksOf(m *memory) []storage.AuditChunk {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.chunks
}

// kill ends a journal as kill -9 does: no more records are written.
func kill(t testing.TB, j *Journal) {
	t.Helper()
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	close(j.stop)
	j.work.Wait()
	j.unlock()
}

// leaveAlone stops the background work of a journal, so that only the test's next step notices changes to the files.
func leaveAlone(j *Journal) {
	close(j.stop)
	j.work.Wait()
	j.stop = make(chan struct{}) // Close closes it
}

// tear appends text to an abandoned journal, in the place of its next record.
func tear(t testing.TB, j *Journal, text string) {
	t.Helper()
	f, err := os.OpenFile(segments.Path(j.dir, 1), os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(text), j.segment.size); err != nil {
		t.Fatal(err)
	}
}

// TestRecovery checks that the next start cuts away only an unfinished last line, and ends the segment with a checkpoint
// that states this.
func TestRecovery(t *testing.T) {
	for name, c := range map[string]struct {
		tail    string
		records int
		cut     int64
	}{
		"nothing is torn":  {"", 3, 0},
		"Z-F01 torn line":  {`{"o":"0190aaaa-0000-7000-8000-000000000001","n":4,"h":"ab`, 3, 57},
		"half a character": {"\xe2\x80", 3, 2},
		// After a power cut a page may be missing before one that was written.
		"a hole": {`{"o":"` + "\x00\x00\x00\x00" + `"n":4}` + "\n" + `{"o"`, 3, 21},
	} {
		t.Run(name, func(t *testing.T) {
			dir, store := t.TempDir(), new(memory)
			j := openJournal(t, testOptions(t, dir))
			for range 3 {
				if err := j.Append(acme, intent("create_issue")); err != nil {
					t.Fatal(err)
				}
			}
			kill(t, j)
			tear(t, j, c.tail)
			o, log := loggedOptions(t, dir)
			again := openJournal(t, o)
			if want := fmt.Sprintf("segment=00000001 records=3 cut_bytes=%d", c.cut); log.count("it is recovered") != 1 || log.count(want) != 1 {
				t.Errorf("%s is not in %s", want, &log.text)
			}
			report := wantClean(t, dir, store)
			if report.Records != c.records || len(report.Notes) != 0 {
				t.Errorf("%+v", report)
			}
			if text := readFile(t, segments.Path(j.dir, 1)); strings.Contains(text, "\x00") {
				t.Error("what was never written is still laid out")
			}
			found, err := segments.Scan(segments.Path(j.dir, 1), again.keys())
			if err != nil || !found.Final || found.Torn != 0 {
				t.Fatalf("%+v, %v", found, err)
			}
			if said, err := format.ReadCheckpoint(found.Checkpoint.Data); err != nil || said.Cut != c.cut || said.Header != found.Header.Hash() {
				t.Errorf("cut %d behind the first line %s, %v", said.Cut, said.Header, err)
			}
			if err := again.Append(acme, intent("create_issue")); err != nil {
				t.Fatal(err)
			}
			wantClean(t, dir, store)
		})
	}
	t.Run("a file without a line", func(t *testing.T) {
		dir := t.TempDir()
		j := openJournal(t, testOptions(t, dir))
		if err := j.Append(acme, intent("create_issue")); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		appendFile(t, segments.Path(j.dir, 2), `{"format":1,"no`)
		again := openJournal(t, testOptions(t, dir))
		if again.segment.number != 2 || again.last.number == 0 {
			t.Errorf("segment %d after checkpoint %d", again.segment.number, again.last.number)
		}
		wantClean(t, dir, new(memory))
	})
}

// faulty is a file on a disk with faults.
type faulty struct {
	file
	mu              sync.Mutex
	write, sync     error
	short           int // the number of bytes that are written before the error
	truncate        error
	syncs           func() error // replaces a sync
	written, synced int
	refused         int // writes with an error
}

func (f *faulty) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.write != nil {
		f.refused++
		n, _ := f.file.Write(p[:min(f.short, len(p))])
		return n, f.write
	}
	f.written++
	return f.file.Write(p)
}

func (f *faulty) Truncate(size int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.truncate != nil {
		return f.truncate
	}
	return f.file.Truncate(size)
}

func (f *faulty) Sync() error {
	f.mu.Lock()
	f.synced++
	fault, instead := f.sync, f.syncs
	f.mu.Unlock()
	switch {
	case instead != nil:
		return instead()
	case fault != nil:
		return fault
	}
	return f.file.Sync()
}

func (f *faulty) set(set func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	set()
}

// faultyOptions returns the options of a journal on a disk with faults, and a function for the file that was made last.
func faultyOptions(t testing.TB, dir string) (Options, func() *faulty) {
	var mu sync.Mutex
	var last *faulty
	o := testOptions(t, dir)
	o.create = func(path string) (file, error) {
		f, err := createFile(path)
		mu.Lock()
		defer mu.Unlock()
		last = &faulty{file: f}
		return last, err
	}
	return o, func() *faulty {
		mu.Lock()
		defer mu.Unlock()
		return last
	}
}

// TestFullDisk checks Z-D01: a record that cannot be written is refused and leaves no bytes in the file. When there is
// room again, the chain goes on without a gap.
func TestFullDisk(t *testing.T) {
	for name, c := range map[string]struct {
		short    int
		truncate error
	}{
		"nothing fits":          {0, nil},
		"a part fits":           {40, nil},
		"a part fits and stays": {40, errDisk},
		"a line and a part fit": {700, errDisk},
	} {
		t.Run(name, func(t *testing.T) { testFullDisk(t, c.short, c.truncate) })
	}
}

func testFullDisk(t *testing.T, short int, truncate error) {
	dir := t.TempDir()
	o, disk := faultyOptions(t, dir)
	j := openJournal(t, o)
	if err := j.Append(acme, intent("before")); err != nil {
		t.Fatal(err)
	}
	disk().set(func() { disk().write, disk().short, disk().truncate = errDisk, short, truncate })
	j.Later(acme, intent("waits"))
	for range 3 {
		if err := j.Append(acme, intent("refused")); !errors.Is(err, ErrUnavailable) || !errors.Is(err, errDisk) {
			t.Fatalf("acknowledged: %v", err)
		}
	}
	disk().set(func() { disk().write, disk().truncate = nil, nil })
	if err := j.Append(acme, intent("after")); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if report := wantClean(t, dir, new(memory)); report.Records != 3 {
		t.Errorf("%+v", report)
	}
	if text := readFile(t, segments.Path(j.dir, 1)); strings.Contains(text, "refused") {
		t.Error("a refused record is in the journal")
	}
}

// TestFailedSync checks that a failed sync ends the segment, because nobody knows which bytes are on the disk. No record
// is acknowledged until there is a new segment.
func TestFailedSync(t *testing.T) {
	dir := t.TempDir()
	o, disk := faultyOptions(t, dir)
	j := openJournal(t, o)
	j.SyncAlways(true)
	first := disk()
	first.set(func() { first.sync = errDisk })
	if err := j.Append(acme, intent("unsure")); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("acknowledged: %v", err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		err := j.Append(acme, intent("after"))
		if err == nil {
			break
		}
		if !errors.Is(err, ErrUnavailable) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if disk() == first {
		t.Error("the journal went on with the same file")
	}
	wantClean(t, dir, new(memory))
}

// TestFailedLastSync checks the same as TestFailedSync for the sync that ends a segment with all its records in the file.
func TestFailedLastSync(t *testing.T) {
	dir := t.TempDir()
	o, disk := faultyOptions(t, dir)
	j := openJournal(t, o)
	leaveAlone(j)
	if err := j.Append(acme, intent("unsure")); err != nil {
		t.Fatal(err)
	}
	mark := j.writtenSoFar()
	first := disk()
	first.set(func() { first.sync = errDisk })
	if err := turn(j); err != nil || disk() == first {
		t.Fatalf("the journal went on with the same file: %v; %v", disk() == first, err)
	}
	if err := j.syncTo(mark); !errors.Is(err, errDisk) {
		t.Errorf("who waits for what was written before is told %v", err)
	}
	if err := j.Append(acme, intent("after")); err != nil {
		t.Error(err)
	}
	if err := j.syncTo(j.writtenSoFar()); err != nil {
		t.Error(err)
	}
	wantClean(t, dir, new(memory))
}

// TestWaitBehindFailedSync checks that callers that wait for a failing sync, or for the one after it, get its error, also
// when the segment was abandoned before they ask.
func TestWaitBehindFailedSync(t *testing.T) {
	o, disk := faultyOptions(t, t.TempDir())
	j := openJournal(t, o)
	leaveAlone(j)
	marks := make([]int64, 3)
	for i := range marks {
		if err := j.Append(acme, intent("create_issue")); err != nil {
			t.Fatal(err)
		}
		marks[i] = j.writtenSoFar()
		if i == 0 {
			if err := j.syncTo(marks[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	first := disk()
	first.set(func() { first.sync = errDisk })
	if err := j.syncTo(marks[1]); !errors.Is(err, errDisk) {
		t.Error(err)
	}
	select {
	case <-j.rotation:
	default:
		t.Error("another segment waits for the next tick")
	}
	first.set(func() { first.sync = nil }) // the kernel reports it once
	for _, segment := range []string{"that failed", "behind it"} {
		for i, mark := range marks {
			if err := j.syncTo(mark); errors.Is(err, errDisk) != (i > 0) {
				t.Errorf("in the segment %s who waits for record %d is told %v", segment, i, err)
			}
		}
		if err := j.advance(); err != nil {
			t.Fatal(err)
		}
	}
	if disk() == first {
		t.Error("the journal went on with the same file")
	}
	// Another sync fails after it.
	if err := j.Append(acme, intent("create_issue")); err != nil {
		t.Fatal(err)
	}
	second := disk()
	second.set(func() { second.sync = errDisk })
	if err := turn(j); err != nil || disk() == second {
		t.Fatal(err)
	}
	for i, mark := range append(marks, j.writtenSoFar()) {
		if err := j.syncTo(mark); errors.Is(err, errDisk) != (i > 0) {
			t.Errorf("behind both who waits for record %d is told %v", i, err)
		}
	}
}

// TestSyncsByTurns checks that no segment ends during a sync of it, since that sync may be the only one to which the
// kernel reports a fault.
func TestSyncsByTurns(t *testing.T) {
	for name, end := range map[string]func(j *Journal) error{"a segment": (*Journal).advance, "the journal": (*Journal).Close} {
		t.Run(name, func(t *testing.T) {
			o, disk := faultyOptions(t, t.TempDir())
			j := openJournal(t, o)
			leaveAlone(j)
			if err := j.Append(acme, intent("create_issue")); err != nil {
				t.Fatal(err)
			}
			running, failing := make(chan struct{}), make(chan struct{})
			first := disk()
			first.set(func() {
				first.syncs = func() error {
					close(running)
					<-failing
					return errDisk
				}
			})
			failed, ended := make(chan error, 1), make(chan error, 1)
			mark := j.writtenSoFar()
			go func() { failed <- j.syncTo(mark) }()
			<-running
			first.set(func() { first.syncs = nil })
			j.mu.Lock()
			j.options.SegmentAge = 0 // the segment must end
			j.mu.Unlock()
			go func() { ended <- end(j) }()
			select {
			case err := <-ended:
				t.Errorf("it ended beside a sync that runs: %v", err)
				ended <- err
			case <-time.After(50 * time.Millisecond):
			}
			close(failing)
			if err := <-failed; !errors.Is(err, errDisk) {
				t.Errorf("the sync that failed: %v", err)
			}
			if err := <-ended; (err != nil) != (name == "the journal") {
				t.Errorf("the end: %v", err)
			}
			if err := j.syncTo(mark); !errors.Is(err, errDisk) {
				t.Errorf("who waits behind it is told %v", err)
			}
		})
	}
}

// turn makes a journal begin another segment.
func turn(j *Journal) error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rotate()
}

// TestSyncAlways checks that concurrent calls share syncs, and that none returns before its own sync.
func TestSyncAlways(t *testing.T) {
	o, disk := faultyOptions(t, t.TempDir())
	j := openJournal(t, o)
	j.SyncAlways(true)
	// The first checkpoint comes with the journal's own first tick, which does not sync it at once.
	if err := errors.Join(j.Append(acme, intent("first")), j.advance()); err != nil {
		t.Fatal(err)
	}
	before := j.synced.Load()
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			if err := j.Append(acme, intent("create_issue")); err != nil {
				t.Error(err)
			}
			if j.synced.Load() <= before {
				t.Error("acknowledged before a sync")
			}
		})
	}
	all.Wait()
	if written := j.writtenSoFar(); j.synced.Load() != written {
		t.Errorf("%d of %d bytes are synced", j.synced.Load(), written)
	}
	disk().set(func() { t.Logf("%d syncs for %d writes", disk().synced, disk().written) })
}

// TestRotation checks that segments end by size, and that each begins with the checkpoint of the one before.
func TestRotation(t *testing.T) {
	dir, store := t.TempDir(), new(memory)
	o := testOptions(t, dir)
	o.SegmentSize = 4 << 10
	j := openJournal(t, o)
	const records = 100
	for range records {
		if err := j.Append(acme, intent("create_issue")); err != nil {
			t.Fatal(err)
		}
		if err := j.advance(); err != nil {
			t.Fatal(err)
		}
	}
	if err := newShipper(j, store).ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	if numbers, err := segments.List(j.dir); err != nil || len(numbers) != 1 {
		t.Errorf("%v are left, %v", numbers, err)
	}
	report := wantClean(t, dir, store)
	if report.Records != records || report.Segments < 5 {
		t.Errorf("%+v", report)
	}
}

// readSegment returns all bytes that were written to a segment, from its file and from the ring.
func readSegment(t testing.TB, dir string, number int) string {
	t.Helper()
	s, err := segments.Open(dir, number)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	text, err := io.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimRight(string(text), "\x00")
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func appendFile(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
}
