package audit

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

const (
	// fileStep is how much of a segment is laid out at first, and largeStep how much at once when that was filled.
	fileStep  = 256 << 10
	largeStep = 1 << 20
	// usualLine is about as long as an intent's line, cacheLine what a processor has of memory at least.
	usualLine = 256
	cacheLine = 64
)

// ringFile is a segment that is written through the journal's ring: what is copied there is in the page cache, as after
// write(2), at a tenth of its cost. The file is laid out ahead with zeros, so that there is room on the disk for what is
// acknowledged: a full one is an error before.
type ringFile struct {
	file   *os.File
	direct *os.File // the same without the page cache; nil: there is no such thing here
	ring   *ring
	laid   int64

	written atomic.Int64 // how much is in the ring or was; it moves with the journal's lock held
	flushed atomic.Int64 // how much of it is in the file; it moves with the ring's lock held

	// page is the page of the file that flushed is in, as the file has it, when it is known; room is a place for the next one.
	// What is on the disk is not taken from the ring again, which somebody may have damaged. The ring's lock guards them.
	page, room []byte
	known      bool
	// writes counts what was written to the file or cut off it, synced what of that was forced to the disk since. The ring's lock
	// guards them.
	writes, synced int64
}

// createFile makes the file of the segment that has the ring; without a ring it is written to directly.
func createFile(path string, r *ring) (file, error) {
	if r == nil {
		return createPlain(path)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	m := &ringFile{file: f, ring: r, page: alignedPage(), room: alignedPage()}
	err = m.layOut(1)
	switch {
	case err == nil:
		m.direct = openDirect(f)
		r.give(m)
		return m, nil
	case noSpace(err):
		return nil, errors.Join(err, m.Release(), os.Remove(path))
	}
	// A file system that cannot.
	if err := errors.Join(m.Release(), os.Remove(path)); err != nil {
		return nil, err
	}
	return createPlain(path)
}

// layOut makes the file at least that long.
func (m *ringFile) layOut(size int64) error {
	if err := m.uncut(); err != nil {
		return err // made long again, what was cut off would be zeros
	}
	step := int64(fileStep)
	if m.laid > 0 {
		step = largeStep
	}
	size = (size + step - 1) / step * step
	if err := fallocate(m.file, m.laid, size-m.laid); err != nil {
		return err
	}
	m.laid = size
	return nil
}

// uncut returns errFault when the file is shorter than it was laid out.
func (m *ringFile) uncut() error {
	at, err := m.file.Stat()
	if err == nil && at.Size() < m.laid {
		err = errFault
	}
	return err
}

// Write implements file.
func (m *ringFile) Write(p []byte) (int, error) {
	written := m.written.Load()
	end := written + int64(len(p))
	if end > m.laid {
		if err := m.layOut(end); err != nil {
			return 0, err
		}
	}
	if len(p) > ringRoom {
		return m.writeAround(p)
	}
	if end-m.flushed.Load() > ringRoom {
		if err := m.Settle(); err != nil {
			return 0, err
		}
	}
	n, err := m.ring.put(p, written)
	if err == nil {
		m.written.Store(end)
	}
	return n, err
}

// Prefetch implements file.
func (m *ringFile) Prefetch() { m.ring.prefetch(m.written.Load()) }

// writeAround writes to the file what is too long for the ring.
func (m *ringFile) writeAround(p []byte) (int, error) {
	m.ring.mu.Lock()
	defer m.ring.mu.Unlock()
	written := m.written.Load()
	if err := errors.Join(m.flush(written), m.uncut()); err != nil {
		return 0, err
	}
	// First the ring, which may be gone: what is refused must be in no file. Until the file has it, whoever reads the ring finds
	// that what is there does not continue the file.
	end := written + int64(len(p))
	if err := m.ring.tell(end); err != nil {
		return 0, err
	}
	m.writes++
	if n, err := m.file.WriteAt(p, written); err != nil {
		return n, errors.Join(err, m.ring.tell(written))
	}
	m.known = false
	m.flushed.Store(end)
	m.written.Store(end)
	return len(p), nil
}

// flush writes to the file what is in the ring alone, up to a place. The ring's lock is held.
func (m *ringFile) flush(to int64) error {
	if m.flushed.Load() >= to {
		return nil
	}
	if m.ring.owner != m {
		return errLeft
	}
	if at, err := m.file.Stat(); err != nil {
		return err
	} else if at.Size() < to {
		return errFault // it was laid out
	}
	if err := errors.Join(m.ring.whole(to), m.ring.filled(m.flushed.Load(), to)); err != nil {
		return err
	}
	for m.flushed.Load() < to {
		if err := m.flushSome(to); err != nil {
			return err
		}
	}
	return m.ring.whole(to) // cut off meanwhile it gave zeros
}

// flushSome is flush for as much as one way of writing takes.
func (m *ringFile) flushSome(to int64) error {
	from := m.flushed.Load()
	switch {
	case m.direct == nil:
		return m.flushCached(to)
	case from%directSize != 0 && !m.known:
		return m.flushCached(min(to, from/directSize*directSize+directSize))
	}
	err := m.flushDirect(to)
	if err == nil || errors.Is(err, errFault) {
		return err
	}
	// A file system with other bounds, or a disk that fails: which of them, the page cache will tell.
	err, m.direct = m.direct.Close(), nil
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return err
}

// flushCached is flush by way of the page cache.
func (m *ringFile) flushCached(to int64) error {
	m.known = false
	m.writes++
	bytes := m.ring.window[ringHead:]
	for from := m.flushed.Load(); from < to; {
		place := from % ringSize
		n, err := m.file.WriteAt(bytes[place:min(place+to-from, ringSize)], from)
		from += int64(n)
		m.flushed.Store(from)
		if err != nil {
			return faulted(err)
		}
	}
	return nil
}

// faulted tells an error that says that the ring was cut off from others.
func faulted(err error) error {
	if errors.Is(err, unix.EFAULT) {
		return fmt.Errorf("%w: %w", errFault, err)
	}
	return err
}

// Settle implements file. It may run beside Write.
func (m *ringFile) Settle() error {
	m.ring.mu.Lock()
	defer m.ring.mu.Unlock()
	return m.flush(m.written.Load())
}

// Cheap implements file.
func (*ringFile) Cheap() bool { return true }

// Truncate implements file.
func (m *ringFile) Truncate(size int64) error {
	m.ring.mu.Lock()
	defer m.ring.mu.Unlock()
	// First what a kill would take for written.
	if err := m.ring.tell(size); err != nil {
		return err
	}
	m.written.Store(size)
	// What stays is to be in the file: cut off, it has no room for it laid out.
	if err := m.flush(size); err != nil {
		return err
	}
	m.writes++
	if err := m.file.Truncate(size); err != nil {
		return err
	}
	m.flushed.Store(size)
	m.laid, m.known = size, false
	return nil
}

// Sync implements file. It may run beside Write.
func (m *ringFile) Sync() error {
	writes, err := m.settleTo()
	if err != nil || writes == 0 {
		return err
	}
	if err := m.ring.sync(m.file); err != nil {
		return err
	}
	m.ring.mu.Lock()
	defer m.ring.mu.Unlock()
	m.synced = max(m.synced, writes)
	return nil
}

// settleTo is Settle, and returns up to which of the writes the file is to be forced to the disk; 0: they are there.
func (m *ringFile) settleTo() (writes int64, err error) {
	m.ring.mu.Lock()
	defer m.ring.mu.Unlock()
	if err := m.flush(m.written.Load()); err != nil || m.writes == m.synced {
		return 0, err
	}
	return m.writes, nil
}

func fdatasync(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
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
func (m *ringFile) Close() error {
	if err := m.Settle(); err != nil {
		return errors.Join(err, m.Release()) // what was laid out has room for the rest
	}
	return errors.Join(m.file.Truncate(m.written.Load()), m.Release())
}

// Release implements file.
func (m *ringFile) Release() error {
	m.ring.mu.Lock()
	defer m.ring.mu.Unlock()
	err := m.file.Close()
	if m.direct != nil {
		err = errors.Join(err, m.direct.Close())
		m.direct = nil
	}
	return err
}
