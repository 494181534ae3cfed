package format

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/durward-gateway/durward/storage"
)

// Former reads the records of a former segment.
type Former interface {
	// IsRecord reports whether a line is such a record.
	IsRecord(line []byte) bool
	// Parse reads a line, without its line end. The record is valid until the next call.
	Parse(line []byte) (Record, error)
	// Problem returns the problem with the record that was read last, or "". changed reports whether its hash is wrong.
	Problem(r *Record, changed bool) string
}

// Parser reads the lines of one segment, from its first one.
type Parser struct {
	// Former reads records of former segments. nil: there are none.
	Former Former
	// Format is that of the segment. 0: no header was read.
	Format int

	former  bool // the record that was read last is one of a former segment
	scratch []byte
}

// Parse reads a line without its line end. It does not parse entries: their hashes show whether they were changed. The
// result refers to the bytes of b, or to memory of the parser. It is valid until the next call.
func (p *Parser) Parse(b []byte) (Line, error) {
	if p.former = p.Former != nil && p.Former.IsRecord(b); p.former || IsRecord(b) {
		r, err := p.record(b)
		return Line{Record: r}, err
	}
	if bytes.HasPrefix(b, []byte(`{"checkpoint":{`)) {
		c, err := parseSigned(b)
		return Line{Checkpoint: c}, err
	}
	var h Header
	if err := json.Unmarshal(b, &h); err != nil || !bytes.Equal(Marshal(h), b) {
		return Line{}, ErrMalformed
	}
	if h.Format < LongSegmentFormat || h.Format > SegmentFormat {
		return Line{}, fmt.Errorf("%w: format %d is not known to this durward", ErrMalformed, h.Format)
	}
	if p.Format == 0 {
		p.Format = h.Format
	}
	return Line{Header: &h}, nil
}

// record reads a record in the form of the segment. A segment without a header may have either form.
func (p *Parser) record(b []byte) (r Record, err error) {
	if p.Format > 0 && p.former != (p.Format <= JSONSegmentFormat) {
		return r, fmt.Errorf("%w: segments of format %d have no such records", ErrMalformed, p.Format)
	}
	if p.former {
		return p.Former.Parse(b)
	}
	r, p.scratch, err = ParseRecord(b, p.scratch)
	return r, err
}

// Problem returns the problem with the record that was read last, or "". changed reports whether its hash is wrong.
func (p *Parser) Problem(r *Record, changed bool) string {
	switch {
	case p.former:
		return p.Former.Problem(r, changed)
	case changed:
		return "the record or its hash was changed"
	}
	return ""
}

func parseSigned(b []byte) (*storage.AuditCheckpoint, error) {
	var s signedLine
	if err := json.Unmarshal(b, &s); err != nil || !bytes.Equal(Marshal(s), b) {
		return nil, ErrMalformed
	}
	said, err := ReadCheckpoint(s.Checkpoint)
	if err != nil {
		return nil, err
	}
	return &storage.AuditCheckpoint{
		Node: said.Node, Segment: said.Segment, Number: said.Number, At: said.Time, Data: s.Checkpoint, Signature: s.Signature,
	}, nil
}
