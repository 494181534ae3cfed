package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// readSegment reads a segment's file line by line and computes its chains.
func (v *verification) readSegment(n *nodeEvidence, dir string, number int) error {
	f, err := segments.Open(dir, number)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it was shipped and removed after it was listed
	}
	if err != nil {
		return err
	}
	defer f.Close()
	name := segments.Name(number)
	r := &segmentReader{verification: v, node: n, name: name, file: new(fileEvidence), chains: make(map[string]*storage.AuditChain), parser: former.NewParser()}
	n.files[name] = r.file
	lines := format.NewLines(f)
	for {
		text, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		r.line++
		r.take(text)
	}
	torn, err := lines.Torn()
	if err != nil {
		return err
	}
	if torn > 0 {
		if r.file.final {
			r.find("bytes follow the final checkpoint")
		} else {
			v.report.Notes = append(v.report.Notes, fmt.Sprintf(
				"node %s, segment %s: the last line is unfinished (%d bytes): it is being written, or the process was killed; the next start cuts it away", n.name, name, torn))
		}
	}
	return nil
}

// checkTail finds records of a segment that the store has and that are gone from the segment's file. The file may have
// lacked them when it was read first. So it is read again: records are in the file before they are in the store.
func (v *verification) checkTail(n *nodeEvidence, dir string, number int) error {
	name := segments.Name(number)
	if file := n.files[name]; file == nil || file.header == nil || !n.ahead(name, file.checkpoint, func(organization string) int64 {
		return n.chain(organization, name).inJournal()
	}, nil) {
		return nil
	}
	f, err := segments.Open(dir, number)
	if errors.Is(err, os.ErrNotExist) {
		return nil // it was shipped and removed meanwhile
	}
	if err != nil {
		return err
	}
	defer f.Close()
	all, err := segments.ScanFrom(f, n.name, name, nil)
	if err != nil {
		return err
	}
	checkpoint := int64(0)
	if all.Checkpoint != nil {
		checkpoint = all.Checkpoint.Number
	}
	n.ahead(name, checkpoint, func(organization string) int64 {
		if c := all.Chains[organization]; c != nil {
			return c.Sequence
		}
		return 0
	}, v.find)
	return nil
}

// ahead reports whether the store has more of a segment than its file. checkpoint and last are the last checkpoint and
// the last records of the file. find (nil: none) gets the differences.
func (n *nodeEvidence) ahead(segment string, checkpoint int64, last func(organization string) int64, find func(Finding)) (ahead bool) {
	tell := func(f Finding) {
		if ahead = true; find != nil {
			find(f)
		}
	}
	for number, c := range n.checkpoints {
		if c.stored && c.Segment == segment && number > checkpoint {
			tell(Finding{Node: n.name, Segment: segment, Problem: fmt.Sprintf("checkpoint %d, which the store has, is gone from its file", number)})
		}
	}
	for name, c := range n.chains {
		if name.segment != segment {
			continue
		}
		in, stored := last(name.organization), int64(0)
		for _, s := range c.spans {
			stored = max(stored, s.last)
		}
		if stored > in {
			tell(Finding{
				Node: n.name, Segment: segment, Organization: name.organization, Sequence: in + 1,
				Problem: fmt.Sprintf("records %d to %d, which the store has, are gone from its file", in+1, stored),
			})
		}
	}
	return ahead
}

type segmentReader struct {
	*verification
	node    *nodeEvidence
	name    string
	line    int
	file    *fileEvidence
	chains  map[string]*storage.AuditChain
	parser  *format.Parser
	scratch []byte
}

func (r *segmentReader) find(problem string) {
	r.verification.find(Finding{Node: r.node.name, Segment: r.name, Line: r.line, Problem: problem})
}

