package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ring is the journal's ring, mapped. Its pages are written to again and again, and forced to no disk, so that copying into it
// costs nothing else, which copying into a mapping of the segment does: a fault for each page, again after each sync.
type ring struct {
	path string
	file *os.File
	at   os.FileInfo

	// mu is held while bytes of it are written to a segment's file, and guards what follows.
	mu     sync.Mutex
	window []byte
	owner  *ringFile // whose bytes are in it; nil: nobody's
	number int       // of the segment
	aio    *aio      // of writes; nil: there is no such thing here

	// syncing has what syncs the segments, one after the other and beside the writes.
	syncing struct {
		sync.Mutex
		aio *aio
	}
}

// createRing makes a ring where there may be another one, of which nothing is needed. Its blocks are allocated at once, so
// that a full disk is an error here and no signal later.
func createRing(path string) (*ring, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", errNoRing, err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	r := &ring{path: path, file: f}
	if err := r.layOut(); err != nil {
		if !noSpace(err) {
			err = fmt.Errorf("%w: %w", errNoRing, err)
		}
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	r.aio, r.syncing.aio = takeAIO(), takeAIO()
	return r, nil
}

func (r *ring) layOut() (err error) {
	if err := fallocate(r.file, 0, ringHead+ringSize); err != nil {
		return err
	}
	if _, err := r.file.WriteAt([]byte(ringMark), 0); err != nil {
		return err
	}
	if r.at, err = r.file.Stat(); err != nil {
		return err
	}
	r.window, err = unix.Mmap(int(r.file.Fd()), 0, ringHead+ringSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return os.NewSyscallError("mmap", err)
}

func fallocate(f *os.File, at, size int64) error {
	for {
		if err := unix.Fallocate(int(f.Fd()), 0, at, size); !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fallocate", err)
		}
	}
}

// noSpace reports whether an error is that of a full disk, and not of a file system that cannot.
func noSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EFBIG) || errors.Is(err, unix.EDQUOT)
}

// word is a word of the ring. The window begins with a page, so that what is aligned in it is aligned.
func (r *ring) word(at int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&r.window[at])) //nolint:gosec // it is in the window, and aligned
}

// turn empties the ring for a segment. Killed in between it has nothing of any.
func (r *ring) turn(number int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owner, r.number = nil, number
	_, err := guarded(func() int {
		r.word(ringNumberAt).Store(0)
		copy(r.window, ringMark) // somebody may have written over it
		r.word(ringWrittenAt).Store(0)
		r.word(ringNumberAt).Store(uint64(number))
		return 0
	})
	return err
}

// give lets a segment's file have the ring.
func (r *ring) give(m *ringFile) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owner = m
}

// leave keeps what is in the ring from being written to the segment by anybody who still syncs it.
func (r *ring) leave() { r.give(nil) }

// there reports whether the ring is where others find it, and whole.
func (r *ring) there() bool {
	at, err := os.Lstat(r.path)
	return err == nil && os.SameFile(at, r.at) && at.Size() == ringHead+ringSize
}

// prefetch brings the place of the next line into the processor's cache. Otherwise whatever waits for stores next, as the release
// of a lock does, waits for memory. It reads: a store there would be waited for, too.
func (r *ring) prefetch(at int64) {
	_, _ = guarded(func() int { // if this fails, so does put, which tells
		for i := range int64(usualLine / cacheLine) {
			r.word(ringHead + int((at+i*cacheLine)%ringSize/cacheLine*cacheLine)).Load()
		}
		return 0
	})
}

// whole returns errFault when somebody has cut the ring off or written over it, so that it does not say any more that it has the
// segment up to a place. The ring's lock is held.
func (r *ring) whole(to int64) error {
	at, err := r.file.Stat()
	if err != nil {
		return err
	}
	if at.Size() != ringHead+ringSize {
		return errFault
	}
	same, err := guarded(func() int {
		if string(r.window[:len(ringMark)]) == ringMark && r.word(ringNumberAt).Load() == uint64(r.number) && r.word(ringWrittenAt).Load() >= uint64(to) {
			return 1
		}
		return 0
	})
	if err == nil && same == 0 {
		err = errFault
	}
	return err
}

// filled returns errFault when there is a NUL byte between two places: no line has one, and a ring that was cut off and made long
// again has nothing else. The ring's lock is held.
func (r *ring) filled(from, to int64) error {
	data := r.window[ringHead:]
	n, err := guarded(func() int {
		for from < to {
			place := from % ringSize
			part := data[place:min(place+to-from, ringSize)]
			if bytes.IndexByte(part, 0) >= 0 {
				return 1
			}
			from += int64(len(part))
		}
		return 0
	})
	if err == nil && n > 0 {
		err = errFault
	}
	return err
}

// copyTo copies what the ring has from a place on, within a page.
func (r *ring) copyTo(part []byte, from int64) error {
	_, err := guarded(func() int { return copy(part, r.window[ringHead+from%ringSize:]) })
	return err
}

// put copies bytes behind those that the segment has, then says so. There must be room for them. The error is errFault when the ring
// does not say any more what was put there before.
func (r *ring) put(p []byte, at int64) (int, error) {
	n, err := guarded(func() int {
		if r.word(ringNumberAt).Load() != uint64(r.number) || r.word(ringWrittenAt).Load() != uint64(at) {
			return 0
		}
		data := r.window[ringHead:]
		n := copy(data[at%ringSize:], p)
		copy(data, p[n:])
		r.word(ringWrittenAt).Store(uint64(at) + uint64(len(p)))
		return len(p)
	})
	if err == nil && n < len(p) {
		err = errFault
	}
	return n, err
}

// tell says how much of the segment is written.
func (r *ring) tell(written int64) error {
	_, err := guarded(func() int { r.word(ringWrittenAt).Store(uint64(written)); return 0 })
	return err
}

// remove takes the ring away: everything in it is in the segments.
func (r *ring) remove() error {
	err := os.Remove(r.path)
	if errors.Is(err, os.ErrNotExist) {
		err = nil // somebody did
	}
	return errors.Join(err, r.release())
}

// release leaves the ring's file as it is.
func (r *ring) release() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	window := r.window
	r.window, r.owner = nil, nil
	r.aio.giveBack()
	r.aio = nil
	r.syncing.Lock()
	defer r.syncing.Unlock()
	r.syncing.aio.giveBack()
	r.syncing.aio = nil
	return errors.Join(os.NewSyscallError("munmap", unix.Munmap(window)), r.file.Close())
}

// sync forces a segment's file to the disk.
func (r *ring) sync(f *os.File) error {
	r.syncing.Lock()
	defer r.syncing.Unlock()
	if r.syncing.aio != nil {
		// What was tried and failed is not tried again: the kernel tells of a page that it could not write once.
		if err := r.syncing.aio.sync(f); !errors.Is(err, errNotTaken) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
	return fdatasync(f)
}

// guarded runs f, which touches a mapping. When somebody has cut the file off, or the disk fails, the kernel sends a signal,
// which would end the process.
func guarded(f func() int) (n int, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch fault := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }: // of memory, see debug.SetPanicOnFault
			n, err = 0, fmt.Errorf("%w: %v", errFault, fault)
		default:
			panic(fault)
		}
	}()
	return f(), nil
}
