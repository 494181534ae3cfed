package verify

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/segments"
)

// TestJournalCounts checks what a report says of an intact journal and its store: each record counts once.
func TestJournalCounts(t *testing.T) {
	s := newShelf(t)
	s.ended.put(t, s.root)
	s.growing.put(t, s.root)
	want := Report{Records: 10, Chunks: 6, Segments: 3, Checkpoints: 5, Standing: Standing{Checked: true, Sealed: 10, Since: start}}
	want.Anchors = []Anchor{{Node: nodeA, Number: 5, Time: start, Hash: s.last[nodeA].Previous}}
	if diff := cmp.Diff(want, s.verify(t, true)); diff != "" {
		t.Error(diff)
	}
}

// TestFirstSegment checks a journal without a checkpoint and without a store.
func TestFirstSegment(t *testing.T) {
	s := &shelf{book: new(book), root: t.TempDir()}
	p := s.begin(1, format.SegmentFormat)
	p.write(acme, start.Add(1), start)
	p.put(t, s.root)
	want := Report{Records: 2, Segments: 1, Standing: Standing{Checked: true, Sealed: 2, Since: start}}
	if diff := cmp.Diff(want, s.verify(t, true)); diff != "" {
		t.Error(diff)
	}
}

// TestSealedOnce checks that a record behind a gap counts as one with a MAC, and a record that is there twice once.
func TestSealedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		change          func(lines [][]byte) [][]byte
		records, sealed int
	}{
		"a gap":      {func(lines [][]byte) [][]byte { return slices.Delete(lines, 2, 3) }, 2, 2},
		"one twice":  {func(lines [][]byte) [][]byte { return append(lines, lines[3]) }, 4, 3},
		"one, later": {func(lines [][]byte) [][]byte { return append(lines, lines[1]) }, 4, 3},
	} {
		s := &shelf{book: new(book), root: t.TempDir()}
		p := s.begin(1, format.SegmentFormat)
		p.write(acme, start, start, start)
		p.lines = c.change(p.lines)
		p.put(t, s.root)
		if r := s.verify(t, true); len(r.Findings) != 1 || r.Records != c.records || r.Standing.Sealed != int64(c.sealed) {
			t.Errorf("%s: %v, %d records, %d with a MAC", name, texts(r), r.Records, r.Standing.Sealed)
		}
	}
}