func (r *segmentReader) take(text []byte) {
	l, err := r.parser.Parse(text)
	switch {
	case err != nil:
		r.find("is not what was written: " + err.Error())
		return
	case r.file.final:
		r.find("follows the final checkpoint")
	}
	switch {
	case l.Header != nil:
		if r.line != 1 || l.Header.Node != r.node.name || l.Header.Segment != r.name {
			r.find(fmt.Sprintf("is the first line of segment %s of node %s", l.Header.Segment, l.Header.Node))
			return
		}
		r.file.header = l.Header
	case r.line == 1:
		r.find("is not the first line of a segment")
	}
	switch {
	case l.Checkpoint != nil:
		r.takeCheckpoint(l.Checkpoint)
	case l.Header == nil:
		r.takeRecord(&l.Record)
	}
}

func (r *segmentReader) takeRecord(record *format.Record) {
	r.report.Records++
	organization := string(record.Organization)
	c := r.chains[organization]
	if c == nil {
		c = &storage.AuditChain{OrganizationID: organization, Node: r.node.name, Segment: r.name}
		r.chains[organization] = c
	}
	where := Finding{Node: r.node.name, Segment: r.name, Line: r.line, Organization: organization, Sequence: record.Sequence}
	evidence := r.node.chain(organization, r.name)
	if record.Sequence != c.Sequence+1 {
		where.Problem = fmt.Sprintf("follows record %d: records are gone or in another order", c.Sequence)
		r.verification.find(where)
		if record.Sequence <= c.Sequence {
			return
		}
	} else {
		where.Problem = r.check(c, record)
		if where.Problem != "" {
			r.verification.find(where)
		}
	}
	place := *c
	place.Sequence, place.Hash = record.Sequence, record.Hash
	if r.file.header.Bare() {
		evidence.addBare(record.Sequence, record.Sequence, time.Unix(0, format.NanosOf(record.Text)))
	} else if problem := r.checkMAC(r.node, &place, &record.MAC, time.Unix(0, format.NanosOf(record.Text)), 1); problem != "" && where.Problem == "" {
		where.Problem = problem
		r.verification.find(where)
	}
	// The next lines are checked against the hash in this line, so that one edit is reported once.
	c.Sequence, c.Hash = record.Sequence, record.Hash
	evidence.add(record.Sequence, record.Hash)
}

// check adds a record to the chain, and returns the problem with the record.
func (r *segmentReader) check(c *storage.AuditChain, record *format.Record) (problem string) {
	var hash [sha256.Size]byte
	hash, r.scratch = format.Next(c, record.Text, r.scratch)
	return r.parser.Problem(record, hash != record.Hash)
}

func (r *segmentReader) takeCheckpoint(checkpoint *storage.AuditCheckpoint) {
	if checkpoint.Node != r.node.name || checkpoint.Segment != r.name {
		r.find("is a checkpoint of another segment")
		return
	}
	c := *checkpoint
	c.Data, c.Signature = append([]byte(nil), c.Data...), append([]byte(nil), c.Signature...)
	r.addCheckpoint(&c, false, r.line)
	said, err := format.ReadCheckpoint(c.Data)
	if err != nil {
		return // addCheckpoint has reported it
	}
	switch header := r.file.header; {
	case header == nil: // it has been reported
	case said.Header != "" && said.Header != header.Hash():
		r.find(fmt.Sprintf("checkpoint %d was signed over another first line of the segment", said.Number))
	case r.file.checkpoint == 0 && said.Number != header.Checkpoint+1:
		r.find(fmt.Sprintf("checkpoint %d follows checkpoint %d, which the segment follows", said.Number, header.Checkpoint))
	case r.file.checkpoint > 0 && said.Number != r.file.checkpoint+1:
		r.find(fmt.Sprintf("checkpoint %d follows checkpoint %d", said.Number, r.file.checkpoint))
	}
	r.file.checkpoint = said.Number
	r.file.final = said.Final
	for _, head := range said.Chains {
		if head.Segment != r.name {
			continue
		}
		var now storage.AuditChain
		if c := r.chains[head.Organization]; c != nil {
			now = *c
		}
		if now.Sequence != head.Sequence || hex.EncodeToString(now.Hash[:]) != head.Hash {
			r.verification.find(Finding{
				Node: r.node.name, Segment: r.name, Line: r.line, Organization: head.Organization, Sequence: min(now.Sequence+1, head.Sequence),
				Problem: fmt.Sprintf("checkpoint %d was signed over %d records; %d are before it", said.Number, head.Sequence, now.Sequence),
			})
		}
	}
}

