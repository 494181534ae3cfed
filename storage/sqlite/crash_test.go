package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	crashPathEnv  = "DURWARD_TEST_CRASH_PATH"
	crashFirstEnv = "DURWARD_TEST_CRASH_FIRST"
)

// crashCycles and crashAcks make the normal run; DURWARD_TEST_CRASH_CYCLES=1000 is the long one.
const (
	crashCycles = 20
	crashAcks   = 10
)

// TestCrash checks Z-D02: a process that writes is killed with SIGKILL again and again; acknowledged writes are
// there, and the file opens and is sound.
func TestCrash(t *testing.T) {
	if path := os.Getenv(crashPathEnv); path != "" {
		crashWriter(t, path)
		return
	}
	t.Parallel()
	cycles := crashCycles
	if n, err := strconv.Atoi(os.Getenv("DURWARD_TEST_CRASH_CYCLES")); err == nil {
		cycles = n
	}
	path := filepath.Join(t.TempDir(), "durward.db")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	seedConnection(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	acked, scope := 0, ""
	for cycle := range cycles {
		acked, scope = crashCycle(t, path, acked, scope)
		s, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatalf("cycle %d: %v", cycle, err)
		}
		var sound string
		if err := s.writer.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&sound); err != nil || sound != "ok" {
			t.Fatalf("cycle %d: integrity check: %s, %v", cycle, sound, err)
		}
		if rows, err := s.writer.QueryContext(t.Context(), `PRAGMA foreign_key_check`); err != nil || rows.Next() || rows.Close() != nil {
			t.Fatalf("cycle %d: broken references (%v)", cycle, err)
		}
		keys, err := s.DataKeys(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		// One more than was acknowledged may be there: the kill came between the commit and the acknowledgement.
		if len(keys) < acked || len(keys) > acked+1 {
			t.Fatalf("cycle %d: %d writes were acknowledged, %d are there", cycle, acked, len(keys))
		}
		// Each of them is in the audit log, and nothing else is.
		records, err := s.AuditRecords(t.Context(), storage.AuditFilter{})
		if err != nil || len(records) != len(keys) {
			t.Fatalf("cycle %d: %d writes are there, and %d records of them (%v)", cycle, len(keys), len(records), err)
		}
		for i, k := range keys {
			if k.Version != i+1 || string(k.Wrapped) != strings.Repeat(strconv.Itoa(k.Version), 100) {
				t.Fatalf("cycle %d: write %d is torn", cycle, i+1)
			}
		}
		c, err := s.Connection(t.Context(), storage.ConnectionKey{OrganizationID: "organization", UserID: "user", ServerID: "server"})
		if err != nil || c.Scope < scope {
			t.Fatalf("cycle %d: connection %q was acknowledged, %q is there (%v)", cycle, scope, c.Scope, err)
		}
		acked = len(keys)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// crashCycle starts a writer, reads its acknowledgements and kills it somewhere in the middle of a write.
func crashCycle(t *testing.T, path string, acked int, scope string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	writer := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestCrash$")
	writer.Env = append(os.Environ(), crashPathEnv+"="+path, crashFirstEnv+"="+strconv.Itoa(acked+1))
	out, err := writer.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	lines := bufio.NewScanner(out)
	for acks := 0; lines.Scan(); {
		kind, value, _ := strings.Cut(lines.Text(), " ")
		switch kind {
		case "key":
			if acked, err = strconv.Atoi(value); err != nil {
				t.Fatal(err)
			}
		case "scope":
			scope = value
		default:
			t.Fatalf("the writer says %q", lines.Text())
		}
		if acks++; acks >= crashAcks && !killed {
			killed = true
			if err := writer.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := writer.Wait(); err == nil || !killed {
		t.Fatalf("the writer ended by itself: %v", err)
	}
	return acked, scope
}

// crashWriter writes until it is killed and says what the store has acknowledged.
func crashWriter(t *testing.T, path string) {
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := strconv.Atoi(os.Getenv(crashFirstEnv))
	if err != nil {
		t.Fatal(err)
	}
	key := storage.ConnectionKey{OrganizationID: "organization", UserID: "user", ServerID: "server"}
	for version := first; ; version++ {
		ctx := storage.WithAudit(t.Context(), &storage.Audited{Node: "node", Entries: []storage.AuditEntry{{ID: strconv.Itoa(version)}}})
		if err := s.AddDataKey(ctx, storage.DataKey{Version: version, Wrapped: []byte(strings.Repeat(strconv.Itoa(version), 100))}); err != nil {
			t.Fatal(err)
		}
		fmt.Println("key", version)
		c, err := s.UpdateConnection(t.Context(), key, func(_ context.Context, c *storage.Connection) error {
			c.Scope = fmt.Sprintf("%09d", version)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("scope", c.Scope)
	}
}
