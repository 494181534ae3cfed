package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// Source is the part of a store that Log reads.
type Source interface {
	AuditChains(ctx context.Context, node string) ([]storage.AuditChain, error)
	AuditChunks(ctx context.Context, f storage.AuditFilter) ([]storage.AuditChunk, error)
	AuditRecords(ctx context.Context, f storage.AuditFilter) ([]storage.AuditRecord, error)
	AuditCheckpoints(ctx context.Context, node string) ([]storage.AuditCheckpoint, error)
}

// Finding describes one sign of tampering: an edit, a gap, a wrong order, or missing records at an end.
type Finding struct {
	Node, Segment string
	// Organization and Sequence name the record, or the first affected one. Sequence is 0 when the finding is not about a
	// record.
	Organization string
	Sequence     int64
	// Line is the line of the segment's file, counted from 1. It is 0 when the finding is not about a line.
	Line    int
	Problem string
}

func (f Finding) String() string {
	text := "node " + f.Node
	if f.Segment != "" {
		text += ", segment " + f.Segment
	}
	if f.Line > 0 {
		text += fmt.Sprintf(", line %d", f.Line)
	}
	if f.Sequence > 0 {
		organization := f.Organization
		if organization == "" {
			organization = "the gateway itself"
		}
		text += fmt.Sprintf(", organization %s, record %d", organization, f.Sequence)
	}
	return text + ": " + f.Problem
}

// Anchor is a node's last checkpoint. An auditor who keeps it elsewhere can later check that no record up to it was
// removed, even by an attacker who can write to the disk and to the store.
type Anchor struct {
	Node   string
	Number int64
	Time   time.Time
	Hash   string
}

// Keys holds the keys with which Log checks.
type Keys struct {
	Signatures format.Verifier
	// MACs checks the MACs of records, for which it needs the master key. It is nil for auditors who must not hold that
	// key: then Log only finds missing MACs.
	MACs storage.AuditMACs
}

// Report lists the findings of Log, and counts what it has checked.
type Report struct {
	Findings []Finding
	// Notes has facts that an auditor should know and that are no sign of tampering.
	Notes                                  []string
	Records, Chunks, Segments, Checkpoints int
	Anchors                                []Anchor
	Standing                               Standing
}

// maxFindings is the most findings in a report: one edit can break many records.
const maxFindings = 1000

// ErrNothing reports that there is no audit log to verify.
var ErrNothing = errors.New("there is no audit log here")

// Journals names the place of the journals for Log.
type Journals struct {
	// Dir is the directory with a directory for each node. "" or a missing directory: there are no journals.
	Dir string
	// All reports whether every node that writes to the store has its journal in Dir. Then a missing journal is gone.
	// Else it may be on another machine.
	All bool
}

// Log checks journals and store against each other and against the signed checkpoints. It changes nothing, and may run
// beside a gateway. It returns an error when something could not be read. Signs of tampering are in the report.
func Log(ctx context.Context, journals Journals, store Source, keys Keys) (Report, error) {
	v := &verification{keys: keys, all: journals.All, here: make(map[string]bool), nodes: make(map[string]*nodeEvidence)}
	dir := journals.Dir
	// The order allows a gateway to run at the same time. A record is in the journal until it is in the store, and in the
	// store before the checkpoints that cover it.
	if err := v.readJournals(dir); err != nil {
		return v.report, err
	}
	if err := v.readCheckpoints(ctx, store); err != nil {
		return v.report, err
	}
	v.checkCheckpoints()
	if err := v.readStore(ctx, store); err != nil {
		return v.report, err
	}
	if err := v.readMeanwhile(ctx, dir, store); err != nil {
		return v.report, err
	}
	if len(v.nodes) == 0 {
		return v.report, ErrNothing
	}
	v.checkBare()
	for _, name := range slices.Sorted(maps.Keys(v.nodes)) {
		n := v.nodes[name]
		v.checkNode(n)
		for _, name := range slices.Sorted(maps.Keys(n.files)) {
			number, _ := segments.Number(name)
			if err := v.checkTail(n, filepath.Join(dir, n.name), number); err != nil {
				return v.report, fmt.Errorf("reading segment %s again: %w", name, err)
			}
		}
	}
	return v.report, nil
}

