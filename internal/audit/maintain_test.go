package audit

import (
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
