package audit

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/internal/audit/segments"
)

// These are those of a ring, see package former.
const (
	ringMark      = "durring1"
	ringHead      = 4096
	ringSize      = 1 << 20
	ringNumberAt  = 8
	ringWrittenAt = 16
)

// longSegment returns the text of a former segment that is several times as long as a ring, and the positions of its
// checkpoints.
func longSegment(t testing.TB, rings int) (node, text string) {
	t.Helper()
	j := openJournal(t, testOptions(t, t.TempDir()))
	for i := 0; j.segment.size < int64(rings)*ringSize; i++ {
		e := intent("create_issue")
		e.UserID, e.Session = strconv.Itoa(i%7), strings.Repeat("x", i%100)
		if err := j.Append([]string{acme, other}[i%2], e); err != nil {
			t.Fatal(err)
		}
		if i%50 == 0 {
			if err := j.Checkpoint(); err != nil {
				t.Fatal(err)
			}
		}
	}
	kill(t, j)
	return j.node, string(formerLines(t, readSegment(t, j.dir, 1), format.JSONSegmentFormat))
}

// ringAt returns the contents of the ring when so much of a text is written.
func ringAt(text string, written int) []byte {
	data := make([]byte, ringSize)
	for from := max(0, written-ringSize); from < written; {
		end := min(from/ringSize*ringSize+ringSize, written)
		copy(data[from%ringSize:], text[from:end])
		from = end
	}
	return data
}

// intents appends some intents.
func intents(t testing.TB, j *Journal, n int) {
	t.Helper()
	for range n {
		if err := j.Append(acme, intent("create_issue")); err != nil {
			t.Fatal(err)
		}
	}
}

func writeRing(t testing.TB, dir string, number uint64, written int64, data []byte) {
	t.Helper()
	head := make([]byte, ringHead)
	copy(head, ringMark)
	binary.NativeEndian.PutUint64(head[ringNumberAt:], number)
	binary.NativeEndian.PutUint64(head[ringWrittenAt:], uint64(written))
	if err := os.WriteFile(filepath.Join(dir, former.RingName), append(head, data...), 0o600); err != nil {
		t.Fatal(err)
	}
}

// mixPages returns a ring as after a power cut: each page is from one of several moments, or from two of them.
func mixPages(random *rand.Rand, moments ...[]byte) []byte {
	const page, sector = 4096, 512
	mixed := make([]byte, len(moments[0]))
	for from := 0; from < len(mixed); from += page {
		copy(mixed[from:from+page], moments[random.IntN(len(moments))][from:])
		if random.IntN(4) == 0 {
			torn := from + sector*random.IntN(page/sector)
			copy(mixed[torn:from+page], moments[random.IntN(len(moments))][torn:])
		}
	}
	return mixed
}

// TestStaleRing checks Z-D03 for the ring. For any mix of old and new pages, the lines that are taken from the ring are
// those that were written after the lines in the file. From a ring without old pages all lines are taken.
func TestStaleRing(t *testing.T) {
	node, text := longSegment(t, 3)
	strange, strangeText := longSegment(t, 1)
	if node == strange {
		t.Fatal("two nodes have one name")
	}
	keys := &segments.Keys{MACs: sharedGateway().macs, Signatures: sharedSigner()}
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same in every run
	zeros, lines := make([]byte, ringSize), strings.SplitAfter(text, "\n")
	taken, refused, dir := 0, 0, t.TempDir()
	for i := range 15 {
		written := len(strings.Join(lines[:len(lines)-random.IntN(len(lines)/2)], ""))
		inFile := max(written-random.IntN((ringSize/2)), 1000)
		whole := ringAt(text, written)
		data, said := whole, int64(written)
		if i%3 > 0 {
			earlier := written - random.IntN(min(written, 50_000))
			data = mixPages(random, whole, whole, whole, ringAt(text, earlier), ringAt(text, max(0, earlier-ringSize)), ringAt(strangeText, len(strangeText)), zeros)
		}
		if i%3 > 1 {
			said = int64(written - random.IntN(10_000)) // an old length, which is not at the end of a line
		}
		writeRing(t, dir, 1, said, data)
		r, err := former.ReadRing(dir, segments.Nonblocking)
		if err != nil {
			t.Fatal(err)
		}
		all, err := segments.ScanFrom(strings.NewReader(text[:inFile]), node, "00000001", keys)
		if err != nil {
			t.Fatal(err)
		}
		size := all.Size
		got := text[:size] + string(all.Follow(r.Behind(1, size)))
		if !strings.HasPrefix(text[:written], got) || !strings.HasSuffix(got, "\n") {
			t.Fatalf("%d: what was never written so is taken from the ring behind %d bytes", i, inFile)
		}
		if i%3 == 0 && len(got) != written {
			t.Fatalf("%d: %d of %d bytes are taken from a whole ring", i, len(got), written)
		}
		if len(got) > int(size) {
			taken++
		}
		if len(got) < written {
			refused++
		}
	}
	if taken < 5 || refused < 5 {
		t.Errorf("%d times something was taken and %d times something refused: the model is none", taken, refused)
	}
}

