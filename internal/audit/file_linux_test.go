package audit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// noRing: what is tested here is not to be had, and a test that skips proves nothing.
const noRing = "the file system of this directory knows no rings: set TMPDIR to one that does"

// ringFor makes a ring and gives it to a segment.
func ringFor(t testing.TB, number int) *ring {
	t.Helper()
	r, err := createRing(filepath.Join(t.TempDir(), ringName))
	if err != nil {
		t.Fatal(noRing, err)
	}
	if err := r.turn(number); err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRingFile: whatever is written, in whatever pieces and however it comes to the file, what a kill would leave there and in the
// ring is what was written at each step: nothing of another segment, nothing that was taken away.
func TestRingFile(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		path, r := filepath.Join(t.TempDir(), "segment"), ringFor(t, 1)
		defer r.remove()
		copy(r.window[ringHead:], bytes.Repeat([]byte{'#'}, ringSize)) // of another segment
		f, err := createFile(path, r)
		if err != nil {
			rt.Fatal(err)
		}
		m, ok := f.(*ringFile)
		if !ok || m.direct == nil {
			rt.Fatal(noRing)
		}
		var want []byte
		check := func() {
			rt.Helper()
			ring, err := readRing(filepath.Dir(r.path))
			if err != nil {
				rt.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil {
				rt.Fatal(err)
			}
			at := m.flushed.Load()
			if ring.written != int64(len(want)) || !bytes.Equal(got[:at], want[:at]) || !bytes.Equal(ring.behind(1, at), want[at:]) {
				rt.Fatalf("not what was written: %d bytes, of them %d in the file; the ring has %d behind them and says %d", len(want), at, len(ring.behind(1, at)), ring.written)
			}
			if rest := trimZeros(got[at:]); !bytes.HasPrefix(want[at:], rest) {
				rt.Fatalf("the file has %d bytes of something behind %d", len(rest), at)
			}
		}
		small := rapid.IntRange(1, 2_000)
		sizes := rapid.OneOf(small, small, small, small, small, rapid.IntRange(ringRoom-2, ringRoom+2), rapid.IntRange(1, 2*ringSize))
		toBound := rapid.Bool()
		for i := range rapid.IntRange(1, 12).Draw(rt, "writes") {
			size := sizes.Draw(rt, "size")
			if toBound.Draw(rt, "to a page's bound") {
				size = directSize - len(want)%directSize
			}
			piece := bytes.Repeat([]byte{byte('a' + i%26)}, size)
			if n, err := f.Write(piece); err != nil || n != len(piece) {
				rt.Fatal(n, err)
			}
			before := len(want)
			want = append(want, piece...)
			check()
			switch rapid.IntRange(0, 7).Draw(rt, "then") {
			case 0:
				if err := f.Sync(); err != nil {
					rt.Fatal(err)
				}
			case 1:
				want = want[:before+rapid.IntRange(0, size).Draw(rt, "kept")]
				if err := f.Truncate(int64(len(want))); err != nil {
					rt.Fatal(err)
				}
			case 2:
				if i%4 == 0 && m.direct != nil {
					_ = m.direct.Close() // writing past the page cache fails from now on
				}
			case 3:
				m.ring.aio.giveBack()
				m.ring.aio = nil
			}
			check()
		}
		if err := f.Close(); err != nil && !errors.Is(err, os.ErrClosed) { // of what was closed above
			rt.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			rt.Fatalf("%d bytes instead of %d at the end, %v", len(got), len(want), err)
		}
	})
}

// TestCutOffUnnoticed: a segment that was cut off and would be made long again at once is not: what follows would stand behind a hole.
func TestCutOffUnnoticed(t *testing.T) {
	for name, more := range map[string]func(*Journal) error{
		"a long line": func(j *Journal) error {
			e := intent("long")
			e.Session = strings.Repeat("x", ringRoom+1)
			return j.Append(acme, e)
		},
		"laid out": func(j *Journal) error {
			e := intent("long")
			e.Session = strings.Repeat("x", fileStep)
			return j.Append(acme, e)
		},
		"a long line where there is room": func(j *Journal) error {
			e := intent("long")
			e.Session = strings.Repeat("x", ringRoom+1)
			return j.Append(acme, e)
		},
		"written": func(j *Journal) error {
			_ = j.Append(acme, intent("short"))
			return j.settle()
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			j := openJournal(t, testOptions(t, root))
			leaveAlone(j)
			first := intent("long")
			if strings.HasSuffix(name, "room") {
				first.Session = strings.Repeat("x", largeStep+1)
			}
			if err := errors.Join(j.Append(acme, first), j.syncTo(j.writtenSoFar())); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(segmentPath(j.dir, 1), 0); err != nil {
				t.Fatal(err)
			}
			if err := more(j); !errors.Is(err, errFault) {
				t.Errorf("error %v", err)
			}
			if err := j.advance(); err != nil {
				t.Fatal(err)
			}
			intents(t, j, 5)
			kill(t, j)
			again := openJournal(t, testOptions(t, root))
			report, err := Verify(t.Context(), Journals{Dir: root, All: true}, new(memory), sharedKeys())
			if err != nil || report.Records != 5 || len(report.Findings) == 0 || again.segment.number != 3 {
				t.Errorf("%+v, %v; then segment %d", report, err, again.segment.number)
			}
		})
	}
}

