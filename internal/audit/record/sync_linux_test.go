package record

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// TestSyncAlways checks that an event waits for the disk when the settings say so. The journal gets a pipe in place of its
// file: that takes writes, and cannot be synced.
func TestSyncAlways(t *testing.T) {
	l := newLog(t, Settings{SyncAlways: true})
	if err := l.Start(nil); err != nil {
		t.Fatal(err)
	}
	if err := l.Event(t.Context(), l.organization, storage.AuditEntry{Event: "on the disk"}); err != nil {
		t.Fatal(err)
	}
	unread, pipe, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer unread.Close()
	defer pipe.Close()
	if err := syscall.Dup3(int(pipe.Fd()), journalFile(t, l.place.Dir), syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	if err := l.Event(t.Context(), l.organization, storage.AuditEntry{Event: "not on the disk"}); err == nil {
		t.Error("an event is acknowledged that is not on the disk")
	}
}

// journalFile returns the descriptor of the segment that this process writes below a directory.
func journalFile(t *testing.T, dir string) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range open {
		path, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if inside, _ := filepath.Match(filepath.Join(dir, "*", "*.ndjson"), path); err == nil && inside {
			number, err := strconv.Atoi(entry.Name())
			if err != nil {
				t.Fatal(err)
			}
			return number
		}
	}
	t.Fatal("the journal has no file")
	return 0
}
