package verify

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

var errAway = errors.New("the store is away")

// TestStoreAway checks that a verification ends with the error of each of its questions to the store.
func TestStoreAway(t *testing.T) {
	write := func() *book {
		b := new(book)
		b.ship(acme, nodeA, "00000001", gateway, start)
		b.own(acme, nodeA, start, gateway)
		b.sign(nodeA, "00000001", start, final)
		return b
	}
	asked := make(map[string]bool)
	b := write()
	b.before = func(call string) error { asked[call] = true; return nil }
	if report := b.verify(t); len(report.Findings)+len(report.Notes) > 0 {
		t.Fatalf("%+v", report)
	}
	for _, want := range []string{"checkpoints", "checkpoints again", "chains", "chains again", "chunks", "records"} {
		if !asked[want] {
			t.Errorf("%s: not asked for", want)
		}
	}
	for call := range asked {
		b := write()
		b.before = func(this string) error {
			if this == call {
				return errAway
			}
			return nil
		}
		what, _, _ := strings.Cut(call, " ")
		if _, err := Log(t.Context(), Journals{}, b, Keys{Signatures: gateway, MACs: gateway}); !errors.Is(err, errAway) || !strings.HasPrefix(err.Error(), "reading "+what+": ") {
			t.Errorf("no %s: %v", call, err)
		}
	}
}

// TestNothing checks that an empty store without journals is not taken for a whole log.
func TestNothing(t *testing.T) {
	if _, err := Log(t.Context(), Journals{}, new(book), Keys{Signatures: gateway}); !errors.Is(err, ErrNothing) {
		t.Error(err)
	}
}

// twoNodes writes two nodes with two segments each, and records of the store itself. Nothing follows the final
// checkpoints.
func twoNodes() *book {
	b := new(book)
	for _, node := range []string{nodeB, nodeA} {
		for i, segment := range []string{"00000001", "00000002"} {
			at := start.Add(time.Duration(i) * time.Hour)
			for _, organization := range []string{acme, other} {
				b.ship(organization, node, segment, gateway, at, at.Add(1), at.Add(2))
				b.ship(organization, node, segment, gateway, at.Add(time.Second), at.Add(time.Minute))
				b.own(organization, node, at.Add(time.Second), gateway)
				b.own(organization, node, at.Add(time.Minute), gateway)
			}
			b.sign(node, segment, at.Add(2*time.Minute), nil)
			b.sign(node, segment, at.Add(3*time.Minute), final)
		}
	}
	return b
}

