package query

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

const (
	other = "0190aaaa-0000-7000-8000-000000000002"
	nodeA = "00000000000000aa"
	nodeB = "00000000000000bb"
)

var start = time.Unix(1_800_000_000, 0).UTC()

// shelf is a directory of journals beside a store. The ids of records tell them apart.
type shelf struct {
	*memory
	root   string
	chains map[storage.AuditChain]storage.AuditChain // by name, with their ends
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	return &shelf{memory: new(memory), root: t.TempDir(), chains: make(map[storage.AuditChain]storage.AuditChain)}
}

// next adds a record to a chain.
func (s *shelf) next(organization, node, segment, id string, at time.Time) (c storage.AuditChain, hash [32]byte, text []byte) {
	name := format.ChainOf(organization, node, segment)
	c, ok := s.chains[name]
	if !ok {
		c = name
	}
	text = format.AppendEntry(nil, &storage.AuditEntry{ID: id, At: at, Kind: storage.AuditCall, Event: "decision"})
	hash, _ = format.Next(&c, text, nil)
	s.chains[name] = c
	return c, hash, text
}

// write writes records into the file of a segment, one a second.
func (s *shelf) write(t *testing.T, organization, node string, number int, from time.Time, ids ...string) {
	t.Helper()
	dir := filepath.Join(s.root, node)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := segments.Path(dir, number)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		text, err = append(format.Marshal(format.Header{Format: format.SegmentFormat, Node: node, Segment: segments.Name(number), Time: start}), '\n'), nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		c, hash, entry := s.next(organization, node, segments.Name(number), id, from.Add(time.Duration(i)*time.Second))
		text = append(append(format.AppendHead(text, organization, c.Sequence, &hash, nil, len(entry)), entry...), '\n')
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// ship puts the first records of a segment into the store, one a second.
func (s *shelf) ship(organization, node string, number int, from time.Time, ids ...string) {
	shipped := shelf{chains: make(map[storage.AuditChain]storage.AuditChain)}
	body := format.AppendChunkHead(nil, new([32]byte))
	var last storage.AuditChain
	for i, id := range ids {
		c, hash, text := shipped.next(organization, node, segments.Name(number), id, from.Add(time.Duration(i)*time.Second))
		body, last = format.AppendChunkRecord(body, &hash, text), c
	}
	format.SetLast(body, &last.Hash)
	chunk := storage.AuditChunk{OrganizationID: organization, Node: node, Segment: last.Segment, First: 1, Last: last.Sequence, Data: format.AppendChunk(nil, body)}
	chunk.From, chunk.To = format.ChunkSpan(from.UnixNano(), from.Add(time.Duration(len(ids)-1)*time.Second).UnixNano())
	s.chunks = append(s.chunks, chunk)
	s.ends = append(s.ends, storage.AuditChain{OrganizationID: organization, Node: node, Segment: last.Segment, Sequence: last.Sequence})
}

// read returns the ids of the records of an organization.
func (s *shelf) read(t *testing.T, organization string, from, to time.Time) (ids []string, err error) {
	t.Helper()
	err = Everything(t.Context(), s.root, s, organization, from, to, func(r *storage.AuditRecord) error {
		e, err := format.EntryOf(r)
		ids = append(ids, e.ID)
		return err
	})
	return ids, err
}

// TestEverything checks which records of journals and store are read, in which order.
func TestEverything(t *testing.T) {
	s := newShelf(t)
	s.write(t, acme, nodeA, 1, start, "a1", "a2", "a3")
	s.ship(acme, nodeA, 1, start, "a1", "a2")
	s.write(t, other, nodeA, 1, start, "o1", "o2")
	s.write(t, acme, nodeA, 2, start.Add(time.Minute), "a4")
	s.write(t, acme, nodeB, 1, start.Add(2*time.Minute), "b1")
	s.ship(other, nodeB, 1, start.Add(time.Hour), "shipped")
	s.ship(acme, nodeB, 3, start.Add(time.Hour), "b3")
	end := start.Add(2 * time.Hour)
	for name, c := range map[string]struct {
		organization string
		from, to     time.Time
		want         string
	}{
		"of all":                          {"*", start, end, "a1 a2 b3 shipped a3 o1 o2 a4 b1"},
		"of one":                          {acme, start, end, "a1 a2 b3 a3 a4 b1"},
		"of another one":                  {other, start, end, "shipped o1 o2"},
		"of one that has none":            {"third", start, end, ""},
		"from a time on":                  {acme, start.Add(2 * time.Second), end, "b3 a3 a4 b1"},
		"before a time":                   {acme, start, start.Add(2 * time.Second), "a1 a2"},
		"from one time to another":        {"*", start.Add(time.Second), start.Add(time.Minute), "a2 a3 o2"},
		"from a time that is none":        {acme, start.Add(3 * time.Second), start.Add(time.Minute), ""},
		"after the last one":              {acme, start.Add(2*time.Minute + format.Precision), end, "b3"},
		"to the moment of the last one":   {acme, start, start.Add(2 * time.Minute), "a1 a2 a3 a4"},
		"to the moment after the last":    {acme, start, start.Add(2*time.Minute + format.Precision), "a1 a2 a3 a4 b1"},
		"from the moment of the last one": {acme, start.Add(2 * time.Minute), end, "b3 b1"},
		"from within a microsecond":       {"*", start.Add(format.Precision - 1), start.Add(time.Second), "a1 o1"},
		"to within a microsecond":         {"*", start, start.Add(time.Second + format.Precision - 1), "a1 o1"},
	} {
		if ids, err := s.read(t, c.organization, c.from, c.to); err != nil || strings.Join(ids, " ") != c.want {
			t.Errorf("%s: %q, want %q, %v", name, ids, c.want, err)
		}
	}
}

// TestEverythingOfLines checks that lines which are no records are passed over, and that each record has the hash of the
// record before it.
func TestEverythingOfLines(t *testing.T) {
	s := newShelf(t)
	s.write(t, acme, nodeA, 1, start, "a1")
	s.write(t, "", nodeA, 1, start, "g1")
	path := segments.Path(filepath.Join(s.root, nodeA), 1)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := format.Checkpoint{Format: format.CheckpointFormat, Node: nodeA, Segment: "00000001", Number: 1, Time: start, Chains: []format.Head{}}
	signed := storage.AuditCheckpoint{Data: format.Marshal(c), Signature: []byte("x")}
	first, _, _ := strings.Cut(string(text), "\n")
	for i, line := range []string{string(format.AppendCheckpoint(nil, &signed)), "none\n", first + "\n", string(format.AppendHead(nil, "", 9, new([32]byte), nil, 100)) + "cut off\n"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(text, line...), 0o600); err != nil {
			t.Fatal(err)
		}
		s.write(t, "", nodeA, 1, start, fmt.Sprint("g", i+2))
	}
	s.write(t, other, nodeA, 1, start, "o1", "o2")
	s.write(t, acme, nodeA, 1, start, "a2")
	type named struct {
		name           storage.AuditChain
		sequence       int64
		previous, hash [32]byte
	}
	var got []named
	if err := Everything(t.Context(), s.root, s, "*", start, start.Add(time.Hour), func(r *storage.AuditRecord) error {
		got = append(got, named{format.ChainOf(r.OrganizationID, r.Node, r.Segment), r.Sequence, r.Previous, r.Hash})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	var want []named
	again := newShelf(t)
	for _, r := range [...]struct{ organization, id string }{{acme, "a1"}, {"", "g1"}, {"", "g2"}, {"", "g3"}, {"", "g4"}, {"", "g5"}, {other, "o1"}, {other, "o2"}, {acme, "a2"}} {
		name := format.ChainOf(r.organization, nodeA, "00000001")
		previous := again.chains[name].Hash
		at := start
		if r.id == "o2" {
			at = at.Add(time.Second)
		}
		c, hash, _ := again.next(r.organization, nodeA, "00000001", r.id, at)
		want = append(want, named{name, c.Sequence, previous, hash})
	}
	if diff := gocmp.Diff(fmt.Sprint(want), fmt.Sprint(got)); diff != "" {
		t.Error(diff)
	}
}

// TestEverythingAsItWas checks that records which are written to a journal during the reading are not read: the reading would
// have no end.
func TestEverythingAsItWas(t *testing.T) {
	s := newShelf(t)
	s.write(t, acme, nodeA, 1, start, "a1")
	s.before = func(call string) error {
		if call == "chains" {
			s.write(t, acme, nodeA, 1, start, "a2")
		}
		return nil
	}
	if ids, err := s.read(t, acme, start, start.Add(time.Hour)); err != nil || !slices.Equal(ids, []string{"a1"}) {
		t.Errorf("%q, %v", ids, err)
	}
}

// TestEverythingShippedMeanwhile checks that a record which reaches the store during the reading is read once, and one that is
// then behind it as well.
func TestEverythingShippedMeanwhile(t *testing.T) {
	s := newShelf(t)
	s.write(t, acme, nodeA, 1, start, "a1", "a2", "a3")
	s.before = func(call string) error {
		if call == "chunks" && len(s.chunks) == 0 {
			s.ship(acme, nodeA, 1, start, "a1", "a2")
		}
		return nil
	}
	s.ends = []storage.AuditChain{format.ChainOf(acme, nodeB, "00000001")} // the store has something of the organization
	if ids, err := s.read(t, acme, start, start.Add(time.Hour)); err != nil || !slices.Equal(ids, []string{"a1", "a2", "a3"}) {
		t.Errorf("%q, %v", ids, err)
	}
}

// TestEverythingFails checks that a reading ends with the first error, of the store, of a journal or of the reader.
func TestEverythingFails(t *testing.T) {
	whole := func(t *testing.T) *shelf {
		s := newShelf(t)
		s.write(t, acme, nodeA, 1, start, "a1", "a2")
		s.ship(acme, nodeA, 1, start, "a1")
		return s
	}
	for _, call := range []string{"chains", "chunks", "records"} {
		s := whole(t)
		s.before = func(this string) error {
			if this == call {
				return errDisk
			}
			return nil
		}
		if _, err := s.read(t, acme, start, start.Add(time.Hour)); !errors.Is(err, errDisk) {
			t.Errorf("%s: %v", call, err)
		}
	}
	for refused := range 2 {
		s, taken := whole(t), 0
		err := Everything(t.Context(), s.root, s, acme, start, start.Add(time.Hour), func(*storage.AuditRecord) error {
			if taken++; taken > refused {
				return errDisk
			}
			return nil
		})
		if !errors.Is(err, errDisk) || taken != refused+1 {
			t.Errorf("%d records are taken, and %v", taken, err)
		}
	}
	for name, c := range map[string]struct {
		replace func(path string) error
		want    string // the beginning of the error; "": there is none
	}{
		"a directory": {func(path string) error { return os.Mkdir(path, 0o700) }, "reading journals: "},
		"a loop":      {func(path string) error { return os.Symlink(filepath.Base(path), path) }, "reading journals: "},
		"nothing":     {func(path string) error { return os.Symlink(path+"-", path) }, ""}, // it is listed, and cannot be opened
	} {
		s := whole(t)
		if err := c.replace(segments.Path(filepath.Join(s.root, nodeA), 2)); err != nil {
			t.Fatal(err)
		}
		_, err := s.read(t, acme, start, start.Add(time.Hour))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := whole(t)
	s.root = segments.Path(filepath.Join(s.root, nodeA), 1) // a file
	if _, err := s.read(t, acme, start, start.Add(time.Hour)); err == nil || !strings.HasPrefix(err.Error(), "reading journals: ") {
		t.Error(err)
	}
	s.root += "-"
	if ids, err := s.read(t, acme, start, start.Add(time.Hour)); err != nil || !slices.Equal(ids, []string{"a1"}) {
		t.Errorf("without journals: %q, %v", ids, err)
	}
}
