package audit

import (
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestOpenAgain checks that a journal that cannot begin a segment is not kept from the next attempt.
func TestOpenAgain(t *testing.T) {
	o := testOptions(t, t.TempDir())
	j := openJournal(t, o)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	full := o
	full.create = func(string) (file, error) { return nil, errDisk }
	if _, err := Open(full); !errors.Is(err, errDisk) {
		t.Fatalf("opened on a full disk: %v", err)
	}
	if again := openJournal(t, o); again.node != j.node {
		t.Error("nobody can use it until the process ends")
	}
}

// TestWaitingCallersAreTold checks that no caller waits for ever when its record is given up with the segment.
func TestWaitingCallersAreTold(t *testing.T) {
	for name, end := range map[string]func(*Journal) error{"another segment": turn, "the end": (*Journal).Close} {
		t.Run(name, func(t *testing.T) {
			j := openJournal(t, testOptions(t, t.TempDir()))
			leaveAlone(j)
			c, err := j.ready(acme)
			if err != nil {
				t.Fatal(err)
			}
			// The caller lets others add their records, and the disk fails meanwhile.
			j.add(c, intent("create_issue"), 0)
			waits := &group{done: make(chan struct{})}
			j.joined, j.failure = waits, errDisk
			if err := end(j); errors.Is(err, errDisk) != (name == "the end") {
				t.Error(err)
			}
			select {
			case <-waits.done:
			default:
				t.Fatal("it still waits")
			}
			if !errors.Is(waits.err, errDisk) {
				t.Errorf("it is told %v", waits.err)
			}
		})
	}
}

// gate is a log that takes nothing until it is open.
type gate chan struct{}

func (g gate) Write(p []byte) (int, error) {
	<-g
	return len(p), nil
}

// TestCloseWaits checks that a journal does nothing any more when Close has returned.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, log := testOptions(t, t.TempDir()), make(gate)
		o.Log = slog.New(slog.NewTextHandler(log, nil))
		o.SegmentSize = 1
		var made int
		o.create = func(path string) (file, error) {
			if made++; made > 1 {
				return nil, errDisk
			}
			return createFile(path)
		}
		j := openJournal(t, o)
		intents(t, j, 1)
		pass(time.Second) // its goroutine has something to say
		var closed atomic.Bool
		go func() {
			if err := j.Close(); err != nil {
				t.Error(err)
			}
			closed.Store(true)
		}()
		pass(time.Minute)
		if closed.Load() {
			t.Error("something runs behind Close")
		}
		close(log)
		pass(time.Minute)
		if !closed.Load() {
			t.Error("not closed")
		}
	})
}

// unclosable is a file on a disk that reports a fault when the file is closed.
type unclosable struct{ file }

func (f unclosable) Close() error { return errors.Join(f.file.Close(), os.ErrInvalid) }

// TestCloseFault checks that the last fault of a disk is told.
func TestCloseFault(t *testing.T) {
	o := testOptions(t, t.TempDir())
	o.create = func(path string) (file, error) {
		f, err := createFile(path)
		return unclosable{f}, err
	}
	j := openJournal(t, o)
	leaveAlone(j)
	if err := turn(j); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("another segment: %v", err)
	}
	if err := j.Close(); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("the end: %v", err)
	}
}
