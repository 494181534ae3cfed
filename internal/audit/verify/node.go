package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// checkNode compares all facts about a node with each other.
func (v *verification) checkNode(n *nodeEvidence) {
	for name, c := range n.chains {
		v.checkChain(n, name, c)
		if _, ok := segments.Number(name.segment); !ok && name.segment != storage.AuditStoreSegment {
			v.find(Finding{Node: n.name, Segment: name.segment, Organization: name.organization, Sequence: 1, Problem: "is in a segment that no journal can have"})
		}
	}
	v.noteUncovered(n)
	last := 0
	for name := range n.chains {
		number, _ := segments.Number(name.segment)
		last = max(last, number)
	}
	// A number may be forged. Each segment that is missing is a finding, so a full report ends the search.
	for number := 1; number <= max(last, n.newest) && len(v.report.Findings) < maxFindings; number++ {
		switch {
		case number <= n.newest:
			v.checkSegment(n, segments.Name(number), number == n.newest)
		case !n.meanwhile[number]:
			v.find(Finding{Node: n.name, Segment: segments.Name(number), Problem: "the segment and its final checkpoint are gone"})
		default:
			v.report.Notes = append(v.report.Notes, "node "+n.name+", segment "+segments.Name(number)+" was written meanwhile and is not verified")
		}
	}
}

// noteUncovered notes how many of the store's own records no checkpoint covers, when the node's journal is not here. That
// journal would have the next checkpoint. The records may be those of ten seconds on another machine, or an attacker may
// have removed the journal.
func (v *verification) noteUncovered(n *nodeEvidence) {
	if len(n.files) > 0 {
		return
	}
	var uncovered int64
	for name, c := range n.chains {
		covered := int64(0)
		for sequence := range c.heads {
			covered = max(covered, sequence)
		}
		if name.segment == storage.AuditStoreSegment {
			uncovered += max(c.last()-covered, 0)
		}
	}
	if uncovered > 0 {
		v.report.Notes = append(v.report.Notes, fmt.Sprintf("node %s, whose journal is not here: the last records of the store itself, %d in all, are covered by no checkpoint", n.name, uncovered))
	}
}

// readMeanwhile finds the segment that grew when the reading began, and the segments that began later. For a segment that
// the store knows and that was not among the files, there is now a file or a final checkpoint: a file is removed only
// after its final checkpoint is stored.
func (v *verification) readMeanwhile(ctx context.Context, dir string, store Source) error {
	for _, n := range v.nodes {
		if err := n.readMeanwhile(dir); err != nil {
			return err
		}
	}
	checkpoints, err := store.AuditCheckpoints(ctx, "")
	if err != nil {
		return fmt.Errorf("reading checkpoints: %w", err)
	}
	for i := range checkpoints {
		c := &checkpoints[i]
		n := v.nodes[c.Node]
		said, err := format.ReadCheckpoint(c.Data)
		if n == nil || err != nil || !format.CheckSignature(c, v.keys.Signatures) {
			continue
		}
		number, _ := segments.Number(c.Segment)
		if !n.local {
			n.meanwhile[number], n.meanwhile[number+1] = true, true // the node may have begun another segment
		} else if said.Final {
			n.meanwhile[number] = true
		}
	}
	return nil
}

