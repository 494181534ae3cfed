package segments

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/storage"
)

// Follow takes the lines of text that continue the whole lines of the file, and returns them. text is the part of the
// ring after these. Follow stops at the first line that does not continue: a power cut may leave old pages in a ring
// beside new ones.
func (all *Found) Follow(text []byte) []byte {
	size := 0
	for !all.Final {
		line, _, ended := bytes.Cut(text[size:], []byte("\n"))
		if !ended || bytes.IndexByte(line, 0) >= 0 {
			break
		}
		l, err := all.parser.Parse(line)
		if err != nil || !all.continuedBy(&l) {
			break
		}
		all.take(&l)
		size += len(line) + 1
	}
	return text[:size]
}

// continuedBy reports whether the gateway wrote this line directly after the lines that were taken.
func (all *Found) continuedBy(l *format.Line) bool {
	switch {
	case l.Header != nil:
		return false
	case l.Checkpoint != nil:
		return all.continuedByCheckpoint(l.Checkpoint)
	}
	c := NewProvenChain(string(l.Record.Organization), all.Node, all.Segment)
	if known := all.Chains[c.OrganizationID]; known != nil {
		*c = *known
	}
	follows := *c
	proven, _ := all.Keys.Proves(&follows, &l.Record, all.Keys.Bare(all.Header))
	hash, _ := format.Next(&c.AuditChain, l.Record.Text, nil)
	return proven && l.Record.Sequence == c.Sequence && l.Record.Hash == hash
}

func (all *Found) continuedByCheckpoint(c *storage.AuditCheckpoint) bool {
	var number int64
	var previous string
	switch {
	case all.Checkpoint != nil:
		number, previous = all.Checkpoint.Number, format.CheckpointHash(all.Checkpoint)
	case all.Header != nil:
		number, previous = all.Header.Checkpoint, all.Header.Previous
	}
	said, err := format.ReadCheckpoint(c.Data)
	if err != nil || !all.Keys.Signed(c) || said.Node != all.Node || said.Segment != all.Segment || said.Number != number+1 || said.Previous != previous {
		return false
	}
	for _, head := range said.Chains {
		if head.Segment != all.Segment {
			continue
		}
		if c := all.Chains[head.Organization]; c == nil || c.Sequence != head.Sequence || hex.EncodeToString(c.Hash[:]) != head.Hash {
			return false
		}
	}
	return true
}

// Text reads all lines that were written to a segment: those in its file, then those that only the ring has.
type Text struct {
	io.Reader
	file *os.File
	tail int64 // bytes that only the ring has
	from int64 // the offset at which they begin
}

// Open opens a segment for reading. A gateway may be running. It changes nothing.
func Open(dir string, number int) (*Text, error) {
	// The ring is read first: lines that leave it before the file is opened are in the file.
	ring, err := former.ReadRing(dir, Nonblocking)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(Path(dir, number))
	if err != nil {
		return nil, err
	}
	s := &Text{Reader: f, file: f}
	if ring.Number != number {
		return s, nil
	}
	all, err := ScanFrom(f, filepath.Base(dir), Name(number), nil)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if tail := all.Follow(ring.Behind(number, all.Size)); len(tail) > 0 {
		s.Reader = io.MultiReader(io.LimitReader(f, all.Size), bytes.NewReader(tail))
		s.from, s.tail = all.Size, int64(len(tail))
	}
	return s, nil
}

// Size returns the number of bytes to read, or a larger number: a former version allocated zeros ahead, and the file may
// grow.
func (s *Text) Size() (int64, error) {
	if s.tail > 0 {
		return s.from + s.tail, nil
	}
	at, err := s.file.Stat()
	if err != nil {
		return 0, err
	}
	return at.Size(), nil
}

// Close closes the segment's file.
func (s *Text) Close() error { return s.file.Close() }
