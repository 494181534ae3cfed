package audit

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/internal/audit/segments"
)

// TestSegmentAge checks that a segment with records ends at its age, and that one without goes on.
func TestSegmentAge(t *testing.T) {
	o := testOptions(t, t.TempDir())
	now := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	o.Now = func() time.Time { return now }
	j := openJournal(t, o)
	leaveAlone(j)
	segment := func() int {
		t.Helper()
		if err := j.advance(); err != nil {
			t.Fatal(err)
		}
		return j.segment.number
	}
	now = now.Add(2 * defaultSegmentAge)
	if got := segment(); got != 1 {
		t.Errorf("segment %d without a record", got)
	}
	j.segment.began = now
	if err := j.Append(acme, intent("create_issue")); err != nil {
		t.Fatal(err)
	}
	now = now.Add(defaultSegmentAge - 1)
	if got := segment(); got != 1 {
		t.Errorf("segment %d too early", got)
	}
	now = now.Add(1)
	if got := segment(); got != 2 {
		t.Errorf("segment %d at its age", got)
	}
}

// TestLaterIsTriedAgain checks that a record that may wait is written once the disk takes it, without another record.
func TestLaterIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, disk := faultyOptions(t, t.TempDir())
		j := openJournal(t, o)
		disk().set(func() { disk().write = errDisk })
		j.Later(acme, intent("waits"))
		time.Sleep(time.Second) //nolint:forbidigo // the clock of synctest
		if text := readFile(t, segments.Path(j.dir, 1)); strings.Contains(text, "waits") {
			t.Error("it is written to a full disk")
		}
		disk().set(func() { disk().write = nil })
		time.Sleep(time.Second) //nolint:forbidigo // the clock of synctest
		if text := readFile(t, segments.Path(j.dir, 1)); !strings.Contains(text, "waits") {
			t.Error("it is not written")
		}
		// The goroutine that writes waits for the next record again.
		j.Later(acme, intent("follows"))
		time.Sleep(time.Second) //nolint:forbidigo // the clock of synctest
		if text := readFile(t, segments.Path(j.dir, 1)); !strings.Contains(text, "follows") {
			t.Error("the next one is not written")
		}
	})
}

// TestFaultsAreLogged checks that operators learn of a disk that does not sync, and of a journal that cannot go on.
func TestFaultsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, log := loggedOptions(t, t.TempDir())
		faulty, disk := faultyOptions(t, "")
		var full atomic.Bool
		o.create = func(path string) (file, error) {
			if full.Load() {
				return nil, errDisk
			}
			return faulty.create(path)
		}
		j := openJournal(t, o)
		if err := j.Append(acme, intent("create_issue")); err != nil {
			t.Fatal(err)
		}
		full.Store(true)
		first := disk()
		first.set(func() { first.sync = errDisk })
		time.Sleep(10*time.Second + time.Millisecond) //nolint:forbidigo // the clock of synctest
		if synced, on := log.count("cannot be synced"), log.count("cannot go on"); synced == 0 || on < 5 || on > 11 {
			t.Errorf("%d lines about the sync, %d about going on:\n%s", synced, on, &log.text)
		}
		full.Store(false)
		time.Sleep(2 * time.Second) //nolint:forbidigo // the clock of synctest
		if err := j.Append(acme, intent("create_issue")); err != nil {
			t.Errorf("it does not go on: %v", err)
		}
	})
}

// TestSyncedInTime checks that a record is on the disk 50 ms later, and that the disk has a rest when there is nothing new.
func TestSyncedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, disk := faultyOptions(t, t.TempDir())
		j := openJournal(t, o)
		syncs := func() (n int) {
			disk().set(func() { n = disk().synced })
			return n
		}
		pass(time.Second)
		if n := syncs(); n != 1 {
			t.Errorf("an empty segment is synced %d times", n)
		}
		if err := j.Append(acme, intent("create_issue")); err != nil {
			t.Fatal(err)
		}
		mark := j.writtenSoFar()
		pass(SyncEvery)
		if j.synced.Load() < mark || syncs() < 2 {
			t.Errorf("%d of %d bytes are synced", j.synced.Load(), mark)
		}
		pass(time.Second)
		n := syncs()
		pass(time.Minute)
		if more := syncs() - n; more != 0 {
			t.Errorf("%d more syncs without a record", more)
		}
	})
}

// TestFullSegment checks that a segment ends as soon as it has its size, and not before.
func TestFullSegment(t *testing.T) {
	o := testOptions(t, t.TempDir())
	j := openJournal(t, o)
	leaveAlone(j)
	asked := func() bool {
		select {
		case <-j.rotation:
			return true
		default:
			return false
		}
	}
	intents(t, j, 1)
	j.options.SegmentSize = j.segment.size + 1
	if err := j.advance(); err != nil || j.segment.number != 1 || asked() {
		t.Errorf("segment %d a byte too early, %v", j.segment.number, err)
	}
	intents(t, j, 1)
	if !asked() {
		t.Error("the full segment waits for the next tick")
	}
	j.options.SegmentSize = j.segment.size
	if err := j.advance(); err != nil || j.segment.number != 2 {
		t.Errorf("segment %d when it is full, %v", j.segment.number, err)
	}
}

// TestFormerSegmentIsSure checks that a failing sync puts no doubt on records of the segment before, which was synced when
// it ended.
func TestFormerSegmentIsSure(t *testing.T) {
	o, disk := faultyOptions(t, t.TempDir())
	j := openJournal(t, o)
	leaveAlone(j)
	intents(t, j, 1)
	former := j.writtenSoFar()
	if err := turn(j); err != nil {
		t.Fatal(err)
	}
	intents(t, j, 1)
	second := disk()
	second.set(func() { second.sync = errDisk })
	if err := j.syncTo(j.writtenSoFar()); !errors.Is(err, errDisk) {
		t.Errorf("who waits for its record is told %v", err)
	}
	for _, when := range []string{"beside the segment that fails", "beside the next one"} {
		if err := j.syncTo(former); err != nil {
			t.Errorf("%s who waits for the former segment is told %v", when, err)
		}
		if err := j.advance(); err != nil {
			t.Fatal(err)
		}
	}
	if disk() == second {
		t.Error("the journal went on with the same file")
	}
}