// chainName names a chain of a node.
type chainName struct{ organization, segment string }

type verification struct {
	keys   Keys
	all    bool            // see Journals.All
	here   map[string]bool // nodes with a directory for their journal, which may be empty
	nodes  map[string]*nodeEvidence
	report Report
}

// nodeEvidence collects all facts about a node.
type nodeEvidence struct {
	name        string
	local       bool // its journal is in the directory, or should be
	files       map[string]*fileEvidence
	checkpoints map[int64]*checkpointEvidence
	chains      map[chainName]*chainEvidence
	finals      map[string]*checkpointEvidence // by segment
	// newest is the number of the segment that grew when the reading began. meanwhile has the segments that may have
	// begun since.
	newest    int
	meanwhile map[int]bool

	sealing bool      // reports whether its records have MACs
	signed  time.Time // time of the last checkpoint over records that the node itself wrote
}

// fileEvidence collects the facts about a segment's file.
type fileEvidence struct {
	header     *format.Header
	checkpoint int64 // the number of the last checkpoint; 0: none
	final      bool
}

type checkpointEvidence struct {
	storage.AuditCheckpoint
	said   format.Checkpoint
	stored bool
}

// chainEvidence collects all facts about a chain.
type chainEvidence struct {
	journal []journalRun          // the records in the journal
	spans   []span                // the records in the store
	heads   map[int64][]statement // the statements of checkpoints about it
	bare    []bareRun
}

// journalRun holds the hashes of consecutive records. A line's sequence may be forged. So a gap takes no memory: one edit
// must not take memory for all records that it skips.
type journalRun struct {
	first  int64
	hashes [][sha256.Size]byte
}

func (r *journalRun) last() int64 { return r.first + int64(len(r.hashes)) - 1 }

// add adds a record of the journal. Its sequence must be after the earlier ones.
func (c *chainEvidence) add(sequence int64, hash [sha256.Size]byte) {
	if n := len(c.journal); n == 0 || c.journal[n-1].last() != sequence-1 {
		c.journal = append(c.journal, journalRun{first: sequence})
	}
	r := &c.journal[len(c.journal)-1]
	r.hashes = append(r.hashes, hash)
}

// at returns the hash of a record in the journal.
func (c *chainEvidence) at(sequence int64) (hash [sha256.Size]byte, ok bool) {
	i, found := slices.BinarySearchFunc(c.journal, sequence, func(r journalRun, sequence int64) int { return cmp.Compare(r.first, sequence) })
	if !found {
		i--
	}
	if i < 0 || sequence > c.journal[i].last() {
		return hash, false
	}
	return c.journal[i].hashes[sequence-c.journal[i].first], true
}

// inJournal returns the sequence of the last record in the journal, or 0.
func (c *chainEvidence) inJournal() int64 {
	if n := len(c.journal); n > 0 {
		return c.journal[n-1].last()
	}
	return 0
}

// span is a run of consecutive records in the store.
type span struct {
	first, last    int64
	previous, hash [sha256.Size]byte
}

// statement is the hash that a checkpoint has for one record.
type statement struct {
	hash       string
	checkpoint int64
	found      bool // see Checkpoint.Found
	met        bool
}

func (v *verification) node(name string) *nodeEvidence {
	n := v.nodes[name]
	if n == nil {
		n = &nodeEvidence{
			name: name, local: v.all || v.here[name], files: make(map[string]*fileEvidence), checkpoints: make(map[int64]*checkpointEvidence),
			chains: make(map[chainName]*chainEvidence), finals: make(map[string]*checkpointEvidence),
		}
		v.nodes[name] = n
	}
	return n
}

func (n *nodeEvidence) chain(organization, segment string) *chainEvidence {
	name := chainName{organization, segment}
	c := n.chains[name]
	if c == nil {
		c = &chainEvidence{heads: make(map[int64][]statement)}
		n.chains[name] = c
	}
	return c
}

func (v *verification) find(f Finding) {
	if len(v.report.Findings) < maxFindings && !slices.Contains(v.report.Findings, f) {
		v.report.Findings = append(v.report.Findings, f)
	}
}

