package audit

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/durward-gateway/durward/storage"
)

// The ring is a file of fixed size beside the segments. Former versions of durward copied every line into it before they
// acknowledged the line, and never synced it. After a kill it has lines that are in no segment. Integers are in the
// machine's byte order:
//
//	0     ringMark
//	8     number of the segment that is written; 0: none
//	16    how many bytes of it are written
//	4096  its last bytes: byte n is at n modulo the size of this area
//
// After a power cut any page of the ring may be old. So its lines count only as far as they continue the segment's file.
const (
	ringName = "ring"
	ringMark = "durring1"
	ringHead = 4096
	ringSize = 1 << 20
	// mostRing is the largest ring that is read. The ring of another version may be larger than ringSize.
	mostRing = 64 << 20

	pageSize = 4096

	ringNumberAt  = 8
	ringWrittenAt = 16
)

// ringText holds the contents of a journal's ring.
type ringText struct {
	number  int // of the segment; 0: the ring is empty
	written int64
	data    []byte
}

// readRing reads the ring in a journal's directory. It returns an empty ringText when the file is no ring.
func readRing(dir string) (ringText, error) {
	path := filepath.Join(dir, ringName)
	at, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return ringText{}, nil
	}
	if err != nil {
		return ringText{}, err
	}
	size := at.Size() - ringHead
	if !at.Mode().IsRegular() || size <= 0 || size > mostRing || size%pageSize != 0 {
		return ringText{}, nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|openNonblocking, 0)
	if errors.Is(err, os.ErrNotExist) {
		return ringText{}, nil // it was just removed: its lines are in the segments
	}
	if err != nil {
		return ringText{}, err
	}
	defer f.Close()
	// Somebody may have put a link there meanwhile.
	if opened, err := f.Stat(); err != nil || !os.SameFile(at, opened) {
		return ringText{}, err
	}
	all := make([]byte, ringHead+size)
	// The head is read first: bytes that are copied into the ring later come after the length in it.
	for _, part := range [...][]byte{all[:ringHead], all[ringHead:]} {
		if _, err := io.ReadFull(f, part); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return ringText{}, nil // the file was cut off meanwhile
		} else if err != nil {
			return ringText{}, err
		}
	}
	number, written := binary.NativeEndian.Uint64(all[ringNumberAt:]), binary.NativeEndian.Uint64(all[ringWrittenAt:])
	if string(all[:len(ringMark)]) != ringMark || number > maxSegment || written > 1<<62 {
		return ringText{}, nil
	}
	return ringText{number: int(number), written: int64(written), data: all[ringHead:]}, nil
}

// behind returns the bytes of a segment after the offset at. It returns nil when the ring does not have all of them.
func (r *ringText) behind(number int, at int64) []byte {
	missing, size := r.written-at, int64(len(r.data))
	if r.number != number || missing <= 0 || missing > size {
		return nil
	}
	from := at % size
	text := bytes.Clone(r.data[from:min(from+missing, size)])
	return append(text, r.data[:missing-int64(len(text))]...)
}

// follow takes the lines of text that continue the whole lines of the file, and returns them. text is the part of the
// ring after these. follow stops at the first line that does not continue: a power cut may leave old pages in a ring
// beside new ones.
func (all *found) follow(text []byte) []byte {
	size := 0
	for !all.final {
		end := bytes.IndexByte(text[size:], '\n')
		if end < 0 || bytes.IndexByte(text[size:size+end], 0) >= 0 {
			break
		}
		l, err := all.parser.parse(text[size : size+end])
		if err != nil || !all.continuedBy(&l) {
			break
		}
		all.take(&l)
		size += end + 1
	}
	return text[:size]
}

// continuedBy reports whether the gateway wrote this line directly after the lines that were taken.
func (all *found) continuedBy(l *line) bool {
	switch {
	case l.header != nil:
		return false
	case l.checkpoint != nil:
		return all.continuedByCheckpoint(l.checkpoint)
	case l.record.shared != nil && l.record.shared.lost:
		return false
	}
	c := newProvenChain(string(l.record.organization), all.node, all.segment)
	if known := all.chains[c.OrganizationID]; known != nil {
		*c = *known
	}
	follows := *c
	proven, _ := all.keys.proves(&follows, &l.record, all.header.bare())
	hash, _ := nextOf(&c.AuditChain, &l.record, nil)
	return proven && l.record.sequence == c.Sequence && l.record.hash == hash
}

func (all *found) continuedByCheckpoint(c *storage.AuditCheckpoint) bool {
	var number int64
	var previous string
	switch {
	case all.checkpoint != nil:
		number, previous = all.checkpoint.Number, checkpointHash(all.checkpoint)
	case all.header != nil:
		number, previous = all.header.Checkpoint, all.header.Previous
	}
	said, err := readCheckpoint(c.Data)
	if err != nil || !all.keys.signed(c) || said.Node != all.node || said.Segment != all.segment || said.Number != number+1 || said.Previous != previous {
		return false
	}
	for _, head := range said.Chains {
		if head.Segment != all.segment {
			continue
		}
		if c := all.chains[head.Organization]; c == nil || c.Sequence != head.Sequence || hex.EncodeToString(c.Hash[:]) != head.Hash {
			return false
		}
	}
	return true
}

// segmentText reads all lines that were written to a segment: those in its file, then those that only the ring has.
type segmentText struct {
	io.Reader
	file *os.File
	tail int64 // bytes that only the ring has
	from int64 // the offset at which they begin
}

// openSegment opens a segment for reading. A gateway may be running. It changes nothing.
func openSegment(dir string, number int) (*segmentText, error) {
	// The ring is read first: lines that leave it before the file is opened are in the file.
	ring, err := readRing(dir)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(segmentPath(dir, number))
	if err != nil {
		return nil, err
	}
	s := &segmentText{Reader: f, file: f}
	if ring.number != number {
		return s, nil
	}
	all, err := scanFrom(f, filepath.Base(dir), segmentName(number), nil)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if tail := all.follow(ring.behind(number, all.size)); len(tail) > 0 {
		s.Reader = io.MultiReader(io.LimitReader(f, all.size), bytes.NewReader(tail))
		s.from, s.tail = all.size, int64(len(tail))
	}
	return s, nil
}

// size returns the number of bytes to read, or a larger number: a former version allocated zeros ahead, and the file may
// grow.
func (s *segmentText) size() (int64, error) {
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
func (s *segmentText) Close() error { return s.file.Close() }