// TestCounts checks what a report says of an intact store.
func TestCounts(t *testing.T) {
	b := twoNodes()
	got := b.verify(t)
	want := Report{Records: 56, Chunks: 16, Segments: 4, Checkpoints: 8, Standing: Standing{Checked: true, Sealed: 56, Since: start}}
	for _, node := range []string{nodeA, nodeB} {
		want.Anchors = append(want.Anchors, Anchor{Node: node, Number: 4, Time: start.Add(time.Hour + 3*time.Minute), Hash: b.last[node].Previous})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// at returns the index of node A's record of the store itself with this sequence.
func (b *book) at(organization string, sequence int64) int {
	return slices.IndexFunc(b.records, func(r storage.AuditRecord) bool {
		return r.OrganizationID == organization && r.Node == nodeA && r.Sequence == sequence
	})
}

// chunk returns the index of node A's chunk with this first record.
func (b *book) chunk(organization, segment string, first int64) int {
	return slices.IndexFunc(b.chunks, func(c storage.AuditChunk) bool {
		return c.OrganizationID == organization && c.Node == nodeA && c.Segment == segment && c.First == first
	})
}

// numbered returns the index of node A's checkpoint with this number.
func (b *book) numbered(number int64) int {
	return slices.IndexFunc(b.checkpoints, func(c storage.AuditCheckpoint) bool { return c.Node == nodeA && c.Number == number })
}

// signAgain signs a checkpoint of node A again after a change, and leaves those after it as they are.
func (b *book) signAgain(t *testing.T, number int64, edit func(c *format.Checkpoint)) storage.AuditCheckpoint {
	t.Helper()
	c, err := format.ReadCheckpoint(b.checkpoints[b.numbered(number)].Data)
	if err != nil {
		t.Fatal(err)
	}
	edit(&c)
	return c.Sign(gateway)
}

// answer has the store state other hashes for the ends of chains, in one of its answers, counted from 1.
func (b *book) answer(wrong int) {
	answers := 0
	b.heads = func(all []storage.AuditChain) []storage.AuditChain {
		if answers++; answers == wrong {
			for i := range all {
				all[i].Hash[0] ^= 1
			}
		}
		return all
	}
}

// TestTamperedStore checks the findings for changes in a store of two nodes.
func TestTamperedStore(t *testing.T) {
	const (
		first  = "node " + nodeA + ", segment 00000001"
		second = "node " + nodeA + ", segment 00000002"
		acme1  = first + ", organization " + acme
		own    = "node " + nodeA + ", segment store, organization " + acme
		away   = ": the segment and its final checkpoint are gone"
		// nowhere is the problem of a last record that is not the stated one.
		nowhere = ": is not where the store says that the chain ends"
	)
	allHeads := []string{
		own + ", record 4" + nowhere, strings.Replace(own, acme, other, 1) + ", record 4" + nowhere,
		strings.Replace(own, nodeA, nodeB, 1) + ", record 4" + nowhere, strings.NewReplacer(nodeA, nodeB, acme, other).Replace(own) + ", record 4" + nowhere,
	}
	// gone returns the findings about checkpoints that the store lacks, and that are nowhere else.
	gone := func(from, to int64) []string {
		next := second // the segment of the next checkpoint
		if to < 2 {
			next = first
		}
		return []string{fmt.Sprintf("%s: checkpoints %d to %d are gone", next, from, to), fmt.Sprintf("%s: the store lacks checkpoints %d to %d", next, from, to)}
	}
	drop := func(numbers ...int64) func(t *testing.T, b *book) {
		return func(_ *testing.T, b *book) {
			for _, number := range numbers {
				i := b.numbered(number)
				b.checkpoints = slices.Delete(b.checkpoints, i, i+1)
			}
		}
	}
	record := func(sequence int64, change func(r *storage.AuditRecord)) func(t *testing.T, b *book) {
		return func(_ *testing.T, b *book) { change(&b.records[b.at(acme, sequence)]) }
	}
	chunk := func(first int64, change func(c *storage.AuditChunk)) func(t *testing.T, b *book) {
		return func(_ *testing.T, b *book) { change(&b.chunks[b.chunk(acme, "00000001", first)]) }
	}
	checkpoint := func(number int64, change func(c *storage.AuditCheckpoint)) func(t *testing.T, b *book) {
		return func(_ *testing.T, b *book) { change(&b.checkpoints[b.numbered(number)]) }
	}
	again := func(number int64, edit func(c *format.Checkpoint)) func(t *testing.T, b *book) {
		return func(t *testing.T, b *book) { b.checkpoints[b.numbered(number)] = b.signAgain(t, number, edit) }
	}
	for name, c := range map[string]struct {
		tamper func(t *testing.T, b *book)
		want   []string
	}{
		"nothing":                            {func(*testing.T, *book) {}, nil},
		"the first checkpoint":               {drop(1), gone(1, 1)},
		"a checkpoint in the middle":         {drop(3), gone(3, 3)},
		"two checkpoints":                    {drop(2, 3), append(gone(2, 3), first+away)},
		"every second checkpoint":            {drop(1, 3), append(gone(1, 1), gone(3, 3)...)},
		"a checkpoint that is none":          {checkpoint(3, func(c *storage.AuditCheckpoint) { c.Data = []byte("{}") }), append(gone(3, 3), second+": checkpoint 3 is not what was written")},
		"a checkpoint under another node":    {checkpoint(3, func(c *storage.AuditCheckpoint) { c.Node = nodeB }), append(gone(3, 3), "node "+nodeB+", segment 00000002: checkpoint 3 is not what was written")},
		"a checkpoint under another segment": {checkpoint(3, func(c *storage.AuditCheckpoint) { c.Segment = "00000001" }), append(gone(3, 3), first+": checkpoint 3 is not what was written")},
		"a checkpoint under another number":  {checkpoint(3, func(c *storage.AuditCheckpoint) { c.Number = 9 }), append(gone(3, 3), second+": checkpoint 9 is not what was written")},
		"a checkpoint's signature":           {checkpoint(3, func(c *storage.AuditCheckpoint) { c.Signature[0] ^= 1 }), append(gone(3, 3), second+": checkpoint 3 is not signed by a key of this gateway")},
		"a checkpoint's time": {checkpoint(3, func(c *storage.AuditCheckpoint) { c.At = c.At.Add(format.Precision) }), []string{
			second + ": checkpoint 3 is from another time than the store says",
		}},
		"a checkpoint in other words": {again(3, func(c *format.Checkpoint) { c.Time = c.Time.Add(time.Second) }), []string{
			second + ": checkpoint 4 does not follow checkpoint 3",
		}},
		"another checkpoint of the same number": {func(t *testing.T, b *book) {
			b.checkpoints = append(b.checkpoints, b.signAgain(t, 3, func(c *format.Checkpoint) { c.Time = c.Time.Add(time.Second) }))
		}, []string{second + ": there are two different checkpoints 3: the journal or the store was rolled back"}},
		"a checkpoint twice": {func(_ *testing.T, b *book) { b.checkpoints = append(b.checkpoints, b.checkpoints[b.numbered(3)]) }, nil},
		"a checkpoint that follows another one": {again(1, func(c *format.Checkpoint) { c.Previous = "00" }), []string{
			first + ": checkpoint 1 does not follow checkpoint 0", first + ": checkpoint 2 does not follow checkpoint 1",
		}},
		"a head under a checkpoint": {again(4, func(c *format.Checkpoint) {
			for i := range c.Chains {
				if c.Chains[i].Segment == "00000002" {
					c.Chains[i].Hash = strings.Repeat("0", 64)
				}
			}
		}), []string{
			second + ", organization " + acme + ", record 5: is not the record that checkpoint 4 was signed over",
			second + ", organization " + other + ", record 5: is not the record that checkpoint 4 was signed over",
		}},
		"all checkpoints of a segment, and what it has": {func(_ *testing.T, b *book) {
			b.checkpoints = slices.DeleteFunc(b.checkpoints, func(c storage.AuditCheckpoint) bool { return c.Node == nodeA && c.Number < 3 })
			b.chunks = slices.DeleteFunc(b.chunks, func(c storage.AuditChunk) bool { return c.Node == nodeA && c.Segment == "00000001" })
			maps.DeleteFunc(b.ends, func(name, _ storage.AuditChain) bool { return name.Node == nodeA && name.Segment == "00000001" })
		}, append(gone(1, 2), first+away)},

		"a record's text": {record(2, func(r *storage.AuditRecord) { r.Text = []byte(strings.Replace(string(r.Text), "policy", "police", 1)) }), []string{own + ", record 2: the record or its hash was changed"}},
		"a record's time": {record(2, func(r *storage.AuditRecord) { r.At = r.At.Add(format.Precision) }), []string{own + ", record 2: is from another time than the store says: whoever asks for its time does not find it"}},
		"a record's hash": {record(2, func(r *storage.AuditRecord) { r.Hash[0] ^= 1 }), []string{
			own + ", record 2: is not the record that checkpoint 1 was signed over", own + ", record 2: is not the record that checkpoint 2 was signed over",
			own + ", record 2: the record or its hash was changed", own + ", record 3: does not follow the record before it",
		}},
		"the first record": {func(_ *testing.T, b *book) {
			i := b.at(acme, 1)
			b.records = slices.Delete(b.records, i, i+1)
		}, []string{own + ", record 1: records 1 to 1 are gone from the store"}},
		"the last record": {func(_ *testing.T, b *book) {
			i := b.at(acme, 4)
			b.records = slices.Delete(b.records, i, i+1)
		}, []string{
			own + ", record 4: records 4 to 4 are gone from the store", own + ", record 4: records 4 to 4 are gone: checkpoint 3 was signed over them",
			own + ", record 4: records 4 to 4 are gone: checkpoint 4 was signed over them",
		}},
		"a record twice": {func(_ *testing.T, b *book) { b.records = append(b.records, b.records[b.at(acme, 2)]) }, []string{own + ", record 2: records 2 to 2 are in the store twice"}},

		"the heads in the first answer": {func(_ *testing.T, b *book) { b.answer(1) }, allHeads},
		"the heads in the last answer":  {func(_ *testing.T, b *book) { b.answer(2) }, allHeads},
		"a head in both answers": {func(_ *testing.T, b *book) {
			end := b.end(acme, nodeA, storage.AuditStoreSegment)
			end.Hash[0] ^= 1
			b.setEnd(end)
		}, []string{own + ", record 4" + nowhere}},
		"all heads of an organization": {func(_ *testing.T, b *book) {
			maps.DeleteFunc(b.ends, func(name, _ storage.AuditChain) bool { return name.OrganizationID == acme })
		}, []string{own + ", record 4" + nowhere, strings.Replace(own, nodeA, nodeB, 1) + ", record 4" + nowhere}},
		"all records of a chain of the store itself, and its head": {func(_ *testing.T, b *book) {
			b.records = slices.DeleteFunc(b.records, func(r storage.AuditRecord) bool { return r.OrganizationID == acme && r.Node == nodeA })
			delete(b.ends, format.ChainOf(acme, nodeA, storage.AuditStoreSegment))
		}, []string{
			own + ", record 1: records 1 to 2 are gone: checkpoint 1 was signed over them", own + ", record 1: records 1 to 2 are gone: checkpoint 2 was signed over them",
			own + ", record 1: records 1 to 4 are gone: checkpoint 3 was signed over them", own + ", record 1: records 1 to 4 are gone: checkpoint 4 was signed over them",
		}},
		"a chunk's first time": {chunk(1, func(c *storage.AuditChunk) { c.From = c.From.Add(-format.Precision) }), []string{acme1 + ", record 1: records 1 to 3 are from another time than the store says: whoever asks for theirs does not find them"}},
		"a chunk's last time":  {chunk(1, func(c *storage.AuditChunk) { c.To = c.To.Add(format.Precision) }), []string{acme1 + ", record 1: records 1 to 3 are from another time than the store says: whoever asks for theirs does not find them"}},
		"a chunk's bounds moved on": {chunk(4, func(c *storage.AuditChunk) { c.First, c.Last = 5, 6 }), []string{
			acme1 + ", record 4: records 4 to 4 are gone from the store", acme1 + ", record 5: in the store does not match its hash",
			acme1 + ", record 6: was added after the segment had ended",
		}},
		"a chunk with fewer records than it says": {chunk(4, func(c *storage.AuditChunk) { c.Last = 7 }), []string{
			acme1 + ", record 5: in the store does not match its hash, or the chunk holds others than 4 to 7",
			acme1 + ", record 6: was added after the segment had ended",
		}},
		"a chunk with more records than it says": {chunk(4, func(c *storage.AuditChunk) { c.Last = 4 }), []string{
			acme1 + ", record 5: in the store does not match its hash, or the chunk holds others than 4 to 4",
			acme1 + ", record 5: records 5 to 5 are gone from the store",
			acme1 + ", record 5: records 5 to 5 are gone: checkpoint 1 was signed over them", acme1 + ", record 5: records 5 to 5 are gone: checkpoint 2 was signed over them",
		}},
		"a chunk that cannot be unpacked": {chunk(1, func(c *storage.AuditChunk) { c.Data = nil }), []string{
			acme1 + ", record 1: in the store does not match its hash: unknown format of a chunk", acme1 + ", record 4: does not follow the record before it",
		}},
		"a chunk with the records of another one": {func(_ *testing.T, b *book) {
			b.chunks[b.chunk(acme, "00000001", 4)].Data = b.chunks[b.chunk(acme, "00000001", 1)].Data
		}, []string{
			acme1 + ", record 4: in the store does not match its hash", acme1 + ", record 4: does not follow the record before it",
		}},
		"a chunk's MAC": {chunk(4, func(c *storage.AuditChunk) { c.MAC[0] ^= 1 }), []string{acme1 + ", record 5: in the store " + foreignMAC}},
		"a chunk that begins within another one": {func(_ *testing.T, b *book) { overlap(b, nodeA, "00000001", gateway, 3, 4, start) }, []string{
			acme1 + ", record 3: records 3 to 3 are in the store twice", acme1 + ", record 4: records 4 to 4 are in the store twice",
		}},
		"a chunk that begins within the last one": {func(_ *testing.T, b *book) { overlap(b, nodeA, "00000001", gateway, 5, 6, start) }, []string{
			acme1 + ", record 5: is not the record that checkpoint 1 was signed over", acme1 + ", record 5: is not the record that checkpoint 2 was signed over",
			acme1 + ", record 5: records 5 to 5 are in the store twice", acme1 + ", record 6: was added after the segment had ended",
		}},
		"a chunk behind the end": {func(_ *testing.T, b *book) { b.ship(acme, nodeA, "00000001", gateway, start) }, []string{acme1 + ", record 6: was added after the segment had ended"}},
		"a chunk of an organization that the segment did not have": {func(_ *testing.T, b *book) { b.ship("third", nodeA, "00000001", gateway, start) }, []string{
			first + ", organization third, record 1: was added after the segment had ended",
		}},
	} {
		b := twoNodes()
		c.tamper(t, b)
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, texts(b.verify(t))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// overlap adds a chunk of other records at a place that the chain already has.
func overlap(b *book, node, segment string, by key, first, last int64, at time.Time) {
	forged := new(book)
	c := format.ChainOf(acme, node, segment)
	c.Sequence = first - 1
	forged.setEnd(c)
	forged.ship(acme, node, segment, by, slices.Repeat([]time.Time{at}, int(last-first)+1)...)
	b.chunks = append(b.chunks, forged.chunks...)
}

// TestPartOfChunk checks that of a chunk with a wrong record the records before it count.
func TestPartOfChunk(t *testing.T) {
	b := new(book)
	b.ship(acme, nodeA, "00000001", gateway, start, start, start)
	b.sign(nodeA, "00000001", start, final)
	_, last, records, err := format.OpenChunk(b.chunks[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	body := format.AppendChunkHead(nil, new([32]byte))
	for records.More() {
		mark, text, _ := records.Next()
		var hash [32]byte
		if copy(hash[:], mark); !records.More() {
			hash[0] ^= 1
		}
		body = format.AppendChunkRecord(body, &hash, text)
	}
	format.SetLast(body, &last)
	b.chunks[0].Data = format.AppendChunk(nil, body)
	report := b.verify(t)
	want := []string{"node " + nodeA + ", segment 00000001, organization " + acme + ", record 3: in the store does not match its hash"}
	if diff := cmp.Diff(want, texts(report)); diff != "" || report.Records != 2 {
		t.Errorf("%d records, %s", report.Records, diff)
	}
}

// TestManyFindings checks that a report ends after so many findings, and that a forged number takes no time.
func TestManyFindings(t *testing.T) {
	b := twoNodes()
	b.ship(acme, nodeA, segments.Name(segments.MaxNumber-1), gateway, start)
	if found := b.verify(t).Findings; len(found) != 1000 {
		t.Errorf("%d findings", len(found))
	}
	b = new(book)
	for range 1001 {
		b.own(acme, nodeA, start, gateway)
		b.records[len(b.records)-1].At = start.Add(time.Hour)
	}
	if found := b.verify(t).Findings; len(found) != 1000 {
		t.Errorf("%d findings", len(found))
	}
}

// TestElsewhere checks a store without journals to which a node still writes: it may have its journal elsewhere, or must have
// it here.
func TestElsewhere(t *testing.T) {
	const (
		third  = "node " + nodeA + ", segment 00000003"
		fourth = "node " + nodeA + ", segment 00000004"
		gone   = ": the segment and its final checkpoint are gone"
	)
	elsewhere := []string{"node " + nodeA + " keeps its journal elsewhere: what it has not shipped yet is not verified"}
	toCome := func(b *book) { b.ship(acme, nodeA, "00000004", gateway, start) }
	for name, c := range map[string]struct {
		journals Journals
		forge    func(b *book)
		findings []string
		notes    []string
	}{
		"elsewhere":                 {Journals{}, func(*book) {}, nil, elsewhere},
		"here":                      {Journals{All: true}, func(*book) {}, []string{third + gone}, nil},
		"a segment that is to come": {Journals{}, toCome, []string{fourth + gone}, elsewhere},
		"with a forged checkpoint": {Journals{}, func(b *book) {
			toCome(b)
			signed := b.signed(format.Checkpoint{Format: format.CheckpointFormat, Node: nodeA, Segment: "00000004", Number: 5, Time: start, Previous: b.last[nodeA].Previous, Chains: []format.Head{}}, nil)
			signed.Signature[0] ^= 1
			b.checkpoints = append(b.checkpoints, signed)
		}, []string{fourth + ": checkpoint 5 is not signed by a key of this gateway", fourth + gone}, elsewhere},
		"with a checkpoint of a later version": {Journals{}, func(b *book) {
			toCome(b)
			b.sign(nodeA, "00000004", start, func(c *format.Checkpoint) { c.Format = format.CheckpointFormat + 1 })
		}, []string{fourth + ": checkpoint 5 is not what was written", fourth + gone}, elsewhere},
	} {
		b := twoNodes()
		b.ship(acme, nodeA, "00000003", gateway, start.Add(2*time.Hour))
		c.forge(b)
		report, err := Log(t.Context(), c.journals, b, Keys{Signatures: gateway, MACs: gateway})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.findings, texts(report)) + cmp.Diff(c.notes, report.Notes); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestForgedEmptyCheckpoint checks that a checkpoint which cannot be read is not what was written, whatever the store says
// of it.
func TestForgedEmptyCheckpoint(t *testing.T) {
	b := twoNodes()
	b.checkpoints = append(b.checkpoints, storage.AuditCheckpoint{Data: []byte("{")})
	if diff := cmp.Diff([]string{"node : checkpoint 0 is not what was written"}, texts(b.verify(t))); diff != "" {
		t.Error(diff)
	}
}

// TestNewNode checks that nothing is found of a node whose first checkpoint comes during the reading.
func TestNewNode(t *testing.T) {
	b := new(book)
	b.own(acme, nodeA, start, gateway)
	b.sign(nodeA, "00000001", start, final)
	b.before = func(call string) error {
		if call == "checkpoints again" {
			b.sign(nodeB, "00000001", start, final)
		}
		return nil
	}
	if report := b.verify(t); len(report.Findings)+len(report.Notes) > 0 {
		t.Errorf("%+v", report)
	}
}

// TestCheckpointTimes checks that a store may keep the time of a checkpoint in full or in its own precision.
func TestCheckpointTimes(t *testing.T) {
	for _, kept := range []time.Duration{0, 999, 1000} {
		b := new(book)
		b.own(acme, nodeA, start, gateway)
		b.sign(nodeA, "00000001", start.Add(999), final)
		b.checkpoints[0].At = start.Add(kept)
		if got, want := len(b.verify(t).Findings), 0; kept == 1000 && got == 0 || kept != 1000 && got != want {
			t.Errorf("%d ns: %d findings", kept, got)
		}
	}
}

// TestManyChunks checks that each chunk is read once, however many there are, and however many of them overlap.
func TestManyChunks(t *testing.T) {
	for _, overlapping := range []bool{false, true} {
		for _, n := range []int{1, pageChunks - 1, pageChunks, pageChunks + 1, 2*pageChunks - 1, 2 * pageChunks, 2*pageChunks + 1, 3 * pageChunks} {
			b := new(book)
			for i := range n {
				at := start.Add(time.Duration(i) * time.Millisecond)
				if overlapping {
					at = start
				}
				b.ship(acme, nodeA, "00000001", gateway, at)
			}
			b.sign(nodeA, "00000001", start, final)
			pages := 0
			b.before = func(call string) error {
				if strings.HasPrefix(call, "chunks") {
					pages++
				}
				if pages > n/pageChunks+2 {
					return errAway // it would read on without an end
				}
				return nil
			}
			report := b.verify(t)
			if len(report.Findings) > 0 || report.Chunks != n || report.Records != n {
				t.Errorf("overlapping %v: %d chunks of %d in %d pages: %s", overlapping, report.Chunks, n, pages, fmt.Sprint(report.Findings))
			}
			if !overlapping && b.limit > pageChunks {
				t.Errorf("%d of %d chunks are asked for at once", b.limit, n)
			}
		}
	}
}

// TestFindingText checks that a finding's text names its place as far as it has one.
func TestFindingText(t *testing.T) {
	for want, f := range map[string]Finding{
		"node n: problem":                           {Node: "n", Problem: "problem"},
		"node n, segment s: problem":                {Node: "n", Segment: "s", Problem: "problem"},
		"node n, segment s, line 1: problem":        {Node: "n", Segment: "s", Line: 1, Problem: "problem"},
		"node n, organization o, record 1: problem": {Node: "n", Organization: "o", Sequence: 1, Problem: "problem"},
		"node n, segment s, line 2, organization the gateway itself, record 3: problem": {Node: "n", Segment: "s", Line: 2, Sequence: 3, Problem: "problem"},
	} {
		if got := f.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestElsewhereMeanwhile checks that segments of a node elsewhere which end and begin during the reading are noted.
func TestElsewhereMeanwhile(t *testing.T) {
	b := twoNodes()
	b.before = func(call string) error {
		if call == "chains" {
			b.ship(acme, nodeA, "00000003", gateway, start)
			b.sign(nodeA, "00000003", start, final)
			b.ship(acme, nodeA, "00000004", gateway, start)
		}
		return nil
	}
	report := b.verify(t)
	want := []string{
		"node " + nodeA + " keeps its journal elsewhere: what it has not shipped yet is not verified",
		"node " + nodeA + ", segment 00000004 was written meanwhile and is not verified",
	}
	if diff := cmp.Diff(want, report.Notes); diff != "" || len(report.Findings) > 0 {
		t.Errorf("%v, %s", report.Findings, diff)
	}
}
