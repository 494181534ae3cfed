package audit

import (
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// directSize is the unit in which a file is written past the page cache: the size of a page, which is enough for all disks.
const directSize = 4096

// openDirect opens a file to be written past the page cache, straight from the ring: bringing it there, and from there to the
// disk twenty times a second, costs more than all else that is done for the disk. It returns nil where that is not possible.
func openDirect(path string) *os.File {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_DIRECT, 0)
	if err != nil {
		return nil
	}
	return f
}

// flushDirect writes to the file what is in the ring alone, in whole pages: from the one that begins before it, with zeros
// behind it. The error is EINVAL where the file system wants it otherwise.
func (m *ringFile) flushDirect(to int64) error {
	for from := m.flushed.Load(); from < to; {
		start := from / directSize * directSize
		n, err := pwritev(m.direct, m.ring.pages(start, to), start)
		if err == nil && start+int64(n) <= from {
			err = io.ErrShortWrite
		}
		if err != nil {
			return os.NewSyscallError("pwritev", err)
		}
		from = min(start+int64(n), to)
		m.flushed.Store(from)
	}
	return nil
}

func pwritev(f *os.File, parts [][]byte, at int64) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) {
		for failed = unix.EINTR; failed == unix.EINTR; {
			n, failed = unix.Pwritev(int(fd), parts, at)
		}
	}); err != nil {
		return 0, err
	}
	return n, failed
}

// pages is what the ring has of a segment between two places, of which the first one is the beginning of a page. The last
// page, unless it is full, is a copy with zeros behind: others are writing there. The ring's lock is held.
func (r *ring) pages(start, to int64) [][]byte {
	bytes, last := r.window[ringHead:], to/directSize*directSize
	parts := make([][]byte, 0, 3)
	for start < last {
		place := start % ringSize
		part := bytes[place:min(place+last-start, ringSize)]
		parts = append(parts, part)
		start += int64(len(part))
	}
	if to > last {
		used := copy(r.tail, bytes[last%ringSize:][:to-last])
		clear(r.tail[used:])
		parts = append(parts, r.tail)
	}
	return parts
}

// alignedPage is memory that begins where a page does.
func alignedPage() []byte {
	b := make([]byte, 2*directSize)
	skip := -uintptr(unsafe.Pointer(&b[0])) % directSize //nolint:gosec // only its place
	return b[skip:][:directSize:directSize]
}