// TestRingForeign checks that a file which is no ring of this journal, or a part of one, gives no lines and stops
// nothing. The target of a link is not touched.
func TestRingForeign(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, strangeText := longSegment(t, 1)
	whole := make([]byte, ringSize)
	for name, replace := range map[string]func(t *testing.T, dir, ring string) error{
		"missing": func(*testing.T, string, string) error { return nil },
		"empty":   func(_ *testing.T, _, ring string) error { return os.WriteFile(ring, nil, 0o600) },
		"zeros": func(_ *testing.T, _, ring string) error {
			return os.WriteFile(ring, make([]byte, ringHead+ringSize), 0o600)
		},
		"other bytes": func(_ *testing.T, _, ring string) error {
			return os.WriteFile(ring, bytes.Repeat([]byte{'\n', 'x'}, (ringHead+ringSize)/2), 0o600)
		},
		"of another node": func(t *testing.T, dir, _ string) error {
			writeRing(t, dir, 1, int64(len(strangeText)), ringAt(strangeText, len(strangeText)))
			return nil
		},
		"of no segment":        func(t *testing.T, dir, _ string) error { writeRing(t, dir, 77, 1<<20, whole); return nil },
		"of a negative number": func(t *testing.T, dir, _ string) error { writeRing(t, dir, 1<<63, 1<<20, whole); return nil },
		"with more than there is": func(t *testing.T, dir, _ string) error {
			writeRing(t, dir, 1, 1<<40, whole)
			return nil
		},
		"of negative length": func(t *testing.T, dir, _ string) error { writeRing(t, dir, 1, -1, whole); return nil },
		"a link":             func(_ *testing.T, _, ring string) error { return os.Symlink(outside, ring) },
		"a link to nothing":  func(_ *testing.T, _, ring string) error { return os.Symlink(outside+"-", ring) },
		"a directory": func(_ *testing.T, _, ring string) error {
			return os.MkdirAll(filepath.Join(ring, "within"), 0o700)
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			j := openJournal(t, testOptions(t, root))
			intents(t, j, 3)
			kill(t, j) // this leaves no ring
			path := filepath.Join(j.dir, former.RingName)
			if err := replace(t, j.dir, path); err != nil {
				t.Fatal(err)
			}
			before := wantClean(t, root, new(memory))
			o, log := loggedOptions(t, root)
			again := openJournal(t, o)
			if said := log.count("the ring of an audit journal cannot be removed"); (said == 1) != (name == "a directory") {
				t.Errorf("it is said %d times that the ring cannot be removed", said)
			}
			intents(t, again, 3)
			after := wantClean(t, root, new(memory))
			if before.Records != 3 || after.Records != 6 || again.node != j.node {
				t.Errorf("%d records, then %d", before.Records, after.Records)
			}
			if text := readFile(t, outside); text != "outside" {
				t.Errorf("what is outside is %q", text)
			}
			if _, err := os.Lstat(outside + "-"); err == nil {
				t.Error("something was made outside")
			}
		})
	}
}

// TestRingHasTheEnd checks that a segment gets the last lines that only the ring has, and no other end.
func TestRingHasTheEnd(t *testing.T) {
	for _, missing := range []int{1, 2} { // the final checkpoint, and a record before it
		root := t.TempDir()
		j := openJournal(t, testOptions(t, root))
		leaveAlone(j)
		intents(t, j, 3)
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		path := segments.Path(j.dir, 1)
		text := readFile(t, path)
		lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
		if err := os.Truncate(path, int64(len(strings.Join(lines[:len(lines)-missing], "")))); err != nil {
			t.Fatal(err)
		}
		writeRing(t, j.dir, 1, int64(len(text)), ringAt(text, len(text)))
		openJournal(t, testOptions(t, root))
		if got := readFile(t, path); got != text {
			t.Errorf("without %d lines it becomes %q", missing, got)
		}
		wantClean(t, root, new(memory))
	}
}

// FuzzRing checks that a ring of any bytes is read without a panic, and that lines from it add no findings to an intact
// log.
func FuzzRing(f *testing.F) {
	j := openJournal(f, testOptions(f, f.TempDir()))
	intents(f, j, 5)
	text := string(formerLines(f, readSegment(f, j.dir, 1), format.JSONSegmentFormat))
	half := strings.Index(text[len(text)/2:], "\n") + len(text)/2 + 1
	f.Add(uint64(1), uint64(len(text)), []byte(text[half:]))
	f.Add(uint64(1), uint64(len(text)-1), []byte(text[half:]))
	f.Add(uint64(1), uint64(len(text)), []byte(text[half+1:]))
	f.Add(uint64(1<<63), uint64(1<<63), []byte("\n"))
	f.Fuzz(func(t *testing.T, number, written uint64, behind []byte) {
		dir := filepath.Join(t.TempDir(), j.node)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		appendFile(t, segments.Path(dir, 1), text[:half])
		writeRing(t, dir, number, int64(written), ringAt(text[:half]+string(behind), half+len(behind)))
		s, err := segments.Open(dir, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		wantClean(t, filepath.Dir(dir), new(memory))
	})
}
