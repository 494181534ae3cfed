package verify

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// readJournals reads the files of all journals in a directory.
func (v *verification) readJournals(dir string) error {
	dirs, err := segments.Nodes(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing journals: %w", err)
	}
	for _, dir := range dirs {
		numbers, err := segments.List(dir)
		aside, err2 := segments.Aside(dir)
		if err = errors.Join(err, err2); errors.Is(err, os.ErrNotExist) {
			continue // it was shipped and removed after it was listed
		}
		if err != nil {
			return fmt.Errorf("listing segments: %w", err)
		}
		v.here[filepath.Base(dir)] = true
		if len(numbers)+len(aside) == 0 {
			continue
		}
		n := v.node(filepath.Base(dir))
		for _, name := range aside {
			v.find(Finding{Node: n.name, Problem: "the file " + name + " was set aside because lines in it are none, or the store has something else in its place or cannot keep it"})
		}
		for _, number := range numbers {
			if err := v.readSegment(n, dir, number); err != nil {
				return fmt.Errorf("reading segment %s: %w", segments.Name(number), err)
			}
		}
	}
	return nil
}

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
	r.file.blank = r.line == 0
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

// dropBlank forgets the newest file of a node when it was read before its first line was there. The segment is then one
// that was written meanwhile. A file that is still blank was cut off, or nobody needs it.
func (n *nodeEvidence) dropBlank(dir string) error {
	if len(n.files) == 0 {
		return nil
	}
	name := slices.Max(slices.Collect(maps.Keys(n.files)))
	if !n.files[name].blank {
		return nil
	}
	number, _ := segments.Number(name)
	f, err := segments.Open(dir, number)
	if errors.Is(err, os.ErrNotExist) {
		delete(n.files, name) // it was shipped and removed meanwhile, or the store knows of no end of it
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading segment %s again: %w", name, err)
	}
	defer f.Close()
	text, err := format.NewLines(f).Next()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading segment %s again: %w", name, err)
	}
	if l, err := former.NewParser().Parse(text); err == nil && l.Header != nil && l.Header.Node == n.name && l.Header.Segment == name {
		delete(n.files, name)
	}
	return nil
}

// checkTail finds records of a segment that the store has and that are gone from the segment's file. The file may have
// lacked them when it was read first. So it is read again: records are in the file before they are in the store.
func (v *verification) checkTail(n *nodeEvidence, dir string, number int) error {
	name := segments.Name(number)
	if file := n.files[name]; file.header == nil || !n.ahead(name, file.checkpoint, func(organization string) int64 {
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
	c.Data, c.Signature = bytes.Clone(c.Data), bytes.Clone(c.Signature)
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
