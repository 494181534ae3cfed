package verify

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// shelf is a log of three segments of node A. The first one is in the store alone. The second one has ended and is shipped,
// with its file still there. The third one grows, and the store has all but its last record.
type shelf struct {
	*book
	root, dir string
	ended     *page // lines: header, acme 1, acme 2, other 1, checkpoint 3, acme 3, checkpoint 4
	growing   *page // lines: header, acme 1, acme 2, other 1, checkpoint 5, acme 3
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	s := &shelf{book: new(book), root: t.TempDir()}
	s.dir = filepath.Join(s.root, nodeA)
	gone := s.begin(1, format.SegmentFormat)
	gone.write(acme, start, start)
	gone.sign(nil)
	gone.sign(final)
	gone.ship()
	for _, p := range []**page{&s.ended, &s.growing} {
		*p = s.begin(len(s.checkpoints)/2+1, format.SegmentFormat)
		(*p).write(acme, start, start.Add(time.Second))
		(*p).write(other, start)
		(*p).sign(nil)
		(*p).ship()
		(*p).write(acme, start.Add(time.Minute))
		if p == &s.ended {
			(*p).sign(final)
			(*p).ship()
		}
	}
	return s
}

func (s *shelf) verify(t *testing.T, all bool) Report {
	t.Helper()
	report, err := Log(t.Context(), Journals{Dir: s.root, All: all}, s.book, Keys{Signatures: gateway, MACs: gateway})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// line changes a record in a line of a page.
func (p *page) line(t *testing.T, i int, change func(r *format.Record)) {
	t.Helper()
	l, err := new(format.Parser).Parse(bytes.TrimSuffix(p.lines[i], []byte("\n")))
	if err != nil {
		t.Fatal(err)
	}
	r := l.Record
	change(&r)
	mac := r.MAC[:]
	if r.MAC == (storage.AuditMAC{}) {
		mac = nil
	}
	p.lines[i] = append(append(format.AppendHead(nil, string(r.Organization), r.Sequence, &r.Hash, mac, len(r.Text)), r.Text...), '\n')
}

// head changes the first line of a page.
func (p *page) head(change func(h *format.Header)) {
	change(&p.header)
	p.lines[0] = append(format.Marshal(p.header), '\n')
}

// head returns what a checkpoint says of an organization's chain.
func head(c *format.Checkpoint, organization string) *format.Head {
	return &c.Chains[slices.IndexFunc(c.Chains, func(h format.Head) bool { return h.Organization == organization })]
}

// forget removes the ends of the chains of a segment.
func (b *book) forget(segment string) {
	maps.DeleteFunc(b.ends, func(name, _ storage.AuditChain) bool { return name.Segment == segment })
}

// TestTamperedJournal checks the findings and notes for changes in the files of a journal.
func TestTamperedJournal(t *testing.T) {
	const (
		second = "node " + nodeA + ", segment 00000002"
		third  = "node " + nodeA + ", segment 00000003"
		of     = ", organization "
	)
	torn := third + ": the last line is unfinished (4 bytes): it is being written, or the process was killed; the next start cuts it away"
	for name, c := range map[string]struct {
		tamper   func(t *testing.T, s *shelf)
		findings []string
		notes    []string
	}{
		"nothing":                      {func(*testing.T, *shelf) {}, nil, nil},
		"an unfinished line":           {func(_ *testing.T, s *shelf) { s.growing.lines = append(s.growing.lines, []byte("torn")) }, nil, []string{torn}},
		"an unfinished line and zeros": {func(_ *testing.T, s *shelf) { s.growing.lines = append(s.growing.lines, []byte("torn\x00\x00")) }, nil, []string{torn}},
		"zeros behind the last line":   {func(_ *testing.T, s *shelf) { s.growing.lines = append(s.growing.lines, []byte("\x00\x00")) }, nil, nil},
		"bytes behind the final one":   {func(_ *testing.T, s *shelf) { s.ended.lines = append(s.ended.lines, []byte("torn")) }, []string{second + ", line 7: bytes follow the final checkpoint"}, nil},
		"a line that is none":          {func(_ *testing.T, s *shelf) { s.growing.lines = append(s.growing.lines, []byte("none\n")) }, []string{third + ", line 7: is not what was written: malformed line"}, nil},
		"a file that was set aside":    {func(t *testing.T, s *shelf) { aside(t, s.dir) }, []string{"node " + nodeA + ": the file 00000009.ndjson.damaged was set aside because lines in it are none, or the store has something else in its place or cannot keep it"}, nil},
		"the first line of another":    {func(_ *testing.T, s *shelf) { s.growing.lines[0] = s.ended.lines[0] }, []string{third + ", line 1: is the first line of segment 00000002 of node " + nodeA, third + ": its file has no beginning, and the store has something of it: it was cut off"}, nil},
		"the first line of another node": {func(_ *testing.T, s *shelf) {
			s.growing.lines[0] = bytes.Replace(s.growing.lines[0], []byte(nodeA), []byte(nodeB), 1)
		}, []string{third + ", line 1: is the first line of segment 00000003 of node " + nodeB, third + ": its file has no beginning, and the store has something of it: it was cut off"}, nil},
		"the first line once more":         {func(_ *testing.T, s *shelf) { s.growing.lines = append(s.growing.lines, s.growing.lines[0]) }, []string{third + ", line 7: is the first line of segment 00000003 of node " + nodeA}, nil},
		"the first line behind the second": {func(_ *testing.T, s *shelf) { l := s.growing.lines; l[0], l[1] = l[1], l[0] }, []string{third + ", line 1: is not the first line of a segment", third + ", line 2: is the first line of segment 00000003 of node " + nodeA, third + ": its file has no beginning, and the store has something of it: it was cut off"}, nil},
		"a record's text": {func(t *testing.T, s *shelf) {
			s.growing.line(t, 5, func(r *format.Record) { r.Text = bytes.Replace(r.Text, []byte("call"), []byte("cell"), 1) })
		}, []string{third + ", line 6" + of + acme + ", record 3: the record or its hash was changed"}, nil},
		"a record's hash": {func(t *testing.T, s *shelf) { s.growing.line(t, 5, func(r *format.Record) { r.Hash[0] ^= 1 }) }, []string{third + ", line 6" + of + acme + ", record 3: the record or its hash was changed"}, nil},
		"a record's MAC":  {func(t *testing.T, s *shelf) { s.growing.line(t, 5, func(r *format.Record) { r.MAC[0] ^= 1 }) }, []string{third + ", line 6" + of + acme + ", record 3: " + foreignMAC}, nil},
		"a record's MAC away": {func(t *testing.T, s *shelf) {
			s.growing.line(t, 5, func(r *format.Record) { r.MAC = storage.AuditMAC{} })
		}, []string{third + ", line 6" + of + acme + ", record 3: " + missingMAC}, nil},
		"the first record gone": {func(_ *testing.T, s *shelf) { s.growing.lines = slices.Delete(s.growing.lines, 1, 2) }, []string{third + ", line 2" + of + acme + ", record 2: follows record 0: records are gone or in another order"}, nil},
		"the first record gone, and the next one's MAC": {func(t *testing.T, s *shelf) {
			s.growing.line(t, 2, func(r *format.Record) { r.MAC = storage.AuditMAC{} })
			s.growing.lines = slices.Delete(s.growing.lines, 1, 2)
		}, []string{third + ", line 2" + of + acme + ", record 2: follows record 0: records are gone or in another order"}, nil},
		"a record gone": {func(_ *testing.T, s *shelf) { s.growing.lines = slices.Delete(s.growing.lines, 2, 3) }, []string{
			third + ", line 4" + of + acme + ", record 2: checkpoint 5 was signed over 2 records; 1 are before it",
			third + ", line 5" + of + acme + ", record 3: follows record 1: records are gone or in another order",
		}, nil},
		"two records swapped": {func(_ *testing.T, s *shelf) { l := s.growing.lines; l[1], l[2] = l[2], l[1] }, []string{
			third + ", line 2" + of + acme + ", record 2: follows record 0: records are gone or in another order",
			third + ", line 3" + of + acme + ", record 1: follows record 2: records are gone or in another order",
		}, nil},
		"a record twice": {func(_ *testing.T, s *shelf) { s.growing.lines = append(s.growing.lines, s.growing.lines[5]) }, []string{third + ", line 7" + of + acme + ", record 3: follows record 3: records are gone or in another order"}, nil},
		"a record behind the final checkpoint": {func(_ *testing.T, s *shelf) { s.ended.write(acme, start) }, []string{
			second + ", line 8: follows the final checkpoint", second + of + acme + ", record 4: was added after the segment had ended",
		}, nil},
		"another record in the store": {func(_ *testing.T, s *shelf) {
			i := s.chunk(acme, "00000003", 1)
			s.chunks = slices.Delete(s.chunks, i, i+1)
			overlap(s.book, nodeA, "00000003", gateway, 1, 2, start)
		}, []string{
			third + of + acme + ", record 2: is another one in the journal than in the store", third + of + acme + ", record 2: is not the record that checkpoint 5 was signed over",
		}, nil},

		"a checkpoint that the store has, gone": {func(_ *testing.T, s *shelf) { s.growing.lines = slices.Delete(s.growing.lines, 4, 5) }, []string{third + ": checkpoint 5, which the store has, is gone from its file"}, nil},
		"the first checkpoint gone": {func(_ *testing.T, s *shelf) {
			s.growing.sign(nil)
			s.growing.lines = slices.Delete(s.growing.lines, 4, 5)
		}, []string{third + ", line 6: checkpoint 6 follows checkpoint 4, which the segment follows"}, nil},
		"a checkpoint gone": {func(_ *testing.T, s *shelf) {
			s.growing.sign(nil)
			s.growing.sign(nil)
			s.growing.lines = slices.Delete(s.growing.lines, 6, 7)
		}, []string{third + ", line 7: checkpoint 7 follows checkpoint 5", third + ": checkpoints 6 to 6 are gone"}, nil},
		"two checkpoints swapped": {func(_ *testing.T, s *shelf) {
			s.growing.sign(nil)
			s.growing.sign(nil)
			l := s.growing.lines
			l[6], l[7] = l[7], l[6]
		}, []string{third + ", line 7: checkpoint 7 follows checkpoint 5", third + ", line 8: checkpoint 6 follows checkpoint 7"}, nil},
		"a checkpoint that the store lacks, before one that it has": {func(_ *testing.T, s *shelf) {
			s.growing.sign(nil)
			s.growing.sign(nil)
			s.growing.unshipped = s.growing.unshipped[1:]
			s.growing.ship()
		}, []string{third + ": the store lacks checkpoints 6 to 6"}, nil},
		"checkpoints that the store does not have yet": {func(_ *testing.T, s *shelf) {
			s.growing.sign(nil)
			s.growing.sign(final)
		}, nil, nil},
		"another checkpoint in the store": {func(t *testing.T, s *shelf) {
			s.checkpoints[s.numbered(5)] = s.signAgain(t, 5, func(c *format.Checkpoint) { c.Time = c.Time.Add(time.Second) })
		}, []string{third + ": there are two different checkpoints 5: the journal or the store was rolled back"}, nil},
		"a checkpoint that somebody else signed": {func(_ *testing.T, s *shelf) {
			c := s.signed(format.Checkpoint{Format: format.CheckpointFormat, Node: nodeA, Segment: "00000003", Number: 6, Previous: s.last[nodeA].Previous, Chains: []format.Head{}}, nil)
			c.Signature[0] ^= 1
			s.growing.lines = append(s.growing.lines, format.AppendCheckpoint(nil, &c))
		}, []string{third + ", line 7: checkpoint 6 is not signed by a key of this gateway"}, nil},
		"a checkpoint of another segment": {func(_ *testing.T, s *shelf) { s.growing.lines = append(s.growing.lines, s.ended.lines[4]) }, []string{third + ", line 7: is a checkpoint of another segment"}, nil},
		"a checkpoint of another node": {func(_ *testing.T, s *shelf) {
			c := s.signed(format.Checkpoint{Format: format.CheckpointFormat, Node: nodeB, Segment: "00000003", Number: 6, Chains: []format.Head{}}, nil)
			s.growing.lines = append(s.growing.lines, format.AppendCheckpoint(nil, &c))
		}, []string{third + ", line 7: is a checkpoint of another segment"}, nil},
		"a checkpoint over another first line": {func(_ *testing.T, s *shelf) {
			s.growing.sign(func(c *format.Checkpoint) { c.Header = "00" })
		}, []string{third + ", line 7: checkpoint 6 was signed over another first line of the segment"}, nil},
		"a checkpoint over no first line": {func(_ *testing.T, s *shelf) { s.growing.sign(func(c *format.Checkpoint) { c.Header = "" }) }, nil, nil},
		"a checkpoint over more records": {func(_ *testing.T, s *shelf) {
			s.growing.sign(func(c *format.Checkpoint) { head(c, acme).Sequence++ })
		}, []string{
			third + ", line 7" + of + acme + ", record 4: checkpoint 6 was signed over 4 records; 3 are before it",
			third + of + acme + ", record 4: records 4 to 4 are gone: checkpoint 6 was signed over them",
		}, nil},
		"a checkpoint over other records": {func(_ *testing.T, s *shelf) {
			s.growing.sign(func(c *format.Checkpoint) { head(c, acme).Hash = strings.Repeat("0", 64) })
		}, []string{
			third + ", line 7" + of + acme + ", record 3: checkpoint 6 was signed over 3 records; 3 are before it",
			third + of + acme + ", record 3: is not the record that checkpoint 6 was signed over",
		}, nil},
		"a checkpoint over records of an organization that has none": {func(_ *testing.T, s *shelf) {
			s.growing.sign(func(c *format.Checkpoint) { head(c, acme).Organization = "third" })
		}, []string{
			third + ", line 7" + of + "third, record 1: checkpoint 6 was signed over 3 records; 0 are before it",
			third + of + "third, record 1: records 1 to 3 are gone: checkpoint 6 was signed over them",
		}, nil},
		"a checkpoint over the store's own records": {func(_ *testing.T, s *shelf) {
			s.own(acme, nodeA, start, gateway)
			end := s.end(acme, nodeA, storage.AuditStoreSegment)
			s.growing.sign(func(c *format.Checkpoint) { c.Chains = append(c.Chains, format.HeadOf(&end)) })
		}, nil, nil},

		"the first line's checkpoint": {func(_ *testing.T, s *shelf) {
			s.growing.head(func(h *format.Header) { h.Previous = strings.Repeat("0", 64) })
		}, []string{
			third + ", line 1: checkpoint 4, which the segment follows, is gone: checkpoints were rolled back", third + ", line 5: checkpoint 5 was signed over another first line of the segment",
		}, nil},
		"the first line's checkpoint, another one": {func(_ *testing.T, s *shelf) {
			s.growing.lines = s.growing.lines[:4]
			s.growing.unshipped, s.checkpoints = nil, slices.Delete(s.checkpoints, 4, 5)
			s.growing.head(func(h *format.Header) { h.Checkpoint = 9 })
		}, []string{third + ", line 1: checkpoint 9, which the segment follows, is gone: checkpoints were rolled back"}, nil},
		"the first line's checkpoint gone": {func(_ *testing.T, s *shelf) {
			s.growing.lines = s.growing.lines[:4]
			s.checkpoints = slices.Delete(s.checkpoints, 4, 5)
			s.growing.head(func(h *format.Header) { h.Checkpoint, h.Previous = 0, "" })
		}, nil, nil}, // the next checkpoint is signed over the first line
		"the file of the ended segment": {func(_ *testing.T, s *shelf) { s.ended = nil }, nil, nil},
		"the final checkpoint, and the store's": {func(_ *testing.T, s *shelf) {
			s.ended.lines = s.ended.lines[:6]
			s.checkpoints = slices.Delete(s.checkpoints, 3, 4)
		}, []string{
			second + ": the segment ends without its final checkpoint", third + ", line 1: checkpoint 4, which the segment follows, is gone: checkpoints were rolled back",
			third + ": checkpoints 4 to 4 are gone", third + ": the store lacks checkpoints 4 to 4",
		}, nil},
		"the file, and the final checkpoint in the store": {func(_ *testing.T, s *shelf) {
			s.ended = nil
			s.checkpoints = slices.Delete(s.checkpoints, 3, 4)
		}, []string{
			second + ": the segment and its final checkpoint are gone", third + ", line 1: checkpoint 4, which the segment follows, is gone: checkpoints were rolled back",
			third + ": checkpoints 4 to 4 are gone", third + ": the store lacks checkpoints 4 to 4",
		}, nil},
		"the last record that the store has": {func(_ *testing.T, s *shelf) { s.growing.lines = slices.Delete(s.growing.lines, 3, 4) }, []string{
			third + ", line 4" + of + other + ", record 1: checkpoint 5 was signed over 1 records; 0 are before it", third + of + other + ", record 1: records 1 to 1, which the store has, are gone from its file",
		}, nil},
		"the end that the store has": {func(_ *testing.T, s *shelf) {
			s.growing.ship()
			s.growing.lines = s.growing.lines[:2]
		}, []string{
			third + ": checkpoint 5, which the store has, is gone from its file",
			third + of + acme + ", record 2: records 2 to 3, which the store has, are gone from its file", third + of + other + ", record 1: records 1 to 1, which the store has, are gone from its file",
		}, nil},
		"the growing file":        {func(_ *testing.T, s *shelf) { s.growing = nil }, []string{third + ": the segment and its final checkpoint are gone"}, nil},
		"all of the growing file": {func(_ *testing.T, s *shelf) { s.growing.lines = nil }, []string{third + ": its file has no beginning, and the store has something of it: it was cut off"}, nil},
		"all of the growing file, of which the store has records": {func(_ *testing.T, s *shelf) {
			s.growing.lines, s.checkpoints = nil, s.checkpoints[:4]
		}, []string{third + ": its file has no beginning, and the store has something of it: it was cut off"}, nil},
		"all of the growing file, of which the store has a checkpoint": {func(_ *testing.T, s *shelf) {
			s.growing.lines, s.chunks = nil, s.chunks[:4]
			s.forget("00000003")
		}, []string{
			third + of + acme + ", record 1: records 1 to 2 are gone: checkpoint 5 was signed over them", third + of + other + ", record 1: records 1 to 1 are gone: checkpoint 5 was signed over them",
			third + ": its file has no beginning, and the store has something of it: it was cut off",
		}, nil},
		"all of the growing file, of which the store has nothing": {func(_ *testing.T, s *shelf) {
			s.growing.lines, s.chunks, s.checkpoints = nil, s.chunks[:4], s.checkpoints[:4]
			s.forget("00000003")
		}, nil, nil},
		"the beginning of the growing file, of which the store has nothing": {func(_ *testing.T, s *shelf) {
			s.growing.lines, s.chunks, s.checkpoints = s.growing.lines[1:], s.chunks[:4], s.checkpoints[:4]
			s.forget("00000003")
		}, []string{third + ", line 1: is not the first line of a segment"}, nil},
		"a record of a segment that no journal can have": {func(_ *testing.T, s *shelf) { s.book.ship(acme, nodeA, "3", gateway, start) }, []string{
			"node " + nodeA + ", segment 3" + of + acme + ", record 1: is in a segment that no journal can have",
		}, nil},
		"a record of a segment that is to come": {func(_ *testing.T, s *shelf) { s.book.ship(acme, nodeA, "00000005", gateway, start) }, []string{
			"node " + nodeA + ", segment 00000004: the segment and its final checkpoint are gone", "node " + nodeA + ", segment 00000005: the segment and its final checkpoint are gone",
		}, nil},
	} {
		s := newShelf(t)
		c.tamper(t, s)
		for _, p := range []*page{s.ended, s.growing} {
			if p != nil {
				p.put(t, s.root)
			}
		}
		report := s.verify(t, true)
		slices.Sort(c.findings)
		if diff := cmp.Diff(c.findings, texts(report)); diff != "" {
			t.Errorf("%s: findings: %s", name, diff)
		}
		if diff := cmp.Diff(c.notes, report.Notes); diff != "" {
			t.Errorf("%s: notes: %s", name, diff)
		}
	}
}

// aside makes a file that was set aside in a journal.
func aside(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(segments.Path(dir, 9)+segments.DamagedSuffix, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}
