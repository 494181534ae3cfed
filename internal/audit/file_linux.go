package audit

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	// fileStep is how much of a segment is laid out at first, and largeStep how much at once when that was filled.
	fileStep  = 256 << 10
	largeStep = 1 << 20
	// firstAhead and mostAhead are how much is brought into memory ahead of what is written.
	firstAhead = 64 << 10
	mostAhead  = fileStep
	// busySyncs is how often the file may be synced while so much is written: each sync writes all of it again.
	busySyncs = 2
)

var zeros [mostAhead]byte

// mappedFile is a file that is laid out ahead with zeros and written through a shared mapping: what is copied into it is in
// the page cache, as after write(2), at a tenth of its cost. Its blocks are allocated when it is laid out, so that a full
// disk is an error there and no signal here.
type mappedFile struct {
	file   *os.File
	window []byte // the part of the file that is written
	start  int64  // of the window
	used   int    // bytes of the window

	ready int // up to where the window is in memory, or would be looked at again
	ahead int // how much was brought into memory at once; 0: page by page, as they are touched
	syncs atomic.Int64
}

func createFile(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	m := &mappedFile{file: f}
	err = m.layOut(1)
	if err == nil {
		return m, nil
	}
	var plain file
	if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EFBIG) && !errors.Is(err, unix.EDQUOT) {
		// A file system that cannot, or not with mappings.
		var f *os.File
		if f, err = os.OpenFile(path, os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o600); err == nil {
			plain = plainFile{f}
		}
	}
	if err = errors.Join(err, m.Release()); err != nil {
		return nil, err
	}
	return plain, nil
}

// layOut moves the window to what has not been written, and makes it at least that long.
func (m *mappedFile) layOut(length int) error {
	page := int64(os.Getpagesize())
	end := m.start + int64(m.used)
	start := end / page * page
	step := int64(fileStep)
	if end > 0 {
		step = largeStep
	}
	size := (int64(length) + end - start + step - 1) / step * step
	fd := int(m.file.Fd())
	if err := unix.Fallocate(fd, 0, start, size); err != nil {
		return os.NewSyscallError("fallocate", err)
	}
	window, err := unix.Mmap(fd, start, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	former := m.window
	m.window, m.start, m.used, m.ready = window, start, int(end-start), max(0, m.ready-int(start-m.start))
	if former != nil {
		return os.NewSyscallError("munmap", unix.Munmap(former))
	}
	return nil
}

// Write implements file.
func (m *mappedFile) Write(p []byte) (int, error) {
	if len(p) > len(m.window)-m.used {
		if err := m.layOut(len(p)); err != nil {
			return 0, err
		}
	}
	if m.used+len(p) > m.ready {
		m.prepare(m.used + len(p))
	}
	n, err := guarded(func() int { return copy(m.window[m.used:], p) })
	m.used += n
	return n, err
}

// prepare brings what follows into memory when much is written. With one system call for many pages the kernel makes large
// ones, and touching them first costs a quarter. A large page is written to the disk whole when a byte of it changes:
// where syncs are more frequent, pages stay small.
func (m *mappedFile) prepare(least int) {
	page := os.Getpagesize()
	switch syncs := m.syncs.Swap(0); {
	case syncs > busySyncs:
		if m.ahead /= 2; m.ahead < firstAhead {
			m.ahead = 0
		}
	case m.ahead == 0:
		m.ahead = firstAhead
	case syncs < busySyncs:
		m.ahead = min(2*m.ahead, mostAhead)
	}
	from := max(m.ready, (m.used+page-1)/page*page)
	m.ready = min(max(least, from+m.ahead), len(m.window))
	if m.ahead == 0 {
		m.ready = min(max(least, from+firstAhead), len(m.window))
		return
	}
	for ; from < m.ready; from += len(zeros) {
		// If this fails, so does the copying, which tells.
		if _, err := m.file.WriteAt(zeros[:min(len(zeros), m.ready-from)], m.start+int64(from)); err != nil {
			return
		}
	}
}

// guarded runs f, which touches a mapping. When somebody has cut the file off, or the disk fails, the kernel sends a signal,
// which would end the process.
func guarded(f func() int) (n int, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			n, err = 0, fmt.Errorf("%w: %v", errFault, fault)
		}
	}()
	return f(), nil
}

// Cheap implements file.
func (*mappedFile) Cheap() bool { return true }

// Truncate implements file.
func (m *mappedFile) Truncate(size int64) error {
	keep := size - m.start
	if keep < 0 || keep > int64(m.used) {
		return fmt.Errorf("truncating to %d: the window begins at %d and %d bytes are used", size, m.start, m.used)
	}
	_, err := guarded(func() int { clear(m.window[keep:m.used]); return 0 })
	m.used = int(keep)
	return err
}

// Sync implements file. It does not look at the mapping, and may run beside Write.
func (m *mappedFile) Sync() error {
	raw, err := m.file.SyscallConn()
	if err != nil {
		return err
	}
	m.syncs.Add(1)
	var failed error
	if err := raw.Control(func(fd uintptr) {
		for failed = unix.EINTR; failed == unix.EINTR; {
			failed = unix.Fdatasync(int(fd))
		}
	}); err != nil {
		return err
	}
	return os.NewSyscallError("fdatasync", failed)
}

// Close implements file.
func (m *mappedFile) Close() error {
	return errors.Join(m.file.Truncate(m.start+int64(m.used)), m.Release())
}

// Release implements file.
func (m *mappedFile) Release() error {
	window := m.window
	m.window, m.used = nil, 0
	var err error
	if window != nil {
		err = os.NewSyscallError("munmap", unix.Munmap(window))
	}
	return errors.Join(err, m.file.Close())
}
