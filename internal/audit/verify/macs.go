package verify

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// Standing counts the records by the proof that they have.
type Standing struct {
	// Checked reports whether MACs were checked. Else Log only looked whether there are MACs.
	Checked bool
	// Sealed is the number of records that have a MAC, or are covered by the MAC of a later record in their chunk. Since
	// is the time of the first one.
	Sealed int64
	Since  time.Time
	// Bare is the number of records without a MAC, which an older durward wrote. Unproven is the number of those that no
	// checkpoint of that durward covers.
	Bare, Unproven int64
	// Open is the number of the store's own records that no checkpoint covers yet. An attacker who can write to the store
	// can remove them.
	Open int64
}

// bareRun is a run of records of a chain without MACs.
type bareRun struct {
	first, last int64
	latest      time.Time
}

func (c *chainEvidence) addBare(first, last int64, latest time.Time) {
	if n := len(c.bare); n > 0 {
		run := &c.bare[n-1]
		if run.last == first-1 || last == run.first-1 { // a journal is read forward, a store backward
			run.first, run.last = min(run.first, first), max(run.last, last)
			if latest.After(run.latest) {
				run.latest = latest
			}
			return
		}
	}
	c.bare = append(c.bare, bareRun{first, last, latest})
}

// These are the problems with MACs.
const (
	missingMAC = "has no MAC: the gateway did not write it, or its MAC was taken away"
	foreignMAC = "has a MAC that is not of this gateway: the gateway did not write it"
)

// checkMAC returns the problem with the MAC of a record at a place. records is the number of records that the MAC covers.
func (v *verification) checkMAC(n *nodeEvidence, place *storage.AuditChain, mac *storage.AuditMAC, at time.Time, records int64) (problem string) {
	switch {
	case *mac == storage.AuditMAC{}:
		return missingMAC
	case v.keys.MACs != nil && !place.SealedBy(v.keys.MACs, mac):
		return foreignMAC
	}
	n.sealing = true
	s := &v.report.Standing
	s.Sealed += records
	if s.Since.IsZero() || at.Before(s.Since) {
		s.Since = at
	}
	return ""
}

// takeChunkMAC checks the MAC of a chunk, which is the MAC of its last record.
func (v *verification) takeChunkMAC(n *nodeEvidence, evidence *chainEvidence, c *storage.AuditChunk, records []storage.AuditRecord) {
	from, to := spanOf(records)
	if c.MAC == (storage.AuditMAC{}) {
		evidence.addBare(c.First, c.Last, to)
		return
	}
	place := format.ChainOf(c.OrganizationID, c.Node, c.Segment)
	place.Sequence, place.Hash = c.Last, records[len(records)-1].Hash
	fresh := int64(0) // records that are also in the journal have been counted
	for i := range records {
		if _, ok := evidence.at(records[i].Sequence); !ok {
			fresh++
		}
	}
	if problem := v.checkMAC(n, &place, &c.MAC, from, fresh); problem != "" {
		v.find(Finding{Node: c.Node, Segment: c.Segment, Organization: c.OrganizationID, Sequence: c.Last, Problem: "in the store " + problem})
	}
}

// takeRecordMAC checks the MAC of a record that the store itself has made.
func (v *verification) takeRecordMAC(n *nodeEvidence, evidence *chainEvidence, r *storage.AuditRecord) {
	if r.MAC == (storage.AuditMAC{}) {
		evidence.addBare(r.Sequence, r.Sequence, format.TimeOf(r.Text))
		return
	}
	place := format.ChainOf(r.OrganizationID, r.Node, r.Segment)
	place.Sequence, place.Hash = r.Sequence, r.Hash
	if problem := v.checkMAC(n, &place, &r.MAC, format.TimeOf(r.Text), 1); problem != "" {
		v.find(Finding{Node: r.Node, Segment: r.Segment, Organization: r.OrganizationID, Sequence: r.Sequence, Problem: problem})
	}
}

