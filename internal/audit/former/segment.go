// Package former reads what former versions of durward have written: segments of formats 1 to 6, the ring beside them, and
// chunks of formats 1 to 6. Nothing writes these any more. The package goes away with the next release, which reads only
// what this one writes. Stores keep chunks for longer than a release: before that, those must be written anew.
package former

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// A record of a former segment is the line
//
//	{"o":"<organization>","n":<sequence>,"h":"<hash, base64url>","m":"<MAC, base64url>","e":<entry>}
//
// byte for byte: the reader accepts no other spelling. An entry with a shared part has that part, or the sequence of the
// record that has it ("0":17). A segment has a shared part once for each chain.
const (
	recordStart = `{"o":"`
	recordNext  = `","n":`
	recordHash  = `,"h":"`
	recordMAC   = `","m":"`
	recordEntry = `","e":`
	hashLength  = 43
	macLength   = 27
)

// These bounds limit the shared parts of a chain that records in a segment can refer to. Shared parts beyond them are
// written in each record. The bounds are part of the format: a reader with other bounds would take such a part for a
// repetition.
const (
	maxShared     = 4096
	maxSharedSize = 1 << 20
)

var hashText = base64.RawURLEncoding.Strict()

// NewParser returns a parser of segments of this and of former versions.
func NewParser() *format.Parser { return &format.Parser{Former: new(Parser)} }

// IsRecord implements format.Former.
func (p *Parser) IsRecord(line []byte) bool { return bytes.HasPrefix(line, []byte(recordStart)) }

// Parser is a format.Former. It reads the records of one segment, from its first one.
type Parser struct {
	chains map[string]*chain // by organization
	last   *part             // of the record that was read last; nil: it has none
	text   []byte
}

// chain holds the shared parts of a chain that were read so far.
type chain struct {
	byText     map[string]*part
	bySequence map[int64]*part
	size       int
}

// part is one shared part.
type part struct {
	text     string
	sequence int64 // of the record that has it; 0: no record can refer to it
	lost     bool  // a record refers to it, and it is missing
	wrong    bool  // it was changed, and that has been reported
}

// Parse implements format.Former. It does not parse the own part of the entry: the hash shows
// whether it was changed. The record refers to the line, or to memory of the parser. It is valid until the next call.
func (p *Parser) Parse(line []byte) (r format.Record, err error) {
	p.last = nil
	organization, rest, ok := bytes.Cut(line[min(len(line), len(recordStart)):], []byte(recordNext))
	if !ok || !p.IsRecord(line) || !format.ValidOrganization(organization) {
		return r, format.ErrMalformed
	}
	number, rest, ok := bytes.Cut(rest, []byte(recordHash))
	if !ok {
		return r, format.ErrMalformed
	}
	if r.Sequence, ok = parseSequence(number); !ok {
		return r, format.ErrMalformed
	}
	if len(rest) < hashLength {
		return r, format.ErrMalformed
	}
	if n, err := hashText.Decode(r.Hash[:], rest[:hashLength]); err != nil || n != len(r.Hash) {
		return r, format.ErrMalformed
	}
	rest = rest[hashLength:]
	if mac, ok := bytes.CutPrefix(rest, []byte(recordMAC)); ok {
		if len(mac) < macLength {
			return r, format.ErrMalformed
		}
		if n, err := hashText.Decode(r.MAC[:], mac[:macLength]); err != nil || n != len(r.MAC) || r.MAC == (storage.AuditMAC{}) {
			return r, format.ErrMalformed
		}
		rest = mac[macLength:]
	}
	text, ok := bytes.CutPrefix(rest, []byte(recordEntry))
	if !ok || len(text) < len("{}}") || text[len(text)-1] != '}' {
		return r, format.ErrMalformed
	}
	r.Organization, r.Text = organization, text[:len(text)-1]
	if bytes.HasPrefix(r.Text, []byte(format.SharingStart)) {
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

// resolve puts a record's shared part into its text.
func (p *Parser) resolve(r *format.Record) error {
	c := p.chains[string(r.Organization)]
	if c == nil {
		c = &chain{byText: make(map[string]*part), bySequence: make(map[int64]*part)}
		if p.chains == nil {
			p.chains = make(map[string]*chain)
		}
		p.chains[string(r.Organization)] = c
	}
	if _, text := format.SplitShared(r.Text); text != nil {
		if c.byText[string(text)] != nil {
			return fmt.Errorf("%w: it repeats what another record has", format.ErrMalformed)
		}
		p.last = c.define(string(text), r.Sequence)
		return nil
	}
	own, sequence, ok := splitReference(r.Text)
	if !ok || sequence >= r.Sequence {
		return format.ErrMalformed
	}
	s := c.bySequence[sequence]
	if s == nil {
		s = &part{text: "{}", sequence: sequence, lost: true}
		c.bySequence[sequence] = s
	}
	p.text = format.AppendShared(append(p.text[:0], own...), s.text)
	r.Text, p.last = p.text, s
	return nil
}

// define notes that the record with this sequence has a shared part. Records can refer to it if there is room.
func (c *chain) define(text string, sequence int64) *part {
	s := &part{text: text}
	if len(c.byText) < maxShared && c.size+len(text) <= maxSharedSize {
		s.sequence = sequence
		c.byText[text], c.bySequence[sequence] = s, s
		c.size += len(text)
	}
	return s
}

// splitReference splits an entry that refers to the record with its shared part.
func splitReference(text []byte) (own []byte, sequence int64, ok bool) {
	at := bytes.LastIndex(text, []byte(format.SharedStart))
	if at < 0 || text[len(text)-1] != '}' {
		return nil, 0, false
	}
	sequence, ok = parseSequence(text[at+len(format.SharedStart) : len(text)-1])
	return text[:at], sequence, ok
}

// Problem implements format.Former. An error in a shared part is reported once, for the first record in which it is found. A correct record shows that its shared
// part is correct too.
func (p *Parser) Problem(r *format.Record, changed bool) string {
	s := p.last
	switch {
	case s != nil && s.lost && !s.wrong:
		s.wrong = true
		return fmt.Sprintf("record %d, which has a part of it and of those that share it, is gone or was changed", s.sequence)
	case !changed:
		if s != nil && !s.lost {
			s.wrong = false
		}
		return ""
	case s != nil && s.wrong:
		return ""
	case s != nil && s.sequence == r.Sequence:
		s.wrong = true
		return "the record or its hash was changed; those that share a part of it cannot be checked"
	}
	return "the record or its hash was changed"
}

// hashSize is the size of a hash.
const hashSize = sha256.Size
