package audit

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// formerSegment writes a segment as durward did before the short form of entries, or before shared parts, as kill -9 leaves it.
func formerSegment(t *testing.T, root string, version int) (node string, records []storage.AuditRecord) {
	t.Helper()
	node = "00112233445566ff"
	dir := filepath.Join(root, node)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UTC()
	lines := append(format.Marshal(format.Header{Format: version, Node: node, Segment: "00000001", Time: now}), '\n')
	chain := storage.AuditChain{OrganizationID: acme, Node: node, Segment: "00000001"}
	for range 6 {
		e := intent("create_issue")
		outcome := outcomeOf(e)
		outcome.ID = format.NewID(outcome.At)
		for _, e := range []*storage.AuditEntry{e, outcome} {
			text, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			if version == 2 {
				text = format.AppendEntry(nil, e)
			}
			r := storage.AuditRecord{Sequence: chain.Sequence + 1, Text: text}
			r.Hash, _ = format.Next(&chain, text, nil)
			records = append(records, r)
			lines = append(lines, jsonLine(acme, r.Sequence, &r.Hash, nil, text)...)
		}
	}
	c := format.Checkpoint{Format: 1, Node: node, Segment: "00000001", Number: 1, Time: now, Chains: []format.Head{format.HeadOf(&chain)}}
	signed := c.Sign(sharedSigner())
	appendFile(t, segments.Path(dir, 1), string(format.AppendCheckpoint(lines, &signed))+`{"o":"019`)
	return node, records
}

// TestFormerFormats checks records from before the short form of entries and from before shared parts. They are
// recovered, shipped, verified and read as before, and edits of them are found.
func TestFormerFormats(t *testing.T) {
	t.Run("long entries", func(t *testing.T) { testFormer(t, format.LongSegmentFormat, 1) })
	t.Run("short entries", func(t *testing.T) { testFormer(t, 2, 2) })
}

func testFormer(t *testing.T, version int, packed byte) {
	root, store := t.TempDir(), new(memory)
	node, records := formerSegment(t, root, version)
	// A part of the records is in the store, in the chunk format of that time.
	body := append(make([]byte, 32), records[1].Hash[:]...)
	for _, r := range records[:2] {
		body = append(append(append(body, byte(len(r.Text)), byte(len(r.Text)>>7)), r.Hash[:format.MarkSize]...), r.Text...)
		body[len(body)-len(r.Text)-format.MarkSize-2] |= 0x80
	}
	store.chunks = []storage.AuditChunk{{
		OrganizationID: acme, Node: node, Segment: "00000001", First: 1, Last: 2, From: format.TimeOf(records[0].Text).Truncate(format.Precision),
		To: format.TimeOf(records[1].Text).Truncate(format.Precision).Add(format.Precision), Data: append([]byte{packed}, s2.Encode(nil, body)...),
	}}
	wantClean(t, root, store)
	upgraded(t, root, store, node, func(trail *Trail) {
		if err := trail.Append(acme, intent("create_issue")); err != nil {
			t.Fatal(err)
		}
	})
	report := wantClean(t, root, store)
	if s := report.Standing; report.Records != len(records)+1 || s.Sealed != 1 || s.Bare != int64(len(records)) || s.Unproven != 0 {
		t.Errorf("%+v", report)
	}
	if len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "12 records") || strings.Contains(report.Notes[0], "added") {
		t.Errorf("%q", report.Notes)
	}
	rows, err := query.Page(t.Context(), store, query.Filter{OrganizationID: acme, From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour)}, storage.PageRequest{Number: 1, Limit: 100})
	if err != nil || rows.Total != 7 || rows.Items[6].Outcome != "ok" || rows.Items[6].Tool != "create_issue" {
		t.Errorf("%+v, %v", rows, err)
	}
	exported := 0
	if err := query.Everything(t.Context(), root, store, acme, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), func(r *storage.AuditRecord) error {
		e := format.Export(r)
		if exported++; (version == format.LongSegmentFormat && exported <= len(records)) != (e.Text == "") || !bytes.Contains(e.Entry, []byte(`"kind":"call"`)) {
			t.Errorf("%+v", e)
		}
		return nil
	}); err != nil || exported != len(records)+1 {
		t.Errorf("%d records, %v", exported, err)
	}
	for i := range store.chunks {
		if c := &store.chunks[i]; c.Segment == "00000001" && c.First > 1 {
			repack(t, c, func(body []byte) []byte { return bytes.Replace(body, []byte(`"allow"`), []byte(`"allov"`), 1) })
		}
	}
	if len(findings(t, root, store)) == 0 {
		t.Error("an edit was not found")
	}
}

// upgraded runs a durward with MACs in the directory of a node without MACs. The node's journal is shipped and not
// continued.
func upgraded(t *testing.T, root string, store *memory, former string, use func(*Trail)) {
	t.Helper()
	trail, err := NewTrail(testOptions(t, root), store)
	if err != nil {
		t.Fatal(err)
	}
	use(trail)
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	if trail.Node() == former {
		t.Error("a chain without MACs is gone on with")
	}
	if _, err := os.Stat(filepath.Join(root, former)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the former journal is still there: %v", err)
	}
}

// unseal turns a segment into one of a durward without MACs.
func unseal(t *testing.T, dir string, number, version int) {
	t.Helper()
	path := segments.Path(dir, number)
	if err := os.WriteFile(path, formerLines(t, readFile(t, path), version), 0o600); err != nil {
		t.Fatal(err)
	}
}