// checkHead checks the MAC of the record with which a chain of the store's own records ends, as the store states. The
// gateway continues a chain only after a record with a MAC.
func (v *verification) checkHead(n *nodeEvidence, head *storage.AuditChain) {
	known := slices.ContainsFunc(v.report.Findings, func(f Finding) bool {
		return f.Node == head.Node && f.Segment == head.Segment && f.Organization == head.OrganizationID
	})
	bare := head.MAC == storage.AuditMAC{}
	if known || head.Sequence == 0 || bare && !n.sealing || !bare && (v.keys.MACs == nil || head.SealedBy(v.keys.MACs, &head.MAC)) {
		return
	}
	v.find(Finding{
		Node: n.name, Segment: head.Segment, Organization: head.OrganizationID, Sequence: head.Sequence,
		Problem: "is where the store says that the chain ends, and what it says has no MAC of this gateway",
	})
}

// formerGrace is longer than the time between two checkpoints of a durward without MACs.
const formerGrace = time.Minute

// checkBare checks the records without MACs when all records are read. A node has MACs on all of its records or on none.
// When it has none, a durward without MACs wrote the records. That durward signed a checkpoint over them, or was killed
// before it could.
func (v *verification) checkBare() {
	v.report.Standing.Checked = v.keys.MACs != nil
	for _, n := range v.nodes {
		var bare, unproven int64
		var latest time.Time
		for name, c := range n.chains {
			own, all := c.covered(false), c.covered(true)
			if name.segment == storage.AuditStoreSegment {
				v.report.Standing.Open += max(c.last()-all, 0)
			}
			slices.SortFunc(c.bare, func(a, b bareRun) int { return cmp.Compare(a.first, b.first) })
			judged := int64(0)
			for _, run := range c.bare {
				if run.first = max(run.first, judged+1); run.first > run.last {
					continue // the run is in the journal and in the store
				}
				judged = run.last
				if problem := v.judgeBare(n, &run, own, all); problem != "" {
					v.find(Finding{Node: n.name, Segment: name.segment, Organization: name.organization, Sequence: run.first, Problem: problem})
					continue
				}
				bare += run.last - run.first + 1
				unproven += max(run.last-max(own, run.first-1), 0)
				if run.latest.After(latest) {
					latest = run.latest
				}
			}
		}
		v.report.Standing.Bare += bare
		v.report.Standing.Unproven += unproven
		if bare == 0 {
			continue
		}
		note := fmt.Sprintf("node %s: %d records, until %s, have no MAC: a durward before MACs wrote them, and only checkpoints cover them", n.name, bare, latest.UTC().Format(time.RFC3339))
		if unproven > 0 {
			note += fmt.Sprintf("; no checkpoint of that durward covers %d of them, which whoever could write the store or the journal can have added", unproven)
		}
		v.report.Notes = append(v.report.Notes, note)
	}
	slices.Sort(v.report.Notes)
}

// judgeBare returns the problem with records without MACs. It shortens run to those that have the problem. own is the
// last record that a checkpoint of the node itself covers, and all the last one that any checkpoint covers.
func (v *verification) judgeBare(n *nodeEvidence, run *bareRun, own, all int64) (problem string) {
	if n.sealing {
		return fmt.Sprintf("records %d to %d have no MAC, and the node's records have: the gateway did not write them, or their MACs were taken away", run.first, run.last)
	}
	if run.last <= own || v.report.Standing.Since.IsZero() {
		return ""
	}
	switch found := run.last <= all; {
	case !n.signed.IsZero() && !run.latest.After(n.signed.Add(formerGrace)):
		return ""
	case found && run.latest.Before(v.report.Standing.Since):
		return ""
	}
	run.first = max(run.first, own+1)
	return fmt.Sprintf("records %d to %d have no MAC, though others have since %s, and no checkpoint of their node covers them", run.first, run.last,
		v.report.Standing.Since.UTC().Format(time.RFC3339))
}

// covered returns the sequence of the last record that a checkpoint covers. With found it also counts checkpoints over
// records that the signer only found, see Checkpoint.Found.
func (c *chainEvidence) covered(found bool) (last int64) {
	for sequence, said := range c.heads {
		if found || slices.ContainsFunc(said, func(s statement) bool { return !s.found }) {
			last = max(last, sequence)
		}
	}
	return last
}
