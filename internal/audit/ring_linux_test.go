package audit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRingWraps: a ring that was filled some times has what the file has not, lines that are too long for it and those
// behind them too, and the next start puts that into the file.
func TestRingWraps(t *testing.T) {
	root := t.TempDir()
	o := testOptions(t, root)
	o.SegmentSize = 1 << 30
	j := openJournal(t, o)
	if j.ring == nil {
		t.Fatal(noRing)
	}
	records := 0
	for _, long := range []int{0, ringRoom - 1_000, ringRoom, ringRoom + 1, ringSize, 3 * ringSize, 100, 0} {
		if long > 0 {
			e := intent("create_issue")
			e.Session = strings.Repeat("x", long)
			if err := j.Append(acme, e); err != nil {
				t.Fatal(err)
			}
			records++
		}
		intents(t, j, ringSize/600)
		records += ringSize / 600
		if report := wantClean(t, root, new(memory)); report.Records != records {
			t.Fatalf("behind a line of %d bytes %d records are there, not %d", long, report.Records, records)
		}
	}
	kill(t, j)
	whole := readSegment(t, j.dir, 1)
	if report := wantClean(t, root, new(memory)); report.Records != records || int64(len(whole)) != j.segment.size {
		t.Errorf("%d records of %d, %d bytes of %d", report.Records, records, len(whole), j.segment.size)
	}
	again := openJournal(t, testOptions(t, root))
	if report := wantClean(t, root, new(memory)); report.Records != records || len(report.Notes) > 0 {
		t.Errorf("%+v", report)
	}
	if text := readFile(t, segmentPath(j.dir, 1)); !strings.HasPrefix(text, whole) {
		t.Error("the next start has not put all of the ring into the file")
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(j.dir, ringName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a journal that was closed has a ring: %v", err)
	}
}

// TestRingTorn: killed while the ring was written to the file, which has a part of it then, in the middle of a line or of a
// page; or killed when the segment's final checkpoint was in the ring.
func TestRingTorn(t *testing.T) {
	for _, final := range []bool{false, true} {
		root := t.TempDir()
		j := openJournal(t, testOptions(t, root))
		j.mu.Lock() // what syncs waits
		from := j.segment.size
		for range 20 {
			c, err := j.ready(acme)
			if err == nil {
				j.add(c, intent("create_issue"), 0)
				err = j.flush()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if final {
			if err := j.checkpoint(true); err != nil {
				t.Fatal(err)
			}
		}
		j.mu.Unlock()
		kill(t, j)
		whole := readSegment(t, j.dir, 1)
		if int64(len(whole)) != j.segment.size {
			t.Fatalf("%d bytes of %d", len(whole), j.segment.size)
		}
		for _, size := range []int64{from, from + 1, from + 1_000, 4_096, j.segment.size - 1, j.segment.size} {
			copied := t.TempDir()
			if err := os.CopyFS(copied, os.DirFS(root)); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(copied, j.node)
			content := append([]byte(whole[:size]), make([]byte, fileStep-size)...)
			if err := os.WriteFile(segmentPath(dir, 1), content, 0o600); err != nil {
				t.Fatal(err)
			}
			if report := wantClean(t, copied, new(memory)); report.Records != 20 || len(report.Notes) > 0 {
				t.Errorf("with %d bytes in the file: %+v", size, report)
			}
			openJournal(t, testOptions(t, copied))
			if report := wantClean(t, copied, new(memory)); report.Records != 20 || len(report.Notes) > 0 {
				t.Errorf("with %d bytes in the file, after a start: %+v", size, report)
			}
			found, err := scan(segmentPath(dir, 1), nil)
			if err != nil || !found.final || found.torn != 0 {
				t.Fatalf("%+v, %v", found, err)
			}
			if said, err := readCheckpoint(found.checkpoint.Data); err != nil || said.Cut != 0 || said.Number != 1 {
				t.Errorf("%+v, %v", said, err)
			}
		}
	}
}

// TestRingGone: somebody takes the ring away, replaces it or cuts it off: the process lives and goes on with another one.
func TestRingGone(t *testing.T) {
	for name, c := range map[string]struct {
		change func(path string) error
		all    bool // nothing is lost
	}{
		"removed":  {os.Remove, true},
		"replaced": {func(path string) error { return errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)) }, true},
		"a link":   {func(path string) error { return errors.Join(os.Rename(path, path+"-"), os.Symlink(path+"-", path)) }, true},
		"cut off":  {func(path string) error { return os.Truncate(path, 0) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			j := openJournal(t, testOptions(t, root))
			intents(t, j, 5)
			if err := c.change(filepath.Join(j.dir, ringName)); err != nil {
				t.Fatal(err)
			}
			acknowledged := 5
			for range 5 {
				if err := j.Append(acme, intent("create_issue")); err == nil {
					acknowledged++
				} else if !errors.Is(err, ErrUnavailable) {
					t.Fatal(err)
				}
			}
			if err := j.advance(); err != nil && c.all {
				t.Fatal(err)
			}
			if err := j.advance(); err != nil {
				t.Fatal(err)
			}
			intents(t, j, 5)
			if !j.ring.there() || j.segment.number != 2 {
				t.Errorf("segment %d", j.segment.number)
			}
			if report := wantClean(t, root, new(memory)); c.all && report.Records != acknowledged+5 {
				t.Errorf("%d records of %d", report.Records, acknowledged+5)
			}
			if err := errors.Join(os.Remove(filepath.Join(j.dir, ringName)), j.Close()); err != nil {
				t.Errorf("closing a journal without its ring: %v", err)
			}
		})
	}
}

// TestRingDamaged: somebody cuts the ring off or writes over it while something is only there: the process lives, what the disk had
// stays as it was, and what comes then is recorded.
func TestRingDamaged(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"cut off":              func(path string) error { return os.Truncate(path, 0) },
		"without its data":     func(path string) error { return os.Truncate(path, ringHead) },
		"within the page":      func(path string) error { return os.Truncate(path, ringHead+1_000) },
		"behind what is there": func(path string) error { return os.Truncate(path, ringHead+50_000) },
		"cut off and made long again": func(path string) error {
			return errors.Join(os.Truncate(path, 0), os.Truncate(path, ringHead+ringSize))
		},
		"zeros in place of its data": func(path string) error {
			return errors.Join(os.Truncate(path, ringHead), os.Truncate(path, ringHead+ringSize))
		},
		"written over": func(path string) error {
			return os.WriteFile(path, bytes.Repeat([]byte{'q'}, ringHead+ringSize), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			j := openJournal(t, testOptions(t, root))
			leaveAlone(j)
			intents(t, j, 9)
			if err := errors.Join(j.Checkpoint(), j.syncTo(j.writtenSoFar())); err != nil {
				t.Fatal(err)
			}
			intents(t, j, 1)
			if err := damage(filepath.Join(j.dir, ringName)); err != nil {
				t.Fatal(err)
			}
			if err := j.syncTo(j.writtenSoFar()); !errors.Is(err, errFault) {
				t.Errorf("error %v", err)
			}
			if err := j.advance(); err != nil {
				t.Fatal(err)
			}
			intents(t, j, 5)
			kill(t, j)
			openJournal(t, testOptions(t, root))
			if report := wantClean(t, root, new(memory)); report.Records != 14 {
				t.Errorf("%d records", report.Records)
			}
		})
	}
}

