package verify

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

func (v *verification) readCheckpoints(ctx context.Context, store Source) error {
	all, err := store.AuditCheckpoints(ctx, "")
	if err != nil {
		return fmt.Errorf("reading checkpoints: %w", err)
	}
	for i := range all {
		v.addCheckpoint(&all[i], true, 0)
	}
	return nil
}

// addCheckpoint adds a checkpoint from the store, or from a line of a file. Files are read first.
func (v *verification) addCheckpoint(c *storage.AuditCheckpoint, stored bool, line int) {
	n := v.node(c.Node)
	said, err := format.ReadCheckpoint(c.Data)
	where := Finding{Node: c.Node, Segment: c.Segment, Line: line}
	if err != nil || said.Node != c.Node || said.Segment != c.Segment || said.Number != c.Number {
		where.Problem = fmt.Sprintf("checkpoint %d is not what was written", c.Number)
		v.find(where)
		return
	}
	if !format.CheckSignature(c, v.keys.Signatures) {
		where.Problem = fmt.Sprintf("checkpoint %d is not signed by a key of this gateway", c.Number)
		v.find(where)
		return
	}
	if !c.At.Equal(said.Time.Truncate(format.Precision)) && !c.At.Equal(said.Time) {
		where.Problem = fmt.Sprintf("checkpoint %d is from another time than the store says", c.Number)
		v.find(where)
	}
	if known := n.checkpoints[c.Number]; known != nil {
		if format.CheckpointHash(&known.AuditCheckpoint) != format.CheckpointHash(c) {
			where.Problem = fmt.Sprintf("there are two different checkpoints %d: the journal or the store was rolled back", c.Number)
			v.find(where)
		}
		known.stored = stored
		return
	}
	v.report.Checkpoints++
	n.checkpoints[c.Number] = &checkpointEvidence{AuditCheckpoint: *c, said: said, stored: stored}
	n.sealing = n.sealing || said.Sealing()
	if !said.Found && said.Time.After(n.signed) {
		n.signed = said.Time
	}
}

// checkCheckpoints compares the checkpoints of each node with each other, and notes their statements about chains.
func (v *verification) checkCheckpoints() {
	for _, n := range v.nodes {
		numbers := slices.Sorted(maps.Keys(n.checkpoints))
		previous, lastStored := "", int64(0)
		for i, number := range numbers {
			c := n.checkpoints[number]
			if want := int64(i) + 1; number != want && (i == 0 || numbers[i-1] != number-1) {
				before := int64(0)
				if i > 0 {
					before = numbers[i-1]
				}
				v.find(Finding{Node: n.name, Segment: c.Segment, Problem: fmt.Sprintf("checkpoints %d to %d are gone", before+1, number-1)})
			} else if c.said.Previous != previous {
				v.find(Finding{Node: n.name, Segment: c.Segment, Problem: fmt.Sprintf("checkpoint %d does not follow checkpoint %d", number, number-1)})
			}
			previous = format.CheckpointHash(&c.AuditCheckpoint)
			if c.stored && lastStored != number-1 {
				v.find(Finding{Node: n.name, Segment: c.Segment, Problem: fmt.Sprintf("the store lacks checkpoints %d to %d", lastStored+1, number-1)})
			}
			if c.stored {
				lastStored = number
			}
			if c.said.Final {
				n.finals[c.Segment] = c
			}
			for _, head := range c.said.Chains {
				chain := n.chain(head.Organization, head.Segment)
				chain.heads[head.Sequence] = append(chain.heads[head.Sequence], statement{hash: head.Hash, checkpoint: number, found: c.said.Found})
			}
		}
		if len(numbers) > 0 {
			c := n.checkpoints[numbers[len(numbers)-1]]
			v.report.Anchors = append(v.report.Anchors, Anchor{Node: n.name, Number: c.Number, Time: c.said.Time, Hash: previous})
		}
	}
	slices.SortFunc(v.report.Anchors, func(a, b Anchor) int { return cmp.Compare(a.Node, b.Node) })
}