// TestMissingJournal checks what is found and noted of a journal that is not here, by its directory.
func TestMissingJournal(t *testing.T) {
	const (
		cutOff    = "node " + nodeA + ", segment 00000003: its file has no beginning, and the store has something of it: it was cut off"
		gone      = "node " + nodeA + ", segment 00000003: the segment and its final checkpoint are gone"
		elsewhere = "node " + nodeA + " keeps its journal elsewhere: what it has not shipped yet is not verified"
		setAside  = "node " + nodeA + ": the file 00000009.ndjson.damaged was set aside because lines in it are none, or the store has something else in its place or cannot keep it"
	)
	half := len(newShelf(t).growing.lines[0]) / 2
	for name, c := range map[string]struct {
		make     func(t *testing.T, s *shelf)
		all      bool // every journal should be here
		findings []string
		notes    []string
	}{
		"no directory":                     {func(*testing.T, *shelf) {}, false, nil, []string{elsewhere}},
		"no directory of all":              {func(*testing.T, *shelf) {}, true, []string{gone}, nil},
		"an empty one":                     {func(t *testing.T, s *shelf) { mkdir(t, s.dir) }, false, []string{gone}, nil},
		"one with a file set aside":        {func(t *testing.T, s *shelf) { aside(t, s.dir) }, false, []string{gone, setAside}, nil},
		"one with the ended segment alone": {func(t *testing.T, s *shelf) { s.ended.put(t, s.root) }, false, []string{gone}, nil},
		"an empty one of another node":     {func(t *testing.T, s *shelf) { mkdir(t, filepath.Join(s.root, nodeB)) }, false, nil, []string{elsewhere}},
		"one that begins meanwhile": {func(t *testing.T, s *shelf) {
			s.before = func(call string) error {
				if call == "chains" {
					s.growing.put(t, s.root)
				}
				return nil
			}
		}, true, nil, []string{"node " + nodeA + ", segment 00000003 was written meanwhile and is not verified"}},
		"one whose file has no line yet": {func(t *testing.T, s *shelf) {
			lines := s.growing.lines
			s.growing.lines = [][]byte{lines[0][:len(lines[0])/2]}
			s.growing.put(t, s.root)
			s.growing.lines = lines
			s.before = func(call string) error {
				if call == "chains" {
					s.growing.put(t, s.root)
				}
				return nil
			}
		}, true, nil, []string{
			"node " + nodeA + ", segment 00000003: the last line is unfinished (" + strconv.Itoa(half) + " bytes): it is being written, or the process was killed; the next start cuts it away",
			"node " + nodeA + ", segment 00000003 was written meanwhile and is not verified",
		}},
		"one whose file has another segment's first line then": {beginsLater(func(s *shelf) []byte { return s.ended.lines[0] }), true, []string{cutOff}, nil},
		"one whose file has another node's first line then": {beginsLater(func(s *shelf) []byte {
			return bytes.ReplaceAll(s.growing.lines[0], []byte(nodeA), []byte(nodeB))
		}), true, []string{cutOff}, nil},
		"one whose file begins with a record then": {beginsLater(func(s *shelf) []byte { return s.growing.lines[1] }), true, []string{cutOff}, nil},
		"one whose file begins with garbage then":  {beginsLater(func(*shelf) []byte { return []byte("garbage\n") }), true, []string{cutOff}, nil},
		"one whose file has no line, and goes": {func(t *testing.T, s *shelf) {
			s.growing.lines = nil
			s.growing.put(t, s.root)
			s.before = func(call string) error {
				if call == "chains" {
					return os.Remove(segments.Path(s.dir, 3))
				}
				return nil
			}
		}, true, []string{gone}, nil},
		"one of which two segments end and are removed meanwhile": {func(t *testing.T, s *shelf) {
			s.growing.put(t, s.root)
			s.before = func(call string) error {
				if call != "chains" {
					return nil
				}
				next := s.growing
				for number := 4; ; number++ {
					next.sign(final)
					next.ship()
					if number == 5 {
						return os.Remove(segments.Path(s.dir, 3))
					}
					next = s.begin(number, format.SegmentFormat)
					next.write(acme, start)
				}
			}
		}, true, nil, []string{"node " + nodeA + ", segment 00000004 was written meanwhile and is not verified"}},
	} {
		s := newShelf(t)
		c.make(t, s)
		report := s.verify(t, c.all)
		slices.Sort(c.findings)
		if diff := cmp.Diff(c.findings, texts(report)) + cmp.Diff(c.notes, report.Notes); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// beginsLater makes a journal whose file is blank when it is read first, and has another first line later.
func beginsLater(line func(*shelf) []byte) func(t *testing.T, s *shelf) {
	return func(t *testing.T, s *shelf) {
		first, lines := line(s), s.growing.lines
		s.growing.lines = nil
		s.growing.put(t, s.root)
		s.growing.lines = append([][]byte{first}, lines[1:]...)
		s.before = func(call string) error {
			if call == "chains" {
				s.growing.put(t, s.root)
			}
			return nil
		}
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestNoJournals checks that without a directory for journals none is read, not even in the working directory.
func TestNoJournals(t *testing.T) {
	s := newShelf(t)
	s.ended.put(t, s.root)
	s.growing.put(t, s.root)
	t.Chdir(s.root)
	report, err := Log(t.Context(), Journals{All: true}, s.book, Keys{Signatures: gateway, MACs: gateway})
	want := []string{"node " + nodeA + ", segment 00000003: the segment and its final checkpoint are gone"}
	if diff := cmp.Diff(want, texts(report)); err != nil || diff != "" || len(report.Notes) > 0 {
		t.Errorf("%s, %q, %v", diff, report.Notes, err)
	}
}

// TestEmptyJournals checks that directories without a segment are no log.
func TestEmptyJournals(t *testing.T) {
	root := t.TempDir()
	mkdir(t, filepath.Join(root, nodeA))
	if _, err := Log(t.Context(), Journals{Dir: root, All: true}, new(book), Keys{Signatures: gateway}); !errors.Is(err, ErrNothing) {
		t.Error(err)
	}
}

// TestDirectoryNames checks that files which were set aside are found in a directory of any name.
func TestDirectoryNames(t *testing.T) {
	s := newShelf(t)
	s.root = filepath.Join(s.root, "[a")
	aside(t, filepath.Join(s.root, nodeA))
	s.ended.put(t, s.root)
	s.growing.put(t, s.root)
	if found := s.verify(t, true).Findings; len(found) != 1 || !strings.Contains(found[0].Problem, "was set aside") {
		t.Error(found)
	}
}

// TestRenamedAside checks that a file which was set aside is found under any name.
func TestRenamedAside(t *testing.T) {
	s := newShelf(t)
	s.ended.put(t, s.root)
	s.growing.put(t, s.root)
	if err := os.WriteFile(filepath.Join(s.dir, "other"+segments.DamagedSuffix), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if found := s.verify(t, true).Findings; len(found) != 1 || !strings.Contains(found[0].Problem, "other"+segments.DamagedSuffix+" was set aside") {
		t.Error(found)
	}
}

// TestForgedNodes checks that the name of a node, which whoever writes the store can choose, neither ends a verification
// nor leads out of the directory of journals.
func TestForgedNodes(t *testing.T) {
	for name, node := range map[string]string{
		"too long for a file": strings.Repeat("a", 300), "with a NUL": "a\x00b", "none": "", "another directory": "../elsewhere",
	} {
		root := t.TempDir()
		mkdir(t, filepath.Join(root, "journals"))
		mkdir(t, filepath.Join(root, "elsewhere"))
		if err := os.WriteFile(segments.Path(filepath.Join(root, "elsewhere"), 1), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, all := range []bool{true, false} {
			b := twoNodes()
			b.ship(acme, node, "00000001", gateway, start)
			report, err := Log(t.Context(), Journals{Dir: filepath.Join(root, "journals"), All: all}, b, Keys{Signatures: gateway, MACs: gateway})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			want := "node " + node + ", segment 00000001: the segment and its final checkpoint are gone"
			if all && !slices.Contains(texts(report), want) || strings.Contains(strings.Join(report.Notes, ""), "written meanwhile") {
				t.Errorf("%s: found %q, noted %q", name, texts(report), report.Notes)
			}
		}
	}
}

// TestUnreadable checks that a verification ends with an error when a file is there and cannot be read, and that a file which
// is removed between two steps is none.
func TestUnreadable(t *testing.T) {
	loop := func(path string) error { return os.Symlink(filepath.Base(path), path) }
	directory := func(path string) error { return os.Mkdir(path, 0o700) }
	nothing := func(path string) error { return os.Symlink(path+"-", path) } // it is listed, and cannot be opened
	for name, c := range map[string]struct {
		replace func(path string) error // nil: the file is written to its end
		later   bool                    // before the file is read again
		want    string                  // the beginning of the error; "": there is none
	}{
		"a directory":        {directory, false, "reading segment 00000003: "},
		"a loop":             {loop, false, "reading segment 00000003: "},
		"nothing":            {nothing, false, ""},
		"a directory, later": {directory, true, "reading segment 00000003 again: "},
		"a loop, later":      {loop, true, "reading segment 00000003 again: "},
		"nothing, later":     {nothing, true, ""},
		"all of it, later":   {nil, true, ""},
	} {
		s := newShelf(t)
		s.ended.put(t, s.root)
		s.growing.ship()
		whole := s.growing.lines
		s.growing.lines = whole[:4] // a part of what the store has
		s.growing.put(t, s.root)
		path := segments.Path(s.dir, 3)
		change := func() error {
			if c.replace == nil {
				s.growing.lines = whole
				s.growing.put(t, s.root)
				return nil
			}
			return errors.Join(os.Remove(path), c.replace(path))
		}
		s.before = func(call string) error {
			if c.later && call == "checkpoints again" {
				return change()
			}
			return nil
		}
		if !c.later {
			s.checkpoints, s.chunks = s.checkpoints[:4], s.chunks[:4] // nothing of the third segment
			s.forget("00000003")
			if err := change(); err != nil {
				t.Fatal(err)
			}
		}
		report, err := Log(t.Context(), Journals{Dir: s.root, All: true}, s.book, Keys{Signatures: gateway, MACs: gateway})
		switch {
		case c.want == "":
			if err != nil || len(report.Findings) > 0 {
				t.Errorf("%s: %v, %v", name, texts(report), err)
			}
		case err == nil || !strings.HasPrefix(err.Error(), c.want):
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnlisted checks that a verification ends with an error when directories are there and cannot be listed.
func TestUnlisted(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Log(t.Context(), Journals{Dir: file}, new(book), Keys{Signatures: gateway}); err == nil || !strings.HasPrefix(err.Error(), "listing journals: ") {
		t.Error(err)
	}
	s := newShelf(t)
	s.ended.put(t, s.root)
	s.growing.put(t, s.root)
	s.before = func(call string) error {
		if call == "chains" {
			return errors.Join(os.RemoveAll(s.dir), os.WriteFile(s.dir, nil, 0o600))
		}
		return nil
	}
	if _, err := Log(t.Context(), Journals{Dir: s.root, All: true}, s.book, Keys{Signatures: gateway}); err == nil || !strings.HasPrefix(err.Error(), "listing segments: ") {
		t.Error(err)
	}
}

// bare writes records as a durward before MACs did, of which the store has the first ones in a chunk.
func (p *page) bare(stored int, times ...time.Time) {
	c := format.ChainOf(acme, nodeA, p.header.Segment)
	for _, at := range times {
		text := entryAt(at)
		hash, _ := format.Next(&c, text, nil)
		p.lines = append(p.lines, fmt.Appendf(nil, `{"o":"%s","n":%d,"h":"%s","e":%s}`+"\n", acme, c.Sequence, base64.RawURLEncoding.EncodeToString(hash[:]), text))
		p.chains[acme] = c
	}
	p.book.ship(acme, nodeA, p.header.Segment, nil, times[:stored]...)
}

// TestBareJournal checks that records without MACs which are in the journal and in the store count once.
func TestBareJournal(t *testing.T) {
	for name, c := range map[string]struct {
		stored   int
		sign     func(c *format.Checkpoint)
		findings []string
		standing Standing
	}{
		"some stored":      {2, unsealed, nil, Standing{Checked: true, Bare: 4}},
		"all stored":       {4, unsealed, nil, Standing{Checked: true, Bare: 4}},
		"with another one": {2, final, []string{"node " + nodeA + ", segment 00000001, organization " + acme + ", record 1: records 1 to 4 have no MAC, and the node's records have: the gateway did not write them, or their MACs were taken away"}, Standing{Checked: true}},
	} {
		s := &shelf{book: new(book), root: t.TempDir()}
		p := s.begin(1, format.BareSegmentFormat)
		p.bare(c.stored, start, start.Add(1), start.Add(2), start.Add(3))
		p.sign(c.sign)
		p.put(t, s.root)
		report := s.verify(t, true)
		if diff := cmp.Diff(c.findings, texts(report)) + cmp.Diff(c.standing, report.Standing); diff != "" || report.Records != 4 {
			t.Errorf("%s: %d records, %s", name, report.Records, diff)
		}
	}
}
