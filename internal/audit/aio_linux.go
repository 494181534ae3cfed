//go:build amd64 || arm64

package audit

import (
	"errors"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// aio writes and syncs without waiting in the kernel (io_submit(2)). A goroutine that waits there for a disk keeps its processor
// from the others until the scheduler notices, which takes up to 10 ms: where there is one processor, every call that comes in
// meanwhile waits for the journal's disk. It does one thing at a time.
type aio struct {
	context uintptr
	done    *os.File // the eventfd(2) that tells of an end; who reads it waits in the scheduler
	number  uint32   // its descriptor
	block   controlBlock
	blocks  [1]*controlBlock
	ended   writeEvent
	parts   []unix.Iovec
	lost    bool // what was handed in may not have ended
}

// controlBlock is struct iocb of linux/aio_abi.h, as little-endian processors have it.
type controlBlock struct {
	_        [2]uint64
	opcode   uint16
	_        int16
	file     uint32
	parts    *unix.Iovec
	count    uint64
	offset   int64
	_        uint64
	features uint32 // IOCB_FLAG_*
	done     uint32
}

// writeEvent is struct io_event there.
type writeEvent struct {
	_      [2]uint64
	result int64 // bytes, or the number of an error, negative
	_      int64
}

const (
	opSync       = 3 // IOCB_CMD_FDSYNC, since Linux 4.18
	opWriteParts = 8 // IOCB_CMD_PWRITEV
	tellsEventFD = 1 // IOCB_FLAG_RESFD
)

// errNotTaken is what the system does not do in this way. Nothing has happened.
var errNotTaken = errors.New("the system takes no such operation")

// idleAIOs are those that no ring has. Giving one back to the kernel takes 40 ms, for it waits for each processor (io_destroy(2)): every
// journal would take so much longer to end.
var idleAIOs struct {
	sync.Mutex
	all []*aio
}

// takeAIO returns nil where the system has no such thing, or does not let us have it.
func takeAIO() *aio {
	idleAIOs.Lock()
	defer idleAIOs.Unlock()
	if n := len(idleAIOs.all); n > 0 {
		a := idleAIOs.all[n-1]
		idleAIOs.all = idleAIOs.all[:n-1]
		return a
	}
	a := &aio{}
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil
	}
	a.done, a.number = os.NewFile(uintptr(fd), "eventfd"), uint32(fd)
	if _, err := retried(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&a.context)), 0, 0); err != nil { //nolint:gosec // the kernel fills it in
		_ = a.done.Close()
		return nil
	}
	return a
}

// giveBack lets another ring have it.
func (a *aio) giveBack() {
	if a == nil || a.lost {
		return
	}
	idleAIOs.Lock()
	defer idleAIOs.Unlock()
	idleAIOs.all = append(idleAIOs.all, a)
}

// write writes parts to a place of a file, as pwritev(2) does, and may write less.
func (a *aio) write(f *os.File, parts [][]byte, at int64) (int, error) {
	for _, p := range parts {
		vector := unix.Iovec{Base: unsafe.SliceData(p)} //nolint:gosec // parts are kept until the kernel has read them
		vector.SetLen(len(p))
		a.parts = append(a.parts, vector)
	}
	n, err := a.exchange(f, controlBlock{
		opcode: opWriteParts, offset: at,
		parts: unsafe.SliceData(a.parts), count: uint64(len(a.parts)), //nolint:gosec // a keeps them
	})
	runtime.KeepAlive(parts)
	// The ring may be unmapped and the heap grow to its place: the collector stumbles over pointers there.
	clear(a.parts)
	a.parts = a.parts[:0]
	return n, err
}

// sync forces a file to the disk, as fdatasync(2) does. A flag of the writes (RWF_DSYNC) would do it in one step, but FUSE may leave
// it to who serves the files, and gVisor drops it.
func (a *aio) sync(f *os.File) error {
	_, err := a.exchange(f, controlBlock{opcode: opSync})
	return err
}

// exchange hands a block to the kernel and waits until it is done with it.
func (a *aio) exchange(f *os.File, block controlBlock) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	if gone := raw.Control(func(fd uintptr) {
		block.file, block.features, block.done = uint32(fd), tellsEventFD, a.number
		a.block = block
		n, err = a.await()
	}); gone != nil {
		return 0, gone
	}
	return n, err
}

// await hands in the block and returns what came of it.
func (a *aio) await() (int, error) {
	if a.lost {
		return 0, errNotTaken
	}
	a.blocks[0] = &a.block
	submitted, err := retried(unix.SYS_IO_SUBMIT, a.context, 1, uintptr(unsafe.Pointer(&a.blocks)), 0) //nolint:gosec // a is kept, and nothing moves it
	if submitted != 1 {
		return 0, errors.Join(errNotTaken, err)
	}
	var times [8]byte
	// If this fails, the next call waits: until then the memory is the kernel's.
	_, _ = a.done.Read(times[:])
	ended, err := retried(unix.SYS_IO_GETEVENTS, a.context, 1, 1, uintptr(unsafe.Pointer(&a.ended))) //nolint:gosec // as above
	if err == nil && ended != 1 {
		err = unix.EIO
	}
	if err != nil {
		a.lost = true
		return 0, err
	}
	if a.ended.result < 0 {
		return 0, unix.Errno(-a.ended.result)
	}
	return int(a.ended.result), nil
}

// retried makes a system call; a signal that comes in is no answer.
//
//go:uintptrescapes
func retried(call, one, two, three, four uintptr) (uintptr, error) {
	for {
		switch result, _, number := unix.Syscall6(call, one, two, three, four, 0, 0); number {
		case 0:
			return result, nil
		case unix.EINTR:
		default:
			return 0, number
		}
	}
}
