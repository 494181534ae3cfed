package audit

import (
	"bytes"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/internal/audit/verify"
	"github.com/durward-gateway/durward/storage"
)

// scene returns an audit log of five segments. Three are shipped and gone, the fourth has ended and is not shipped, and
// the fifth grows. The store has records of its own. The gateway was killed: a running one would notice within 50 ms that
// a file is gone, and begin a segment while the test still removes files (TestJournalGone covers that).
type scene struct {
	root, dir string
	store     *memory
	journal   *Journal
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{root: t.TempDir(), store: new(memory)}
	s.journal = openJournal(t, testOptions(t, s.root))
	leaveAlone(s.journal) // the checkpoints are made below
	s.dir = s.journal.dir
	ship := newShipper(s.journal, s.store)
	trail := &Trail{journal: s.journal, store: s.store}
	for segment := range 5 {
		for i := range 8 {
			e := intent("create_issue")
			if err := s.journal.Append([]string{acme, other, ""}[i%3], e); err != nil {
				t.Fatal(err)
			}
			s.journal.Later([]string{acme, other, ""}[i%3], outcomeOf(e))
			ctx := storage.WithAudit(t.Context(), trail.Audited(acme, *intent("policy.update")))
			if err := s.store.RecordAudit(ctx); err != nil {
				t.Fatal(err)
			}
			if i == 4 {
				if err := s.journal.Checkpoint(); err != nil {
					t.Fatal(err)
				}
				// The chunks are shorter than a segment.
				if segment < 3 {
					if err := ship.ship(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if segment == 4 {
			break
		}
		if err := turn(s.journal); err != nil {
			t.Fatal(err)
		}
		if segment < 3 {
			if err := ship.ship(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.journal.Flush(); err != nil {
		t.Fatal(err)
	}
	kill(t, s.journal)
	return s
}

// ship sends the records in the journal to the store. The fifth segment stays.
func (s *scene) ship(t *testing.T) {
	t.Helper()
	if err := newShipper(s.journal, s.store).ship(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// twoCheckpoints adds two consecutive checkpoints to the growing segment, and returns its lines.
func (s *scene) twoCheckpoints(t *testing.T) [][]byte {
	t.Helper()
	lines := s.written(t)
	for range 2 {
		c := format.Checkpoint{Segment: s.journal.segment.name, Header: s.journal.segment.header, Chains: []format.Head{}}
		var signed storage.AuditCheckpoint
		signed, s.journal.last = s.journal.sign(c)
		lines = append(lines, format.AppendCheckpoint(nil, &signed))
	}
	s.rewrite(t, 5, lines)
	return lines
}

// written returns the lines of the growing segment, without zeros after them.
func (s *scene) written(t *testing.T) [][]byte {
	t.Helper()
	return slices.DeleteFunc(s.lines(t, 5), func(line []byte) bool { return len(line) == 0 || bytes.IndexByte(line, 0) >= 0 })
}

func (s *scene) lines(t *testing.T, segment int) [][]byte {
	t.Helper()
	return bytes.SplitAfter([]byte(strings.TrimSuffix(readFile(t, segments.Path(s.dir, segment)), "\n")+"\n"), []byte("\n"))
}

func (s *scene) rewrite(t *testing.T, segment int, lines [][]byte) {
	t.Helper()
	if err := os.WriteFile(segments.Path(s.dir, segment), bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

// chunk returns a chunk of acme's in the store, away from the ends.
func (s *scene) chunk(t *testing.T) *storage.AuditChunk {
	t.Helper()
	for i := range s.store.chunks {
		if c := &s.store.chunks[i]; c.OrganizationID == acme && c.Segment == "00000002" && c.First > 1 {
			return c
		}
	}
	t.Fatal("there is no such chunk")
	return nil
}

// repack changes the body of a chunk.
func repack(t *testing.T, c *storage.AuditChunk, change func(body []byte) []byte) {
	t.Helper()
	c.Data = format.AppendChunk(nil, change(unpacked(t, c)))
}

// changeRecord changes the record in a line.
func changeRecord(t *testing.T, line []byte, change func(r *format.Record)) []byte {
	t.Helper()
	l, err := former.NewParser().Parse(bytes.TrimSuffix(line, []byte("\n")))
	if err != nil {
		t.Fatal(err)
	}
	r := &l.Record
	change(r)
	return recordLine(string(r.Organization), r.Sequence, &r.Hash, macOf(r), r.Text)
}

// changeText changes the text of the first record in lines.
func changeText(t *testing.T, lines []byte, change func(text []byte) []byte) []byte {
	t.Helper()
	end := bytes.IndexByte(lines, '\n') + 1
	line := changeRecord(t, lines[:end], func(r *format.Record) { r.Text = change(r.Text) })
	return append(line, lines[end:]...)
}

// editHeads returns a value for memory.heads, which changes the ends of the chains of the store's own records.
func editHeads(edit func(c *storage.AuditChain)) func([]storage.AuditChain) []storage.AuditChain {
	return func(all []storage.AuditChain) []storage.AuditChain {
		for i := range all {
			if all[i].Segment == storage.AuditStoreSegment {
				edit(&all[i])
			}
		}
		return all
	}
}

// TestTampering checks that everything that is edited, removed, moved, cut off or put back is found, with its place.
func TestTampering(t *testing.T) {
	told := readTellings(t, filepath.Join("testdata", "tampering.txt"))
	for name, c := range map[string]struct {
		tamper func(t *testing.T, s *scene)
		want   string // a part of a finding
	}{
		"journal: a byte of an entry": {func(t *testing.T, s *scene) {
			lines := s.lines(t, 5)
			lines[3] = bytes.Replace(lines[3], []byte(`"allow"`), []byte(`"allov"`), 1)
			if bytes.Equal(lines[3], s.lines(t, 5)[3]) {
				lines[3] = bytes.Replace(lines[3], []byte(`"ok"`), []byte(`"no"`), 1)
			}
			s.rewrite(t, 5, lines)
		}, "segment 00000005, line 4, organization "},
		"journal: a byte of a hash": {func(t *testing.T, s *scene) {
			lines := s.lines(t, 4)
			lines[2] = changeRecord(t, lines[2], func(r *format.Record) { r.Hash[9] ^= 1 })
			s.rewrite(t, 4, lines)
		}, "segment 00000004, line 3"},
		"journal: a MAC taken away": {func(t *testing.T, s *scene) {
			lines := s.lines(t, 4)
			lines[2] = changeRecord(t, lines[2], func(r *format.Record) { r.MAC = storage.AuditMAC{} })
			s.rewrite(t, 4, lines)
		}, "line 3, organization " + acme + ", record 2: has no MAC"},
		"journal: a field that nobody knows": {func(t *testing.T, s *scene) {
			lines := s.lines(t, 4)
			lines[2] = bytes.Replace(lines[2], []byte("\x02\x01\x02"), []byte("\x63\x01\x02\x02\x01\x02"), 1)
			s.rewrite(t, 4, lines)
		}, "line 3: is not what was written: malformed line: field 99 is not known to this durward"},
		"journal: a line deleted": {func(t *testing.T, s *scene) {
			s.rewrite(t, 4, slices.Delete(s.lines(t, 4), 4, 5))
		}, "records are gone or in another order"},
		"journal: the first record deleted": {func(t *testing.T, s *scene) {
			s.rewrite(t, 5, slices.Delete(s.lines(t, 5), 1, 2))
		}, "segment 00000005, line "},
		"journal: the header deleted": {func(t *testing.T, s *scene) {
			s.rewrite(t, 5, s.lines(t, 5)[1:])
		}, "line 1: is not the first line"},
		"journal: two records swapped": {func(t *testing.T, s *scene) {
			lines := s.lines(t, 4)
			lines[1], lines[2] = lines[2], lines[1]
			s.rewrite(t, 4, lines)
		}, "segment 00000004, line "},
		"journal: a record twice": {func(t *testing.T, s *scene) {
			lines := s.lines(t, 4)
			s.rewrite(t, 4, slices.Insert(lines, 3, lines[2]))
		}, "segment 00000004, line 4"},
		"journal: the tail of an ended segment cut off": {func(t *testing.T, s *scene) {
			lines := s.lines(t, 4)
			s.rewrite(t, 4, lines[:len(lines)-4])
		}, "segment 00000004"},
		"journal: the tail behind a checkpoint cut off": {func(t *testing.T, s *scene) {
			lines := s.lines(t, 4)
			s.rewrite(t, 4, lines[:len(lines)-2])
		}, "segment 00000004"},
		"journal: a segment deleted": {func(t *testing.T, s *scene) {
			if err := os.Remove(segments.Path(s.dir, 4)); err != nil {
				t.Fatal(err)
			}
		}, "segment 00000004: the segment and its final checkpoint are gone"},
		"journal: a segment replaced by another one": {func(t *testing.T, s *scene) {
			s.rewrite(t, 4, s.lines(t, 5))
		}, "segment 00000004, line 1: is the first line of segment 00000005"},
		"journal: a segment replaced by one that somebody else signed": {func(t *testing.T, s *scene) {
			foreign := openJournal(t, Options{Dir: t.TempDir(), Signer: newGatewayKeys().signer, MACs: newGatewayKeys().macs})
			if err := foreign.Append(acme, intent("nothing_happened")); err != nil {
				t.Fatal(err)
			}
			if err := foreign.Close(); err != nil {
				t.Fatal(err)
			}
			text := strings.ReplaceAll(readFile(t, segments.Path(foreign.dir, 1)), foreign.node, s.journal.node)
			text = strings.ReplaceAll(text, `"segment":"00000001"`, `"segment":"00000004"`)
			s.rewrite(t, 4, [][]byte{[]byte(text)})
		}, "is not signed by a key of this gateway"},
		"journal: a line that is none": {func(t *testing.T, s *scene) {
			s.rewrite(t, 5, slices.Insert(s.lines(t, 5), 3, []byte("nothing to see here\n")))
		}, "segment 00000005, line 4: is not what was written"},
		"journal: a record behind the final checkpoint": {func(t *testing.T, s *scene) {
			lines := s.lines(t, 4)
			s.rewrite(t, 4, append(lines, lines[2]))
		}, "follows the final checkpoint"},
		"journal: a forged record with the right hash": {func(t *testing.T, s *scene) {
			lines := s.lines(t, 4)
			l, err := former.NewParser().Parse(bytes.TrimSuffix(lines[1], []byte("\n")))
			if err != nil {
				t.Fatal(err)
			}
			text := bytes.Replace(l.Record.Text, []byte(`"allow"`), []byte(`"deny"`), 1)
			chain := storage.AuditChain{OrganizationID: string(l.Record.Organization), Node: s.journal.node, Segment: "00000004"}
			hash, _ := format.Next(&chain, text, nil)
			lines[1] = recordLine(chain.OrganizationID, 1, &hash, nil, text)
			s.rewrite(t, 4, lines)
		}, "segment 00000004"},
		"journal: all of it removed": {func(t *testing.T, s *scene) {
			s.ship(t)
			if err := os.RemoveAll(s.dir); err != nil {
				t.Fatal(err)
			}
		}, "segment 00000005: the segment and its final checkpoint are gone"},
		"journal: all of it removed, of which nothing was shipped since the last segment ended": {func(t *testing.T, s *scene) {
			if err := os.RemoveAll(s.dir); err != nil {
				t.Fatal(err)
			}
		}, ""}, // this gives only a note, see TestVerifyNotes
		"journal: the time in a header": {func(t *testing.T, s *scene) {
			lines := s.lines(t, 5)
			lines[0] = bytes.Replace(lines[0], []byte(`"time":"2`), []byte(`"time":"3`), 1)
			s.rewrite(t, 5, lines)
		}, "was signed over another first line of the segment"},
		"journal: the format in a header": {func(t *testing.T, s *scene) {
			lines := s.lines(t, 4)
			lines[0] = bytes.Replace(lines[0], []byte(`"format":7`), []byte(`"format":6`), 1)
			s.rewrite(t, 4, lines)
		}, "segment 00000004, line "},
		"journal: two checkpoints swapped": {func(t *testing.T, s *scene) {
			lines := s.twoCheckpoints(t)
			n := len(lines)
			lines[n-1], lines[n-2] = lines[n-2], lines[n-1]
			s.rewrite(t, 5, lines)
		}, "follows checkpoint "},
		"journal: a checkpoint removed that the store has": {func(t *testing.T, s *scene) {
			lines := s.twoCheckpoints(t)
			if err := fileShipper(s.journal, s.store).ship(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.rewrite(t, 5, slices.Delete(lines, len(lines)-2, len(lines)-1))
		}, "follows checkpoint "},
		"journal: the last checkpoint removed that the store has": {func(t *testing.T, s *scene) {
			lines := s.twoCheckpoints(t)
			if err := fileShipper(s.journal, s.store).ship(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.rewrite(t, 5, lines[:len(lines)-1])
		}, ", which the store has, is gone from its file"},
		"journal: the last records of the growing segment removed that the store has": {func(t *testing.T, s *scene) {
			s.ship(t)
			lines := s.written(t)
			s.rewrite(t, 5, lines[:len(lines)-1])
		}, ", which the store has, are gone from its file"},
		"journal: the growing segment emptied": {func(t *testing.T, s *scene) {
			s.ship(t)
			if err := os.Truncate(segments.Path(s.dir, 5), 0); err != nil {
				t.Fatal(err)
			}
		}, "segment 00000005: its file has no beginning, and the store has something of it"},
		"journal: the growing segment cut off within its first line": {func(t *testing.T, s *scene) {
			s.ship(t)
			if err := os.Truncate(segments.Path(s.dir, 5), 20); err != nil {
				t.Fatal(err)
			}
		}, "segment 00000005: its file has no beginning, and the store has something of it"},
		"journal: the growing segment deleted": {func(t *testing.T, s *scene) {
			s.ship(t)
			if err := os.Remove(segments.Path(s.dir, 5)); err != nil {
				t.Fatal(err)
			}
		}, "segment 00000005: the segment and its final checkpoint are gone"},
		"journal: the newest segments deleted, and what the store has of one": {func(t *testing.T, s *scene) {
			s.ship(t)
			s.store.chunks = slices.DeleteFunc(s.store.chunks, func(c storage.AuditChunk) bool { return c.Segment == "00000005" })
			if err := os.Remove(segments.Path(s.dir, 5)); err != nil {
				t.Fatal(err)
			}
		}, "are gone: checkpoint "},
		"store: a byte of a chunk": {func(t *testing.T, s *scene) {
			repack(t, s.chunk(t), func(body []byte) []byte {
				return bytes.Replace(body, []byte("create_issue"), []byte("delete_issue"), 1)
			})
		}, "in the store does not match its hash"},
		"store: a chunk cut short": {func(t *testing.T, s *scene) {
			c := s.chunk(t)
			repack(t, c, func(body []byte) []byte { return body[:len(body)-10] })
		}, "in the store"},
		"store: a chunk that cannot be unpacked": {func(t *testing.T, s *scene) {
			s.chunk(t).Data = []byte{format.ChunkFormat, 0xff, 0xff}
		}, "cannot be unpacked"},
		"store: when a chunk is from": {func(t *testing.T, s *scene) {
			c := s.chunk(t)
			c.From, c.To = time.UnixMicro(1).UTC(), time.UnixMicro(2).UTC()
		}, "are from another time than the store says"},
		"store: when a chunk ends": {func(t *testing.T, s *scene) {
			c := s.chunk(t)
			c.To = c.To.Add(-format.Precision)
		}, "are from another time than the store says"},
		"store: when a chunk begins": {func(t *testing.T, s *scene) {
			c := s.chunk(t)
			c.From = c.From.Add(format.Precision)
		}, "are from another time than the store says"},
		"store: when a checkpoint is from": {func(t *testing.T, s *scene) {
			s.store.checkpoints[1].At = time.UnixMicro(1).UTC()
		}, "checkpoint 2 is from another time than the store says"},
		"store: a chunk dropped": {func(t *testing.T, s *scene) {
			c := *s.chunk(t)
			s.store.chunks = slices.DeleteFunc(s.store.chunks, func(have storage.AuditChunk) bool {
				return have.OrganizationID == c.OrganizationID && have.Segment == c.Segment && have.First == c.First
			})
		}, "are gone"},
		"store: the first chunk of a segment dropped": {func(t *testing.T, s *scene) {
			s.store.chunks = slices.DeleteFunc(s.store.chunks, func(have storage.AuditChunk) bool {
				return have.OrganizationID == acme && have.Segment == "00000002" && have.First == 1
			})
		}, "record 1: records 1 to "},
		"store: all of a chain dropped": {func(t *testing.T, s *scene) {
			s.store.chunks = slices.DeleteFunc(s.store.chunks, func(have storage.AuditChunk) bool {
				return have.OrganizationID == acme && have.Segment == "00000002"
			})
		}, "are gone: checkpoint "},
		"store: a chunk given to another organization": {func(t *testing.T, s *scene) {
			s.chunk(t).OrganizationID = other
		}, "segment 00000002"},
		"store: a chunk without records": {func(t *testing.T, s *scene) {
			w := newChunk(s.journal.node, "00000005", acme, new([32]byte), 1)
			c, _ := w.finish(nil)
			s.store.chunks = append(s.store.chunks, c)
		}, "the chunk has no record"},
		"store: a chunk of a segment that no journal has": {func(t *testing.T, s *scene) {
			s.store.chunks = append(s.store.chunks, forgedChunk(s.journal.node, "9223372036854775807"))
		}, "is in a segment that no journal can have"},
		"store: a checkpoint dropped": {func(t *testing.T, s *scene) {
			s.store.checkpoints = slices.Delete(s.store.checkpoints, 2, 3)
		}, "checkpoints 3 to 3 are gone"},
		"store: the last checkpoint rolled back": {func(t *testing.T, s *scene) {
			s.store.checkpoints = s.store.checkpoints[:len(s.store.checkpoints)-1]
		}, "is gone"},
		"store: a checkpoint changed": {func(t *testing.T, s *scene) {
			c := &s.store.checkpoints[1]
			c.Data = bytes.Replace(c.Data, []byte(`"sequence":`), []byte(`"sequence":1`), 1)
		}, "is not signed by a key of this gateway"},
		"store: when a record is from": {func(_ *testing.T, s *scene) {
			s.store.records[3].At = time.UnixMicro(1).UTC()
		}, "record 4: is from another time than the store says"},
		"store: a record edited": {func(t *testing.T, s *scene) {
			r := &s.store.records[3]
			r.Text = bytes.Replace(r.Text, []byte(`"allow"`), []byte(`"deny!"`), 1)
		}, "record 4: the record or its hash was changed"},
		"store: a record edited with the right hash": {func(t *testing.T, s *scene) {
			r := &s.store.records[3]
			r.Text = bytes.Replace(r.Text, []byte(`"allow"`), []byte(`"deny!"`), 1)
			r.Hash = r.Sum()
		}, "record 5: does not follow the record before it"},
		"store: a record dropped": {func(t *testing.T, s *scene) {
			s.store.records = slices.Delete(s.store.records, 3, 4)
		}, "record 4: records 4 to 4 are gone"},
		"store: the last records dropped": {func(t *testing.T, s *scene) {
			s.store.records = s.store.records[:20]
		}, "record 21: records 21 to "},
		"store: the last record rewritten with all that follows": {func(t *testing.T, s *scene) {
			// An attacker who can write to the store can compute hashes. Only the checkpoints prevent the forgery.
			chain := storage.AuditChain{OrganizationID: acme, Node: s.journal.node, Segment: storage.AuditStoreSegment}
			for i := range s.store.records {
				r := &s.store.records[i]
				text := r.Text
				if i == 3 {
					text = bytes.Replace(text, []byte(`"allow"`), []byte(`"deny"`), 1)
				}
				*r = chain.Next(text)
			}
		}, "is not the record that checkpoint "},
		"store: the head of a chain moved back": {func(_ *testing.T, s *scene) {
			s.store.heads = editHeads(func(c *storage.AuditChain) { c.Sequence-- })
		}, "organization " + acme + ", record 40: is not where the store says that the chain ends"},
		"store: the hash of the head of a chain changed": {func(_ *testing.T, s *scene) {
			s.store.heads = editHeads(func(c *storage.AuditChain) { c.Hash = [32]byte{} })
		}, "organization " + acme + ", record 40: is not where the store says that the chain ends"},
		"store: the heads of chains dropped": {func(_ *testing.T, s *scene) {
			s.store.heads = func(all []storage.AuditChain) []storage.AuditChain {
				return slices.DeleteFunc(all, func(c storage.AuditChain) bool { return c.Segment == storage.AuditStoreSegment })
			}
		}, "organization " + acme + ", record 40: is not where the store says that the chain ends"},
		"store: a record of an organization that has no chain": {func(_ *testing.T, s *scene) {
			chain := format.ChainOf("nobody", s.journal.node, storage.AuditStoreSegment)
			r := chain.Next(format.Marshal(intent("forged")))
			r.MAC = storage.AuditMAC{1}
			s.store.records = append(s.store.records, r)
			s.store.heads = editHeads(func(c *storage.AuditChain) {
				if c.OrganizationID == "nobody" {
					*c = format.ChainOf("nobody", c.Node, c.Segment)
				}
			})
		}, "organization nobody, record 1: is not where the store says that the chain ends"},
		"store: all emptied": {func(t *testing.T, s *scene) {
			*s.store = memory{}
		}, "are gone"},
		"both: a checkpoint rolled back, and what it covers": {func(t *testing.T, s *scene) {
			// An older state of all data is put back, except for the segment that grows.
			if err := os.Remove(segments.Path(s.dir, 4)); err != nil {
				t.Fatal(err)
			}
			s.store.checkpoints = s.store.checkpoints[:2]
			s.store.chunks = slices.DeleteFunc(s.store.chunks, func(c storage.AuditChunk) bool { return c.Segment > "00000001" })
		}, "are gone"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			wantClean(t, s.root, s.store)
			c.tamper(t, s)
			findings := findings(t, s.root, s.store)
			if c.want != "" && !slices.ContainsFunc(findings, func(f verify.Finding) bool { return strings.Contains(f.String(), c.want) }) {
				t.Errorf("there is no finding with %q", c.want)
			}
			told.compare(t, name, s.journal.node, findings)
		})
	}
}

// forgedChunk returns a chunk with a record that the gateway did not write.
func forgedChunk(node, segment string) storage.AuditChunk {
	chain, text := format.ChainOf(acme, node, segment), format.AppendEntry(nil, outcomeOf(intent("forged")))
	hash, _ := format.Next(&chain, text, nil)
	w := newChunk(node, segment, acme, new([32]byte), 1)
	w.add(1, &hash, text, format.NanosOf(text))
	c, _ := w.finish(nil)
	c.MAC = storage.AuditMAC{1}
	return c
}

// TestForgedNumber checks that a verification does not search all segments before one with a forged number.
func TestForgedNumber(t *testing.T) {
	s := newScene(t)
	s.store.chunks = append(s.store.chunks, forgedChunk(s.journal.node, segments.Name(segments.MaxNumber-1)))
	if found := len(findings(t, s.root, s.store)); found != 1000 {
		t.Errorf("%d findings", found)
	}
}

// TestForgedTimes checks that a verification reads a chunk whose times are such that no span has it. It reads chunks page
// by page, by their times.
func TestForgedTimes(t *testing.T) {
	root, store := t.TempDir(), new(memory)
	j := openJournal(t, testOptions(t, root))
	ship := newShipper(j, store)
	for range 300 {
		appendSome(t, j, acme, "create_issue", 2)
		if err := ship.ship(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c := forgedChunk(j.node, "00000001")
	c.First, c.Last = 2, 2
	c.From, c.To = time.UnixMicro(9e15).UTC(), time.UnixMicro(1).UTC()
	store.chunks = append(store.chunks, c)
	if len(findings(t, root, store)) == 0 {
		t.Error("nothing is found")
	}
}

// tellings has all findings that tests want, by the change that was made.
type tellings struct {
	path string
	want map[string][]string
}

// update is the flag that writes testdata again, from the actual findings.
var update = flag.Bool("update", false, "write testdata anew")

// readTellings reads a file of tellings: a line with the change, a line with a tab for each finding, and an empty line.
func readTellings(t *testing.T, path string) *tellings {
	t.Helper()
	told := &tellings{path: path, want: make(map[string][]string)}
	if *update {
		t.Cleanup(func() { told.write(t) })
		return told
	}
	name := ""
	for _, line := range strings.Split(readFile(t, path), "\n") {
		switch finding, ok := strings.CutPrefix(line, "\t"); {
		case ok:
			told.want[name] = append(told.want[name], finding)
		default:
			name = line
		}
	}
	return told
}

func (told *tellings) write(t *testing.T) {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(told.want)) {
		text.WriteString(name + "\n")
		for _, finding := range told.want[name] {
			text.WriteString("\t" + finding + "\n")
		}
	}
	if err := os.WriteFile(told.path, []byte(text.String()), 0o600); err != nil {
		t.Error(err)
	}
}

// compare checks findings against the wanted ones, each once and no other. The node has a new name in each run.
func (told *tellings) compare(t *testing.T, name, node string, findings []verify.Finding) {
	t.Helper()
	var got []string
	for _, f := range findings {
		got = append(got, strings.ReplaceAll(f.String(), node, "N"))
	}
	slices.Sort(got)
	if *update {
		told.want[name] = got
		return
	}
	if diff := cmp.Diff(told.want[name], got); diff != "" {
		t.Error(diff)
	}
}

// TestVerifyCrafted checks that a line with a sequence of millions takes the memory of one line.
func TestVerifyCrafted(t *testing.T) {
	s := newScene(t)
	lines := s.written(t)
	for i, sequence := range []int64{4000007, 8000014, 999999999999999999} {
		lines = append(lines, recordLine("crafted"+strconv.Itoa(i), sequence, &[32]byte{byte(i)}, nil, []byte(`{"i":"","t":1}`)))
	}
	s.rewrite(t, 5, lines)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	findings := findings(t, s.root, s.store)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 32<<20 {
		t.Errorf("%d bytes are taken", used)
	}
	if n := len(slices.DeleteFunc(findings, func(f verify.Finding) bool { return !strings.HasPrefix(f.Organization, "crafted") })); n != 3 {
		t.Errorf("%d of 3 are found", n)
	}
}

// TestVerifyNotes checks that a note, and no finding, reports the unshipped records of a node whose journal is on another
// machine as unverified.
func TestVerifyNotes(t *testing.T) {
	s := newScene(t)
	nowhere := filepath.Join(s.root, "nowhere")
	noted := func(what string, journals verify.Journals, want ...string) {
		t.Helper()
		report, err := verify.Log(t.Context(), journals, s.store, verify.Keys{Signatures: sharedSigner().Public()})
		if err != nil || len(report.Findings) > 0 || len(report.Notes) != len(want) {
			t.Errorf("%s: %+v, %v", what, report, err)
			return
		}
		for i, text := range want {
			if !strings.Contains(report.Notes[i], text) {
				t.Errorf("%s: %q", what, report.Notes[i])
			}
		}
	}
	const uncovered, elsewhere = "16 in all, are covered by no checkpoint", "keeps its journal elsewhere"
	noted("nothing of the segment is stored", verify.Journals{Dir: nowhere, All: true}, uncovered)
	s.ship(t)
	noted("a part of it is", verify.Journals{Dir: nowhere}, "3 in all, are covered", elsewhere)
	noted("the store alone", verify.Journals{}, "3 in all, are covered", elsewhere)
	if _, err := verify.Log(t.Context(), verify.Journals{}, new(memory), sharedKeys()); err == nil {
		t.Error("nothing at all is verified")
	}
	report, err := verify.Log(t.Context(), verify.Journals{Dir: s.root}, s.store, newGatewayKeys().checks())
	if err != nil || len(report.Findings) == 0 {
		t.Errorf("another gateway's key verifies: %v, %v", report.Findings, err)
	}
}

// TestVerifyShipped checks that a journal that has ended and is in the store may be removed.
func TestVerifyShipped(t *testing.T) {
	root, store := t.TempDir(), new(memory)
	trail, err := NewTrail(testOptions(t, root), store)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(trail.Append(acme, intent("create_issue")), trail.Close()); err != nil {
		t.Fatal(err)
	}
	wantClean(t, root, store)
	if err := os.RemoveAll(trail.journal.dir); err != nil {
		t.Fatal(err)
	}
	if report := wantClean(t, root, store); report.Records != 1 || len(report.Notes) > 0 {
		t.Errorf("%+v", report)
	}
}

// TestVerifyRace checks that a gateway that writes, rotates and ships meanwhile gives no findings.
func TestVerifyRace(t *testing.T) {
	dir, store := t.TempDir(), new(memory)
	o := testOptions(t, dir)
	o.SegmentSize = 16 << 10
	trail, err := NewTrail(o, store)
	if err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	room := make(chan struct{}, 400) // limits the records, so that the log grows no faster than it is verified
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-room:
			}
			e := intent("create_issue")
			if err := trail.Append([]string{acme, other}[n%2], e); err != nil {
				t.Error(err)
				return
			}
			trail.Later([]string{acme, other}[n%2], outcomeOf(e))
			if n%10 == 0 {
				if err := store.RecordAudit(storage.WithAudit(t.Context(), trail.Audited(acme, *intent("policy.update")))); err != nil {
					t.Error(err)
				}
			}
			if n%50 == 0 {
				if err := trail.Ship(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if n%70 == 0 {
				_ = trail.journal.Checkpoint() // at a rotation there may be no records to cover
			}
		}
	}()
	for range 12 {
		for len(room) < cap(room) {
			room <- struct{}{}
		}
		wantClean(t, dir, store)
	}
	close(stop)
	<-done
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	report := wantClean(t, dir, store)
	t.Logf("%d records, %d segments, %d checkpoints", report.Records, report.Segments, report.Checkpoints)
}
