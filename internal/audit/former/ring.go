package former

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
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
	// RingName is the name of the ring's file.
	RingName = "ring"

	ringMark = "durring1"
	ringHead = 4096
	ringSize = 1 << 20
	// mostRing is the largest ring that is read. The ring of another version may be larger than ringSize.
	mostRing = 64 << 20

	pageSize = 4096

	ringNumberAt  = 8
	ringWrittenAt = 16
	// mostNumber is greater than any segment's number.
	mostNumber = 1 << 30
)

// Ring holds the contents of a journal's ring.
type Ring struct {
	// Number is that of the segment. 0: the ring is empty.
	Number  int
	written int64
	data    []byte
}

// ReadRing reads the ring in a journal's directory. It returns an empty Ring when the file is no ring. flag is one with
// which opening a pipe does not wait.
func ReadRing(dir string, flag int) (Ring, error) {
	path := filepath.Join(dir, RingName)
	at, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return Ring{}, nil
	}
	if err != nil {
		return Ring{}, err
	}
	size := at.Size() - ringHead
	if !at.Mode().IsRegular() || size <= 0 || size > mostRing || size%pageSize != 0 {
		return Ring{}, nil
	}
	f, err := os.OpenFile(path, os.O_RDONLY|flag, 0)
	if errors.Is(err, os.ErrNotExist) {
		return Ring{}, nil // it was just removed: its lines are in the segments
	}
	if err != nil {
		return Ring{}, err
	}
	defer f.Close()
	// Somebody may have put a link there meanwhile.
	if opened, err := f.Stat(); err != nil || !os.SameFile(at, opened) {
		return Ring{}, err
	}
	all := make([]byte, ringHead+size)
	// The head is read first: bytes that are copied into the ring later come after the length in it.
	for _, part := range [...][]byte{all[:ringHead], all[ringHead:]} {
		if _, err := io.ReadFull(f, part); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return Ring{}, nil // the file was cut off meanwhile
		} else if err != nil {
			return Ring{}, err
		}
	}
	number, written := binary.NativeEndian.Uint64(all[ringNumberAt:]), binary.NativeEndian.Uint64(all[ringWrittenAt:])
	if string(all[:len(ringMark)]) != ringMark || number > mostNumber || written > 1<<62 {
		return Ring{}, nil
	}
	return Ring{Number: int(number), written: int64(written), data: all[ringHead:]}, nil
}

// Behind returns the bytes of a segment after the offset at. It returns nil when the ring does not have all of them.
func (r *Ring) Behind(number int, at int64) []byte {
	missing, size := r.written-at, int64(len(r.data))
	if r.Number != number || missing <= 0 || missing > size {
		return nil
	}
	from := at % size
	text := bytes.Clone(r.data[from:min(from+missing, size)])
	return append(text, r.data[:missing-int64(len(text))]...)
}
