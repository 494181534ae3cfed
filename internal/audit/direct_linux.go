package audit

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// openDirect opens a file once more to be written past the page cache, straight from the ring: bringing it there, and from there to
// the disk twenty times a second, costs more than all else that is done for the disk. It returns nil where that is not possible.
func openDirect(f *os.File) *os.File {
	direct, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_WRONLY|unix.O_DIRECT, 0)
	if err != nil {
		return nil
	}
	return direct
}

// flushDirect writes to the file what is in the ring alone, in whole pages: from the one that begins before it, with zeros
// behind it.
func (m *ringFile) flushDirect(to int64) error {
	from := m.flushed.Load()
	start := from / directSize * directSize
	parts, err := m.pages(from, to)
	if err != nil {
		return err
	}
	m.known = false // until all of it is there
	n, err := m.writeDirect(parts, start)
	end := start + int64(n)
	if err == nil && end <= from {
		err = io.ErrShortWrite
	}
	if err != nil {
		return faulted(os.NewSyscallError("pwritev", err))
	}
	m.flushed.Store(min(end, to))
	m.known = end >= to
	return nil
}

// writeDirect writes whole pages, and may write fewer.
func (m *ringFile) writeDirect(parts [][]byte, at int64) (int, error) {
	m.writes++
	if m.ring.aio != nil {
		n, err := m.ring.aio.write(m.direct, parts, at)
		if err == nil || errors.Is(err, unix.EFAULT) {
			return n, err
		}
		// A system that takes no such writes to this file, or a disk that fails: which of them, a plain one will tell.
	}
	return pwritev(m.direct, parts, at)
}

// pages is what is written to the file for what the ring has between two places, in whole pages. The first one begins with what the
// file has; the last one, behind which others write into the ring, is a copy with zeros behind it, and is the file's page then.
func (m *ringFile) pages(from, to int64) (parts [][]byte, err error) {
	parts = make([][]byte, 0, 4)
	if used := from % directSize; used > 0 {
		end := min(to, from-used+directSize)
		if err := m.ring.copyTo(m.page[used:][:end-from], from); err != nil {
			return nil, err
		}
		clear(m.page[used+end-from:])
		parts = append(parts, m.page)
		from = end
	}
	for last := to / directSize * directSize; from < last; {
		place := from % ringSize
		part := m.ring.window[ringHead+place : ringHead+min(place+last-from, ringSize)]
		parts = append(parts, part)
		from += int64(len(part))
	}
	if from < to {
		if err := m.ring.copyTo(m.room[:to-from], from); err != nil {
			return nil, err
		}
		clear(m.room[to-from:])
		parts = append(parts, m.room)
		m.page, m.room = m.room, m.page
	}
	return parts, nil
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

// alignedPage is memory that begins where a page does.
func alignedPage() []byte {
	b := make([]byte, 2*directSize)
	skip := -uintptr(unsafe.Pointer(&b[0])) % directSize //nolint:gosec // only its place
	return b[skip:][:directSize:directSize]
}