// meet compares a record with the statements of checkpoints about it.
func (v *verification) meet(n *nodeEvidence, c *chainEvidence, organization, segment string, sequence int64, hash [sha256.Size]byte) {
	said := c.heads[sequence]
	for i := range said {
		if said[i].met = said[i].hash == hex.EncodeToString(hash[:]); !said[i].met {
			v.find(Finding{
				Node: n.name, Segment: segment, Organization: organization, Sequence: sequence,
				Problem: fmt.Sprintf("is not the record that checkpoint %d was signed over", said[i].checkpoint),
			})
			said[i].met = true // it has been reported
		}
	}
}

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

// addCheckpoint adds a checkpoint from the store, or from a line of a file.
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
	if stored && !c.At.Equal(said.Time.Truncate(format.Precision)) && !c.At.Equal(said.Time) {
		where.Problem = fmt.Sprintf("checkpoint %d is from another time than the store says", c.Number)
		v.find(where)
	}
	if known := n.checkpoints[c.Number]; known != nil {
		if format.CheckpointHash(&known.AuditCheckpoint) != format.CheckpointHash(c) {
			where.Problem = fmt.Sprintf("there are two different checkpoints %d: the journal or the store was rolled back", c.Number)
			v.find(where)
		}
		known.stored = known.stored || stored
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
		if !n.local || dir == "" {
			continue
		}
		numbers, err := segments.List(filepath.Join(dir, n.name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("listing segments: %w", err)
		}
		for _, number := range numbers {
			n.meanwhile[number] = true
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
	if file != nil && file.header == nil && n.stored(name) {
		v.find(Finding{Node: n.name, Segment: name, Problem: "its file has no beginning, and the store has something of it: it was cut off"})
	}
	if file != nil && file.header != nil && file.header.Checkpoint > 0 {
		before := n.checkpoints[file.header.Checkpoint]
		if before == nil || format.CheckpointHash(&before.AuditCheckpoint) != file.header.Previous {
			v.find(Finding{Node: n.name, Segment: name, Line: 1, Problem: fmt.Sprintf("checkpoint %d, which the segment follows, is gone: checkpoints were rolled back", file.header.Checkpoint)})
		}
	}
	if final == nil {
		return
	}
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

// stored reports whether the store has records or checkpoints of a segment.
func (n *nodeEvidence) stored(segment string) bool {
	for _, c := range n.checkpoints {
		if c.stored && c.Segment == segment {
			return true
		}
	}
	for name, c := range n.chains {
		if name.segment == segment && len(c.spans) > 0 {
			return true
		}
	}
	return false
}

func (c *chainEvidence) last() int64 {
	last := c.inJournal()
	for _, s := range c.spans {
		last = max(last, s.last)
	}
	return last
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
	if written, ok := c.at(sequence); ok && c.inJournal() > sequence && written != hash {
		at(sequence, "is another one in the journal than in the store")
	}
	last := c.last()
	for _, claimed := range slices.Sorted(maps.Keys(c.heads)) {
		for _, said := range c.heads[claimed] {
			if !said.met && claimed > last {
				at(last+1, fmt.Sprintf("records %d to %d are gone: checkpoint %d was signed over them", last+1, claimed, said.checkpoint))
			}
		}
	}
}

// readJournals reads the files of all journals in a directory.
func (v *verification) readJournals(dir string) error {
	if dir == "" {
		return nil
	}
	dirs, err := segments.Nodes(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing journals: %w", err)
	}
	for _, dir := range dirs {
		numbers, err := segments.List(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue // it was shipped and removed after it was listed
		}
		if err != nil {
			return fmt.Errorf("listing segments: %w", err)
		}
		v.here[filepath.Base(dir)] = true
		kept, err := filepath.Glob(filepath.Join(dir, "*"+segments.DamagedSuffix))
		if err != nil {
			return fmt.Errorf("listing segments: %w", err)
		}
		if len(numbers)+len(kept) == 0 {
			continue
		}
		n := v.node(filepath.Base(dir))
		for _, path := range kept {
			v.find(Finding{Node: n.name, Problem: "the file " + filepath.Base(path) + " was set aside because lines in it are none, or the store has something else in its place or cannot keep it"})
		}
		for _, number := range numbers {
			if err := v.readSegment(n, dir, number); err != nil {
				return fmt.Errorf("reading segment %s: %w", segments.Name(number), err)
			}
		}
	}
	return nil
}