// readStore reads all records in the store.
func (v *verification) readStore(ctx context.Context, store Source) error {
	chains, err := store.AuditChains(ctx, "")
	if err != nil {
		return fmt.Errorf("reading chains: %w", err)
	}
	organizations := make(map[string]bool)
	for _, c := range chains {
		organizations[c.OrganizationID] = true
	}
	for _, n := range v.nodes {
		for name := range n.chains {
			organizations[name.organization] = true
		}
	}
	for organization := range organizations {
		if err := v.readChunks(ctx, store, organization); err != nil {
			return fmt.Errorf("reading chunks: %w", err)
		}
		if err := v.readOwn(ctx, store, organization); err != nil {
			return fmt.Errorf("reading records: %w", err)
		}
	}
	for _, c := range chains {
		if last := v.node(c.Node).chain(c.OrganizationID, c.Segment).last(); last < c.Sequence {
			v.find(Finding{
				Node: c.Node, Segment: c.Segment, Organization: c.OrganizationID, Sequence: last + 1,
				Problem: fmt.Sprintf("records %d to %d are gone from the store", last+1, c.Sequence),
			})
		}
	}
	if err := v.checkHeads(ctx, store, chains); err != nil {
		return err
	}
	// Journals are read before the checkpoints, so their records are compared with the statements here.
	for _, n := range v.nodes {
		for name, c := range n.chains {
			for sequence := range c.heads {
				if hash, ok := c.at(sequence); ok {
					v.meet(n, c, name.organization, name.segment, sequence, hash)
				}
			}
		}
	}
	return nil
}

// checkHeads compares the store's own records with the ends of their chains that the store states. The next record
// follows such an end. before has the ends that the store stated before the records were read: beside a gateway there may
// be more records since.
func (v *verification) checkHeads(ctx context.Context, store Source, before []storage.AuditChain) error {
	after, err := store.AuditChains(ctx, "")
	if err != nil {
		return fmt.Errorf("reading chains: %w", err)
	}
	type chainKey struct{ node, organization string }
	now := make(map[chainKey]storage.AuditChain)
	for _, c := range after {
		if c.Segment == storage.AuditStoreSegment {
			now[chainKey{c.Node, c.OrganizationID}] = c
		}
	}
	wrong := func(n *nodeEvidence, organization string, sequence int64) {
		v.find(Finding{
			Node: n.name, Segment: storage.AuditStoreSegment, Organization: organization, Sequence: sequence,
			Problem: "is not where the store says that the chain ends",
		})
	}
	for _, c := range before {
		if c.Segment != storage.AuditStoreSegment {
			continue
		}
		n := v.node(c.Node)
		for _, s := range n.chain(c.OrganizationID, c.Segment).spans {
			if s.last == c.Sequence && s.hash != c.Hash {
				wrong(n, c.OrganizationID, s.last)
			}
		}
	}
	for _, n := range v.nodes {
		for name, c := range n.chains {
			if name.segment != storage.AuditStoreSegment || len(c.spans) == 0 {
				continue
			}
			last := slices.MaxFunc(c.spans, func(a, b span) int { return cmp.Compare(a.last, b.last) })
			head := now[chainKey{n.name, name.organization}]
			if head.Sequence < last.last || head.Sequence == last.last && head.Hash != last.hash {
				wrong(n, name.organization, last.last)
			}
			v.checkHead(n, &head)
		}
	}
	return nil
}

// pageChunks is the number of chunks that are read at once.
const pageChunks = 256

