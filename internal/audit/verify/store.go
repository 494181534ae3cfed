package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/storage"
)

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
		for i := range chunks {
			c := &chunks[i]
			if k := (key{c.Node, c.Segment, c.First}); !seen[k] {
				seen[k] = true
				v.takeChunk(c)
			}
		}
		if len(chunks) < filter.Limit {
			return nil
		}
		to := chunks[len(chunks)-1].To.Add(time.Microsecond)
		if !filter.To.IsZero() && !to.Before(filter.To) {
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
