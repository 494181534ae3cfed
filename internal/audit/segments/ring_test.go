package segments

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/audit/format"
)

// TestFollow checks which lines of a ring continue a file: those that the gateway wrote behind its lines, up to the first
// that it did not.
func TestFollow(t *testing.T) {
	whole := func(j *journal) {
		j.record(acme, nil)
		j.record(acme, nil)
		j.record(other, nil)
		j.checkpoint(nil)
		j.record(acme, nil)
		j.checkpoint(nil)
	}
	for name, c := range map[string]struct {
		write   func(j *journal)
		taken   int // of the lines behind the header
		without int // when the reader has no keys
	}{
		"everything":             {whole, 6, 6},
		"nothing behind the end": {func(j *journal) { j.checkpoint(func(c *format.Checkpoint) { c.Final = true }); j.record(acme, nil) }, 1, 1},
		"no second header":       {func(j *journal) { j.record(acme, nil); j.header(); j.record(acme, nil) }, 1, 1},
		"no line twice":          {func(j *journal) { j.record(acme, nil); j.lines = append(j.lines, j.lines[1]) }, 1, 1},
		"no record behind one that is gone": {func(j *journal) {
			j.record(acme, nil)
			j.record(acme, nil)
			j.record(acme, nil)
			j.lines = slices.Delete(j.lines, 2, 3)
		}, 1, 1},
		"no record of another sequence": {func(j *journal) { j.record(acme, func(r *format.Record) { r.Sequence = 2 }) }, 0, 0},
		"no record of another hash":     {func(j *journal) { j.record(acme, func(r *format.Record) { r.Hash[0] ^= 1 }) }, 0, 0},
		"no record of another key":      {func(j *journal) { j.key = "forger"; j.record(acme, nil) }, 0, 1},
		"no record of another node":     {func(j *journal) { j.node = "0011223344556600"; j.record(acme, nil) }, 0, 0},
		"no record of another segment":  {func(j *journal) { j.segment++; j.record(acme, nil) }, 0, 0},
		"no unfinished line": {func(j *journal) {
			j.record(acme, nil)
			j.record(acme, nil)
			j.lines[2] = j.lines[2][:len(j.lines[2])-1]
		}, 1, 1},
		"no bytes behind a record's text":  {func(j *journal) { j.record(acme, nil); j.lines[1] = strings.Replace(j.lines[1], "\n", "x\n", 1) }, 0, 0},
		"no zeros":                         {func(j *journal) { j.record(acme, nil); j.lines = append(j.lines, "\x00\x00\n"); j.record(acme, nil) }, 1, 1},
		"no zeros before a line":           {func(j *journal) { j.record(acme, nil); j.lines[1] = "\x00" + j.lines[1] }, 0, 0},
		"no bytes of other programs":       {func(j *journal) { j.record(acme, nil); j.lines = append(j.lines, "hello\n"); j.record(acme, nil) }, 1, 1},
		"no checkpoint of another key":     {func(j *journal) { j.key = "forger"; j.checkpoint(nil) }, 0, 1},
		"no checkpoint of another node":    {func(j *journal) { j.checkpoint(func(c *format.Checkpoint) { c.Node = "x" }) }, 0, 0},
		"no checkpoint of another segment": {func(j *journal) { j.checkpoint(func(c *format.Checkpoint) { c.Segment = Name(2) }) }, 0, 0},
		"no checkpoint of a number before": {func(j *journal) { j.checkpoint(func(c *format.Checkpoint) { c.Number-- }) }, 0, 0},
		"no checkpoint of a later number":  {func(j *journal) { j.checkpoint(func(c *format.Checkpoint) { c.Number++ }) }, 0, 0},
		"no checkpoint behind another one": {func(j *journal) { j.checkpoint(func(c *format.Checkpoint) { c.Previous = "cd" }) }, 0, 0},
		"no checkpoint of a later sequence": {func(j *journal) {
			j.record(acme, nil)
			j.checkpoint(func(c *format.Checkpoint) { c.Chains[0].Sequence++ })
		}, 1, 1},
		"no checkpoint of another hash": {func(j *journal) {
			j.record(acme, nil)
			j.checkpoint(func(c *format.Checkpoint) { c.Chains[0].Hash = "cd" })
		}, 1, 1},
		"no checkpoint of a chain that is gone": {func(j *journal) { j.record(acme, nil); j.checkpoint(nil); j.lines = slices.Delete(j.lines, 1, 2) }, 0, 0},
		"no second checkpoint of a number": {func(j *journal) {
			j.checkpoint(nil)
			j.number--
			j.checkpoint(nil)
		}, 1, 1},
	} {
		j := newJournal(1)
		c.write(j)
		for keys, want := range map[*Keys]int{{MACs: key("gateway"), Signatures: key("gateway")}: c.taken, nil: c.without} {
			for inFile := 1; inFile <= want+1; inFile++ {
				all, err := ScanFrom(bytes.NewReader(j.text(0, inFile)), node, Name(1), keys)
				if err != nil {
					t.Fatal(err)
				}
				if got := all.Follow(j.text(inFile, len(j.lines))); string(got) != string(j.text(inFile, want+1)) {
					t.Errorf("%s: %d lines in the file, %d bytes behind them, keys: %v", name, inFile, len(got), keys != nil)
				}
			}
		}
	}
}