// formerLines returns the lines of a segment, without checkpoints, in a former format. Before jsonSegmentFormat they have
// no MACs.
func formerLines(t testing.TB, segment string, version int) (lines []byte) {
	t.Helper()
	type part struct{ organization, text string }
	at := make(map[part]int64)
	p := former.NewParser()
	for text := range strings.SplitSeq(strings.TrimSuffix(segment, "\n"), "\n") {
		l, err := p.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		switch r := &l.Record; {
		case l.Header != nil:
			l.Header.Format = version
			lines = append(append(lines, format.Marshal(l.Header)...), '\n')
		case l.Checkpoint != nil:
			lines = format.AppendCheckpoint(lines, l.Checkpoint)
		default:
			mac, text := r.MAC[:], r.Text
			if version < format.JSONSegmentFormat {
				mac = nil
			}
			if own, shared := format.SplitShared(text); shared != nil {
				key := part{string(r.Organization), string(shared)}
				if first, ok := at[key]; ok {
					text = fmt.Appendf(slices.Clone(own), `,"0":%d}`, first)
				} else {
					at[key] = r.Sequence
				}
			}
			lines = append(lines, jsonLine(string(r.Organization), r.Sequence, &r.Hash, mac, text)...)
		}
	}
	return lines
}

// repackFormer packs a chunk as durward did before it split brief ids and times.
func repackFormer(t *testing.T, c *storage.AuditChunk, packed byte) {
	t.Helper()
	records, err := former.ReadChunk(c)
	if err != nil {
		t.Fatal(err)
	}
	body := slices.Concat(records[0].Previous[:], records[len(records)-1].Hash[:])
	at := make(map[string]int)
	for i, r := range records {
		own, part := format.SplitShared(r.Text)
		size := 2 * len(own)
		if part != nil {
			size++
		}
		body = append(append(binary.AppendUvarint(body, uint64(size)), r.Hash[:format.MarkSize]...), own...)
		if first, ok := at[string(part)]; ok {
			body = binary.AppendUvarint(body, uint64(i-first))
		} else if part != nil {
			body = append(binary.AppendUvarint(append(body, 0), uint64(len(part))), part...)
			at[string(part)] = i
		}
	}
	c.Data = append([]byte{packed}, s2.Encode(nil, body)...)
}

// TestFormerOutcomes checks that segments and chunks with a record for each outcome, and those with full ids and digests,
// are read as before. They differ only in the number of their format.
func TestFormerOutcomes(t *testing.T) {
	t.Run("one by one", func(t *testing.T) {
		testFormerOutcomes(t, 3, 3, 12, func(j *Journal, e *storage.AuditEntry) { j.Later(acme, outcomeOf(e)) })
	})
	t.Run("together", func(t *testing.T) {
		testFormerOutcomes(t, 4, 4, 8, func(j *Journal, e *storage.AuditEntry) { j.Outcome(acme, plainOutcome(e)) })
	})
}

func testFormerOutcomes(t *testing.T, version int, packed byte, wantRecords int, end func(*Journal, *storage.AuditEntry)) {
	root, store := t.TempDir(), new(memory)
	j := openJournal(t, testOptions(t, root))
	leaveAlone(j) // on a busy machine it would write outcomes before they are together
	j.mu.Lock()
	j.last.at = time.Now() // it is killed before its first checkpoint
	j.mu.Unlock()
	record := func(n int) {
		for range n {
			e := intent("create_issue")
			e.At = e.At.Add(-time.Second) // its outcome comes later, and before the records of the next version
			if err := j.Append(acme, e); err != nil {
				t.Fatal(err)
			}
			end(j, e)
		}
		if err := j.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	record(3)
	if err := newShipper(j, store).ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	repackFormer(t, &store.chunks[0], packed)
	record(3)
	kill(t, j)
	unseal(t, j.dir, 1, version)
	store.chunks[0].MAC = storage.AuditMAC{}
	wantClean(t, root, store)
	upgraded(t, root, store, j.node, func(trail *Trail) { calls(t, trail.journal, acme, 1) }) // with brief ids
	report := wantClean(t, root, store)
	if s := report.Standing; report.Records != wantRecords+2 || report.Chunks != 3 || s.Bare != int64(wantRecords) || s.Unproven != s.Bare || s.Sealed != 2 {
		t.Errorf("%+v", report)
	}
	if len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "can have added") {
		t.Errorf("%q", report.Notes)
	}
	rows, err := query.Page(t.Context(), store, query.Filter{OrganizationID: acme, From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour), Outcome: "ok"}, storage.PageRequest{Number: 1})
	if err != nil || rows.Total != 7 {
		t.Errorf("%+v, %v", rows, err)
	}
}

// TestLaterFormat checks that a journal of a later durward, which this version cannot read, is neither ended nor shipped,
// and does not keep this version from recording.
func TestLaterFormat(t *testing.T) {
	root, node := t.TempDir(), "0123456789abcdef"
	dir := filepath.Join(root, node)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	first := format.Marshal(format.Header{Format: format.SegmentFormat + 1, Node: node, Segment: segments.Name(1), Time: time.Now().UTC()})
	text := string(first) + "\nwhat nobody here knows\n"
	if err := os.WriteFile(segments.Path(dir, 1), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	store := new(memory)
	trail, err := NewTrail(testOptions(t, root), store)
	if err != nil {
		t.Fatal(err)
	}
	if err := trail.Append(acme, intent("x")); err != nil {
		t.Fatal(err)
	}
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	if trail.Node() == node || len(store.chunks) != 1 || store.chunks[0].Node == node {
		t.Errorf("node %s has shipped %d chunks", trail.Node(), len(store.chunks))
	}
	if left, err := os.ReadFile(segments.Path(dir, 1)); err != nil || string(left) != text {
		t.Errorf("%q, %v", left, err)
	}
}
