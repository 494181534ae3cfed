package audit

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/internal/audit/verify"
	"github.com/durward-gateway/durward/storage"
)

// TestUnreadableLine checks that the organization of a record does not depend on another line. A line that is unreadable
// or missing moves no record of one organization to another.
func TestUnreadableLine(t *testing.T) {
	for name, damage := range map[string]func(line []byte) []byte{
		"its beginning":    func(line []byte) []byte { line[0] = '#'; return line },
		"its organization": func(line []byte) []byte { line[2] = '"'; return line },
		"behind it":        func(line []byte) []byte { line[2+len(other)] = '#'; return line },
		"all of it":        func([]byte) []byte { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			root, store := t.TempDir(), new(memory)
			j := openJournal(t, testOptions(t, root))
			for _, organization := range []string{acme, other, other, other} {
				e := intent("create_issue")
				e.Session = organization
				if err := j.Append(organization, e); err != nil {
					t.Fatal(err)
				}
			}
			kill(t, j)
			path := segments.Path(j.dir, 1)
			lines := bytes.SplitAfter([]byte(readFile(t, path)), []byte("\n"))
			lines[2] = damage(lines[2])
			if err := os.WriteFile(path, bytes.Join(lines, nil), 0o600); err != nil {
				t.Fatal(err)
			}
			var sequences []int64
			read := func(r *storage.AuditRecord) error {
				if e, err := format.EntryOf(r); err != nil || e.Session != r.OrganizationID {
					t.Errorf("%s has a record of %s, %v", r.OrganizationID, e.Session, err)
				}
				if r.OrganizationID == other {
					sequences = append(sequences, r.Sequence)
				}
				return nil
			}
			begin, end := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
			if err := query.Everything(t.Context(), root, store, "*", begin, end, read); err != nil || !slices.Equal(sequences, []int64{2, 3}) {
				t.Errorf("from the journal: records %v, %v", sequences, err)
			}
			report, err := verify.Log(t.Context(), verify.Journals{Dir: root, All: true}, store, sharedKeys())
			if err != nil || len(report.Findings) == 0 {
				t.Errorf("nothing is found, %v", err)
			}
			for _, f := range report.Findings {
				if strings.Contains(f.String(), acme) {
					t.Errorf("found in what nobody touched: %s", f)
				}
			}
			// The next start ends the segment and ships it.
			if err := newShipper(openJournal(t, testOptions(t, root)), store).ship(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(path + segments.DamagedSuffix); err != nil {
				t.Error(err)
			}
			sequences = nil
			// The hash before the next record is gone with the line, so nothing shows whether that record was changed too. It
			// is set aside with the file.
			if err := query.Everything(t.Context(), root, store, "*", begin, end, read); err != nil || !slices.Equal(sequences, []int64{3}) || len(store.chunks) != 2 {
				t.Errorf("from the store: records %v, %v", sequences, err)
			}
		})
	}
}

// manyRecords returns a segment that has ended, with records of three organizations and several shared parts. Their
// sessions name their organizations.
func manyRecords(t *testing.T) (node, segment string, store *memory) {
	t.Helper()
	store = new(memory)
	j := openJournal(t, testOptions(t, t.TempDir()))
	for i := range 30 {
		organization := []string{acme, other, "third"}[i%3]
		e := intent("create_issue")
		e.UserID, e.Session = strconv.Itoa(i/3%4), organization
		if err := j.Append(organization, e); err != nil {
			t.Fatal(err)
		}
		if i == 14 {
			if err := j.Checkpoint(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	node, segment = j.node, readFile(t, segments.Path(j.dir, 1))
	if err := fileShipper(j, store).ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	return node, segment, store
}

// mutate changes or removes bytes of a text, or moves them.
func mutate(random *rand.Rand, text []byte) []byte {
	from := random.IntN(len(text))
	to := min(len(text), from+1+random.IntN(1+random.IntN(400)))
	switch piece := slices.Clone(text[from:to]); random.IntN(4) {
	case 0:
		text[from] ^= 1 << random.IntN(8)
	case 1:
		text = slices.Delete(text, from, to)
	case 2:
		text = slices.Insert(text, random.IntN(len(text)), piece...)
	case 3:
		copy(text[random.IntN(len(text)):], piece)
	}
	return text
}

// TestEdits checks that every change to the bytes of a segment or of a chunk is found.
func TestEdits(t *testing.T) {
	node, segment, store := manyRecords(t)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same in every run
	for range 200 {
		edited := mutate(random, []byte(segment))
		root := t.TempDir()
		if err := os.Mkdir(filepath.Join(root, node), 0o700); err != nil {
			t.Fatal(err)
		}
		appendFile(t, segments.Path(filepath.Join(root, node), 1), string(edited))
		findings := findings(t, root, new(memory))
		// Records that no checkpoint covers can be cut off.
		lines, _, _ := bytes.Cut(edited, []byte{0})
		lines = lines[:bytes.LastIndexByte(lines, '\n')+1]
		if len(findings) == 0 && !strings.HasPrefix(segment, string(lines)) {
			t.Errorf("nothing is found in %q", edited)
		}
	}
	for i := range store.chunks {
		original, err := former.ReadChunk(&store.chunks[i])
		if err != nil {
			t.Fatal(err)
		}
		body := unpacked(t, &store.chunks[i])
		for range 500 {
			edited := mutate(random, slices.Clone(body))
			c := store.chunks[i]
			c.Data = format.AppendChunk(nil, edited)
			if records, err := former.ReadChunk(&c); err == nil && !reflect.DeepEqual(records, original) {
				t.Errorf("other records are taken of %q", edited)
			}
		}
	}
}

// TestShipAgain checks that all records are shipped once, after the disk could not be read for a moment.
func TestShipAgain(t *testing.T) {
	root, store := t.TempDir(), new(memory)
	j := openJournal(t, testOptions(t, root))
	for range 10 {
		if err := j.Append(acme, intent("create_issue")); err != nil {
			t.Fatal(err)
		}
	}
	ship := fileShipper(j, store)
	if err := ship.prime(t.Context()); err != nil {
		t.Fatal(err)
	}
	ship.at = position{number: 1, chains: make(map[string]*shippedChain), parser: former.NewParser()}
	text := readSegment(t, j.dir, 1)
	half := strings.NewReader(text[:len(text)/2])
	if err := ship.shipLines(t.Context(), io.MultiReader(half, iotest.ErrReader(errDisk))); err == nil {
		t.Fatal("there is an end without an error")
	}
	if err := ship.ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ship.at.damaged {
		t.Error("the segment is taken for damaged")
	}
	if report := wantClean(t, root, store); report.Records != 10 || report.Chunks < 2 {
		t.Errorf("%d records in %d chunks", report.Records, report.Chunks)
	}
}