// readChunks reads the chunks of an organization, the latest first, a page at a time.
func (v *verification) readChunks(ctx context.Context, store Source, organization string) error {
	type key struct {
		node, segment string
		first         int64
	}
	seen := make(map[key]bool)
	filter := storage.AuditFilter{OrganizationID: organization, Limit: pageChunks}
	for {
		chunks, err := store.AuditChunks(ctx, filter)
		if err != nil {
			return err
		}
		fresh := 0
		for i := range chunks {
			c := &chunks[i]
			if k := (key{c.Node, c.Segment, c.First}); !seen[k] {
				seen[k] = true
				fresh++
				v.takeChunk(c)
			}
		}
		if len(chunks) < filter.Limit {
			return nil
		}
		to := chunks[len(chunks)-1].To.Add(time.Microsecond)
		if fresh == 0 || (!filter.To.IsZero() && !to.Before(filter.To)) {
			filter.Limit *= 2 // the chunks of more than one page overlap
			continue
		}
		filter.To = to
	}
}

func (v *verification) takeChunk(c *storage.AuditChunk) {
	v.report.Chunks++
	n := v.node(c.Node)
	records, err := former.ReadChunk(c)
	var wrong *format.RecordError
	if errors.As(err, &wrong) {
		v.find(Finding{Node: c.Node, Segment: c.Segment, Organization: c.OrganizationID, Sequence: wrong.Sequence, Problem: "in the store " + wrong.Err.Error()})
	}
	if err == nil && len(records) > 0 {
		if from, to := spanOf(records); !c.From.Equal(from) || !c.To.Equal(to) {
			v.find(Finding{Node: c.Node, Segment: c.Segment, Organization: c.OrganizationID, Sequence: c.First, Problem: fmt.Sprintf("records %d to %d are from another time than the store says: whoever asks for theirs does not find them", c.First, c.Last)})
		}
	}
	evidence := n.chain(c.OrganizationID, c.Segment)
	s := span{first: c.First, last: c.Last}
	if len(records) > 0 {
		s.previous, s.hash = records[0].Previous, records[len(records)-1].Hash
	}
	evidence.spans = append(evidence.spans, s)
	if err == nil && len(records) > 0 {
		v.takeChunkMAC(n, evidence, c, records)
	}
	for i := range records {
		if r := &records[i]; wrong == nil || r.Sequence < wrong.Sequence {
			if _, ok := evidence.at(r.Sequence); !ok {
				v.report.Records++
			}
			v.meet(n, evidence, c.OrganizationID, c.Segment, r.Sequence, r.Hash)
		}
	}
}

// spanOf returns the time span of a chunk with these records, as chunkWriter.finish computes it. Readers ask the store by
// that span, and no hash covers it.
func spanOf(records []storage.AuditRecord) (from, to time.Time) {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for i := range records {
		at := format.NanosOf(records[i].Text)
		first, last = min(first, at), max(last, at)
	}
	return format.ChunkSpan(first, last)
}

// readOwn reads the records that the store itself has made for an organization.
func (v *verification) readOwn(ctx context.Context, store Source, organization string) error {
	records, err := store.AuditRecords(ctx, storage.AuditFilter{OrganizationID: organization})
	if err != nil {
		return err
	}
	for i := range records {
		r := &records[i]
		v.report.Records++
		n := v.node(r.Node)
		evidence := n.chain(r.OrganizationID, r.Segment)
		changed := r.Sum() != r.Hash
		if changed {
			v.find(Finding{Node: r.Node, Segment: r.Segment, Organization: r.OrganizationID, Sequence: r.Sequence, Problem: "the record or its hash was changed"})
		}
		if !r.At.Equal(format.TimeOf(r.Text).Truncate(format.Precision)) {
			v.find(Finding{Node: r.Node, Segment: r.Segment, Organization: r.OrganizationID, Sequence: r.Sequence, Problem: "is from another time than the store says: whoever asks for its time does not find it"})
		}
		if !changed {
			v.takeRecordMAC(n, evidence, r)
		}
		evidence.spans = append(evidence.spans, span{first: r.Sequence, last: r.Sequence, previous: r.Previous, hash: r.Hash})
		v.meet(n, evidence, r.OrganizationID, r.Segment, r.Sequence, r.Hash)
	}
	return nil
}