// readMeanwhile does the part of the node's files. It needs those read first, and the node's chains and final checkpoints.
func (n *nodeEvidence) readMeanwhile(dir string) error {
	here := n.local && dir != "" && segments.IsNode(n.name)
	if here {
		if err := n.dropBlank(filepath.Join(dir, n.name)); err != nil {
			return err
		}
	}
	ended := 0
	for name := range n.finals {
		number, _ := segments.Number(name)
		ended = max(ended, number)
	}
	n.newest = ended
	for name := range n.files {
		number, _ := segments.Number(name)
		n.newest = max(n.newest, number)
	}
	if !n.local {
		for name := range n.chains {
			if name.segment == segments.Name(ended+1) {
				n.newest = ended + 1
			}
		}
	}
	n.meanwhile = make(map[int]bool)
	if !here {
		return nil
	}
	numbers, err := segments.List(filepath.Join(dir, n.name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("listing segments: %w", err)
	}
	for _, number := range numbers {
		n.meanwhile[number] = true
	}
	return nil
}

func (v *verification) checkSegment(n *nodeEvidence, name string, newest bool) {
	v.report.Segments++
	file, final := n.files[name], n.finals[name]
	switch {
	case final == nil && file == nil && (!newest || n.local):
		v.find(Finding{Node: n.name, Segment: name, Problem: "the segment and its final checkpoint are gone"})
	case final == nil && file == nil:
		v.report.Notes = append(v.report.Notes, "node "+n.name+" keeps its journal elsewhere: what it has not shipped yet is not verified")
	case final == nil && !newest:
		v.find(Finding{Node: n.name, Segment: name, Problem: "the segment ends without its final checkpoint"})
	}
	if file != nil {
		v.checkBeginning(n, name, file)
	}
	if final != nil {
		v.checkEnd(n, name, final)
	}
}

// checkBeginning compares a segment's first line with what is known of the node from elsewhere.
func (v *verification) checkBeginning(n *nodeEvidence, name string, file *fileEvidence) {
	if file.header == nil && n.stored(name) {
		v.find(Finding{Node: n.name, Segment: name, Problem: "its file has no beginning, and the store has something of it: it was cut off"})
	}
	if file.header != nil && file.header.Checkpoint > 0 {
		before := n.checkpoints[file.header.Checkpoint]
		if before == nil || format.CheckpointHash(&before.AuditCheckpoint) != file.header.Previous {
			v.find(Finding{Node: n.name, Segment: name, Line: 1, Problem: fmt.Sprintf("checkpoint %d, which the segment follows, is gone: checkpoints were rolled back", file.header.Checkpoint)})
		}
	}
}

// checkEnd looks for records behind those that the final checkpoint of a segment names.
func (v *verification) checkEnd(n *nodeEvidence, name string, final *checkpointEvidence) {
	ends := make(map[string]int64)
	for _, head := range final.said.Chains {
		if head.Segment == name {
			ends[head.Organization] = head.Sequence
		}
	}
	for chain, c := range n.chains {
		if chain.segment == name && c.last() > ends[chain.organization] {
			v.find(Finding{
				Node: n.name, Segment: name, Organization: chain.organization, Sequence: ends[chain.organization] + 1,
				Problem: "was added after the segment had ended",
			})
		}
	}
}

// checkChain finds gaps in a chain, and records that checkpoints cover and that are missing.
func (v *verification) checkChain(n *nodeEvidence, name chainName, c *chainEvidence) {
	at := func(sequence int64, problem string) {
		v.find(Finding{Node: n.name, Segment: name.segment, Organization: name.organization, Sequence: sequence, Problem: problem})
	}
	slices.SortFunc(c.spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	var sequence int64
	var hash [sha256.Size]byte
	for _, s := range c.spans {
		switch {
		case s.first > sequence+1:
			at(sequence+1, fmt.Sprintf("records %d to %d are gone from the store", sequence+1, s.first-1))
		case s.first <= sequence:
			at(s.first, fmt.Sprintf("records %d to %d are in the store twice", s.first, min(sequence, s.last)))
		case s.previous != hash:
			at(s.first, "does not follow the record before it")
		}
		sequence, hash = s.last, s.hash
		if written, ok := c.at(s.last); ok && written != s.hash {
			at(s.last, "is another one in the journal than in the store")
		}
	}
	last := c.last()
	for _, claimed := range slices.Sorted(maps.Keys(c.heads)) {
		for _, said := range c.heads[claimed] {
			if claimed > last {
				at(last+1, fmt.Sprintf("records %d to %d are gone: checkpoint %d was signed over them", last+1, claimed, said.checkpoint))
			}
		}
	}
}
