package audit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
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

// TestRingFile: whatever is written, in whatever pieces and however often it is synced, is what the file holds once it is
// settled, and after its end.
func TestRingFile(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		path, r := filepath.Join(t.TempDir(), "segment"), ringFor(t, 1)
		defer r.remove()
		f, err := createFile(path, r)
		if err != nil {
			rt.Fatal(err)
		}
		if !f.Cheap() {
			rt.Fatal(noRing)
		}
		var want []byte
		sizes := rapid.OneOf(rapid.IntRange(1, 2_000), rapid.IntRange(1, 3*fileStep))
		for i := range rapid.IntRange(1, 60).Draw(rt, "writes") {
			piece := bytes.Repeat([]byte{byte('a' + i%26)}, sizes.Draw(rt, "size"))
			if n, err := f.Write(piece); err != nil || n != len(piece) {
				rt.Fatal(n, err)
			}
			switch rapid.IntRange(0, 5).Draw(rt, "then") {
			case 0:
				if err := f.Sync(); err != nil {
					rt.Fatal(err)
				}
			case 1:
				piece = piece[:len(piece)/2]
				if err := f.Truncate(int64(len(want) + len(piece))); err != nil {
					rt.Fatal(err)
				}
			}
			want = append(want, piece...)
		}
		if err := f.Settle(); err != nil {
			rt.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(bytes.TrimRight(got, "\x00"), want) {
			rt.Fatalf("%d bytes instead of %d, %v", len(bytes.TrimRight(got, "\x00")), len(want), err)
		}
		if err := f.Close(); err != nil {
			rt.Fatal(err)
		}
		if got, err = os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			rt.Fatalf("%d bytes instead of %d at the end, %v", len(got), len(want), err)
		}
	})
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
