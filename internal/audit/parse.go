package audit

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/durward-gateway/durward/storage"
)

// parser reads the lines of one segment, from its first one.
type parser struct {
	chains map[string]*parsedChain // by organization
}

// parsedChain holds the shared parts of a chain that were read so far.
type parsedChain struct {
	sharedParts
	bySequence map[int64]*shared
}

// parse reads a line without its line end. It does not parse the own parts of entries: their hashes show whether they
// were changed. The result refers to the bytes of b.
func (p *parser) parse(b []byte) (line, error) {
	if bytes.HasPrefix(b, []byte(recordStart)) {
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
	return line{header: &h}, nil
}

func (p *parser) parseRecord(b []byte) (r record, err error) {
	organization, rest, ok := bytes.Cut(b[len(recordStart):], []byte(recordNext))
	if !ok || !validOrganization(organization) {
		return r, errLine
	}
	number, rest, ok := bytes.Cut(rest, []byte(recordHash))
	if !ok {
		return r, errLine
	}
	if r.sequence, ok = parseSequence(number); !ok {
		return r, errLine
	}
	if len(rest) < hashLength {
		return r, errLine
	}
	if n, err := hashText.Decode(r.hash[:], rest[:hashLength]); err != nil || n != len(r.hash) {
		return r, errLine
	}
	rest = rest[hashLength:]
	if mac, ok := bytes.CutPrefix(rest, []byte(recordMAC)); ok {
		if len(mac) < macLength {
			return r, errLine
		}
		if n, err := hashText.Decode(r.mac[:], mac[:macLength]); err != nil || n != len(r.mac) || r.mac == (storage.AuditMAC{}) {
			return r, errLine
		}
		rest = mac[macLength:]
	}
	text, ok := bytes.CutPrefix(rest, []byte(recordEntry))
	if !ok || len(text) < len("{}}") || text[len(text)-1] != '}' {
		return r, errLine
	}
	r.organization, r.text = organization, text[:len(text)-1]
	if bytes.HasPrefix(r.text, []byte(sharingStart)) {
		err = p.resolve(&r)
	}
	return r, err
}

// parseSequence reads a sequence. It accepts only one spelling.
func parseSequence(text []byte) (sequence int64, ok bool) {
	if len(text) == 0 || len(text) > 18 || text[0] == '0' {
		return 0, false
	}
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		sequence = 10*sequence + int64(c-'0')
	}
	return sequence, true
}

// resolve finds a record's shared part.
func (p *parser) resolve(r *record) error {
	c := p.chains[string(r.organization)]
	if c == nil {
		c = &parsedChain{bySequence: make(map[int64]*shared)}
		if p.chains == nil {
			p.chains = make(map[string]*parsedChain)
		}
		p.chains[string(r.organization)] = c
	}
	if own, part := splitShared(r.text); part != nil {
		if c.byText[string(part)] != nil {
			return fmt.Errorf("%w: it repeats what another record has", errLine)
		}
		r.text, r.shared = own, newShared(part)
		if c.define(r.shared, r.sequence) {
			c.bySequence[r.sequence] = r.shared
		}
		return nil
	}
	own, sequence, ok := splitReference(r.text)
	if !ok || sequence >= r.sequence {
		return errLine
	}
	s := c.bySequence[sequence]
	if s == nil {
		s = newShared([]byte("{}"))
		s.lost, s.sequence = true, sequence
		c.bySequence[sequence] = s
	}
	r.text, r.shared = own, s
	return nil
}

// whole returns the full text of the entry.
func (r *record) whole() []byte {
	if r.shared == nil {
		return bytes.Clone(r.text)
	}
	return joinShared(r.text, r.shared.text)
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