// TestRingEmptied: a ring that was cut off and made long again takes nothing.
func TestRingEmptied(t *testing.T) {
	root := t.TempDir()
	j := openJournal(t, testOptions(t, root))
	leaveAlone(j)
	intents(t, j, 5)
	path := filepath.Join(j.dir, ringName)
	if err := errors.Join(j.settle(), os.Truncate(path, 0), os.Truncate(path, ringHead+ringSize)); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(acme, intent("refused")); !errors.Is(err, errFault) {
		t.Errorf("error %v", err)
	}
	if err := j.advance(); err != nil {
		t.Fatal(err)
	}
	intents(t, j, 5)
	kill(t, j)
	if ids := exportedIDs(t, root); len(ids) != 10 {
		t.Errorf("%d records of 10", len(ids))
	}
}

// TestLongLineRefused: a line that goes around a ring which was cut off is refused, and is not there.
func TestLongLineRefused(t *testing.T) {
	root := t.TempDir()
	j := openJournal(t, testOptions(t, root))
	leaveAlone(j)
	intents(t, j, 5)
	if err := errors.Join(j.settle(), os.Truncate(filepath.Join(j.dir, ringName), 0)); err != nil {
		t.Fatal(err)
	}
	e := intent("long")
	e.Session = strings.Repeat("x", ringRoom+1)
	if err := j.Append(acme, e); !errors.Is(err, errFault) {
		t.Errorf("error %v", err)
	}
	if err := j.advance(); err != nil {
		t.Fatal(err)
	}
	kill(t, j)
	if ids := exportedIDs(t, root); ids[e.ID] || len(ids) != 5 {
		t.Errorf("%d records, the refused one among them: %v", len(ids), ids[e.ID])
	}
}