// TestFollowNoHeader checks that a file without its first line is not continued by a checkpoint that follows another.
func TestFollowNoHeader(t *testing.T) {
	j := newJournal(1)
	j.record(acme, nil)
	j.checkpoint(nil)
	all, err := ScanFrom(bytes.NewReader(j.text(1, 2)), node, Name(1), nil)
	if err != nil || all.Records != 1 || all.Header != nil {
		t.Fatalf("%+v, %v", all, err)
	}
	if len(all.Follow(j.text(2, 3))) != 0 {
		t.Errorf("the fifth checkpoint is taken for the first")
	}
	first := newJournal(1)
	first.number, first.hash = 0, ""
	first.checkpoint(nil)
	if all, err = ScanFrom(bytes.NewReader(nil), node, Name(1), nil); err != nil || len(all.Follow(first.text(1, 2))) == 0 {
		t.Errorf("the first checkpoint of a node is not taken: %v", err)
	}
}

// TestOpen checks that a segment is read with the lines that only the ring has, and with no others.
func TestOpen(t *testing.T) {
	j := newJournal(3)
	j.record(acme, nil)
	j.record(other, nil)
	j.checkpoint(nil)
	read := func(dir string, number int) (text string, size int64) {
		t.Helper()
		s, err := Open(dir, number)
		if err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(s)
		if err != nil {
			t.Fatal(err)
		}
		if size, err = s.Size(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("closed twice: %v", err)
		}
		return string(all), size
	}
	for inFile := range len(j.lines) + 1 {
		dir := j.write(t, inFile)
		want := j.text(0, len(j.lines))
		if inFile == 0 {
			want = nil // no segment begins in a ring
		}
		if text, size := read(dir, 3); text != string(want) || size != int64(len(want)) {
			t.Errorf("%d lines in the file: %d of %d bytes are read, its size %d", inFile, len(text), len(want), size)
		}
		// The file may end within a line, and another segment may have the ring.
		const part = "part of a line"
		for _, number := range []int{3, 4} {
			if err := os.WriteFile(Path(dir, number), append(j.text(0, inFile), part...), 0o600); err != nil {
				t.Fatal(err)
			}
			want := j.text(0, len(j.lines))
			if number == 4 || inFile == 0 || inFile == len(j.lines) {
				want = append(j.text(0, inFile), part...)
			}
			if text, size := read(dir, number); text != string(want) || size != int64(len(want)) {
				t.Errorf("segment %d, %d lines and a part in the file: %d of %d bytes are read, its size %d", number, inFile, len(text), len(want), size)
			}
		}
	}
	if _, err := Open(j.write(t, 1), 5); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a segment that is not there: %v", err)
	}
}
