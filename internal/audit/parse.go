package audit

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/storage"
)

// parser reads the lines of one segment, from its first one.
type parser struct {
	format  int // of the segment; 0: no header was read
	former  former.Parser
	json    bool // the record that was read last is one of a former segment
	scratch []byte
}

// parse reads a line without its line end. It does not parse entries: their hashes show whether they were changed. The
// result refers to the bytes of b, or to memory of the parser. It is valid until the next call.
func (p *parser) parse(b []byte) (line, error) {
	if p.json = former.IsRecord(b); p.json || format.IsRecord(b) {
		r, err := p.parseRecord(b)
		return line{record: r}, err
	}
	if bytes.HasPrefix(b, []byte(`{"checkpoint":{`)) {
		c, err := parseSigned(b)
		return line{checkpoint: c}, err
	}
	var h header
	if err := json.Unmarshal(b, &h); err != nil || !bytes.Equal(marshal(h), b) {
		return line{}, errLine
	}
	if h.Format < longSegmentFormat || h.Format > segmentFormat {
		return line{}, fmt.Errorf("%w: format %d is not known to this durward", errLine, h.Format)
	}
	if p.format == 0 {
		p.format = h.Format
	}
	return line{header: &h}, nil
}

// parseRecord reads a record in the form of the segment. A segment without a header may have either form.
func (p *parser) parseRecord(b []byte) (r format.Record, err error) {
	if p.format > 0 && p.json != (p.format <= jsonSegmentFormat) {
		return r, fmt.Errorf("%w: segments of format %d have no such records", errLine, p.format)
	}
	if p.json {
		return p.former.Parse(b)
	}
	r, p.scratch, err = format.ParseRecord(b, p.scratch)
	return r, err
}

// problem returns the problem with the record that was read last, or "". changed reports whether its hash is wrong.
func (p *parser) problem(r *format.Record, changed bool) string {
	switch {
	case p.json:
		return p.former.Problem(r, changed)
	case changed:
		return "the record or its hash was changed"
	}
	return ""
}

func parseSigned(b []byte) (*storage.AuditCheckpoint, error) {
	var s signedLine
	if err := json.Unmarshal(b, &s); err != nil || !bytes.Equal(marshal(s), b) {
		return nil, errLine
	}
	said, err := readCheckpoint(s.Checkpoint)
	if err != nil {
		return nil, err
	}
	return &storage.AuditCheckpoint{
		Node: said.Node, Segment: said.Segment, Number: said.Number, At: said.Time, Data: s.Checkpoint, Signature: s.Signature,
	}, nil
}