// TestRingUnwritable: the segment's file takes nothing of the ring. The segment ends with all that was acknowledged.
func TestRingUnwritable(t *testing.T) {
	root := t.TempDir()
	j := openJournal(t, testOptions(t, root))
	intents(t, j, 5)
	m, ok := j.segment.file.(*ringFile)
	if !ok {
		t.Fatal(noRing)
	}
	if err := m.file.Close(); err != nil {
		t.Fatal(err)
	}
	acknowledged := 5
	for range 5 {
		if err := j.Append(acme, intent("create_issue")); err == nil {
			acknowledged++
		} else if !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
	}
	for deadline := 0; j.writtenSoFar() > 0 && deadline < 1_000; deadline++ {
		if err := j.syncTo(j.writtenSoFar()); err == nil {
			break
		}
		_ = j.advance() // the file that was closed cannot be closed again
	}
	intents(t, j, 5)
	kill(t, j)
	if report := wantClean(t, root, new(memory)); report.Records != acknowledged+5 || j.segment.number != 2 {
		t.Errorf("%d records of %d, segment %d", report.Records, acknowledged+5, j.segment.number)
	}
}

// TestRingShipped: who ships from the files has what only the ring had.
func TestRingShipped(t *testing.T) {
	root, store := t.TempDir(), new(memory)
	j := openJournal(t, testOptions(t, root))
	for i := range 3 {
		intents(t, j, 5)
		if err := fileShipper(j, store).ship(t.Context()); err != nil {
			t.Fatal(err)
		}
		records := 0
		for _, c := range chunksOf(store) {
			records += int(c.Last - c.First + 1)
		}
		if records != 5*(i+1) {
			t.Errorf("%d records are shipped of %d", records, 5*(i+1))
		}
	}
	wantClean(t, root, store)
}

// TestRingMoves: a ring belongs to the last segment that got it, and the one before can write nothing of it to its file.
func TestRingMoves(t *testing.T) {
	r := ringFor(t, 1)
	dir := t.TempDir()
	path := filepath.Join(dir, "one")
	one, err := createFile(path, r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.Write([]byte("of the first segment\n")); err != nil {
		t.Fatal(err)
	}
	if err := r.turn(2); err != nil {
		t.Fatal(err)
	}
	two, err := createFile(filepath.Join(dir, "two"), r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := two.Write([]byte("of the second segment\n")); err != nil {
		t.Fatal(err)
	}
	if err := one.Sync(); !errors.Is(err, errLeft) {
		t.Errorf("the first segment is synced: %v", err)
	}
	if err := two.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || len(trimZeros(text)) > 0 {
		t.Errorf("%q, %v", text, err)
	}
	if text := readFile(t, filepath.Join(dir, "two")); text != "of the second segment\n" {
		t.Errorf("%q", text)
	}
	if err := errors.Join(one.Release(), r.remove()); err != nil {
		t.Fatal(err)
	}
}