// journalOn is a journal that does nothing by itself, on a disk that has no room for further segments while full says so.
func journalOn(t *testing.T, root string, full *bool) *Journal {
	t.Helper()
	o := testOptions(t, root)
	o.create = func(path string, r *ring) (file, error) {
		if *full {
			return nil, errDisk
		}
		return createFile(path, r)
	}
	j := openJournal(t, o)
	leaveAlone(j)
	return j
}

// TestCutOffFullDisk: a segment that was cut off is over, and the next one cannot be begun at once, for want of space. It is as soon
// as there is some.
func TestCutOffFullDisk(t *testing.T) {
	for name, size := range map[string]int64{"all of it": 0, "its beginning": 2 * maxHeader} {
		t.Run(name, func(t *testing.T) {
			root, full := t.TempDir(), false
			j := journalOn(t, root, &full)
			intents(t, j, 50)
			path := segmentPath(j.dir, 1)
			if err := errors.Join(os.Truncate(path, 0), os.WriteFile(path, bytes.Repeat([]byte{'x'}, int(size)), 0o600)); err != nil {
				t.Fatal(err)
			}
			full = true
			for range 2 {
				if err := j.advance(); !errors.Is(err, errDisk) {
					t.Errorf("error %v", err)
				}
			}
			full = false
			if err := j.advance(); err != nil {
				t.Fatal(err)
			}
			intents(t, j, 5)
			report, err := Verify(t.Context(), Journals{Dir: root, All: true}, new(memory), sharedKeys())
			if err != nil || report.Records != 5 || len(report.Findings) == 0 || j.segment.number != 2 {
				t.Errorf("segment %d; %+v, %v", j.segment.number, report, err)
			}
		})
	}
}

// TestCutOffLast: a gateway that ends before it could begin another segment behind one that was cut off leaves that one aside, and
// the next start does not use its number again: what is lost with it is found.
func TestCutOffLast(t *testing.T) {
	root, full := t.TempDir(), false
	j := journalOn(t, root, &full)
	intents(t, j, 5)
	if err := turn(j); err != nil {
		t.Fatal(err)
	}
	intents(t, j, 5)
	full = true
	if err := os.Truncate(segmentPath(j.dir, 2), 0); err != nil {
		t.Fatal(err)
	}
	if err := j.advance(); !errors.Is(err, errDisk) {
		t.Errorf("error %v", err)
	}
	kill(t, j)
	again := openJournal(t, testOptions(t, root))
	intents(t, again, 5)
	report, err := Verify(t.Context(), Journals{Dir: root, All: true}, new(memory), sharedKeys())
	if err != nil || report.Records != 10 || len(report.Findings) == 0 || again.segment.number != 3 || again.node != j.node {
		t.Errorf("segment %d; %+v, %v", again.segment.number, report, err)
	}
}

// TestNoBeginning: a segment of which the beginning was cut off is set aside at the next start, not removed.
func TestNoBeginning(t *testing.T) {
	root := t.TempDir()
	j := openJournal(t, testOptions(t, root))
	intents(t, j, 50)
	kill(t, j)
	path := segmentPath(j.dir, 1)
	text := []byte(readSegment(t, j.dir, 1))
	clear(text[:100])
	if err := errors.Join(os.Remove(filepath.Join(j.dir, ringName)), os.WriteFile(path, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	openJournal(t, testOptions(t, root))
	if left := readFile(t, path+damagedSuffix); left != string(text) {
		t.Errorf("%d bytes are left of %d", len(left), len(text))
	}
}

// TestCutOff: somebody cuts a segment off that is being written: the process lives, nothing is acknowledged that is not in
// a file, and the journal goes on in another one.
func TestCutOff(t *testing.T) {
	dir := t.TempDir()
	j := openJournal(t, testOptions(t, dir))
	if !j.segment.file.Cheap() {
		t.Fatal(noRing)
	}
	if err := j.Append(acme, intent("before")); err != nil {
		t.Fatal(err)
	}
	if err := j.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(segmentPath(j.dir, 1), 0); err != nil {
		t.Fatal(err)
	}
	failed := false
	for range 1_000 {
		if err := j.Append(acme, intent("after")); err == nil {
			if err := j.advance(); err != nil {
				t.Fatal(err)
			}
			if failed {
				break
			}
		} else if failed = true; !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
	}
	if err := j.advance(); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(acme, intent("after")); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if found := verify(t, dir, new(memory)); len(found) == 0 {
		t.Error("nothing was found")
	}
}
