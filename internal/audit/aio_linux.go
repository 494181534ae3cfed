//go:build amd64 || arm64

package audit

import (
	"os"
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// aio writes without waiting in the kernel (io_submit(2)). A goroutine that waits there for a disk keeps its processor from
// the others until the scheduler notices, which takes up to 10 ms: where there is one processor, every call that comes in
// meanwhile waits for the journal's disk. It makes one write at a time.
type aio struct {
	context uintptr
	done    *os.File // the eventfd(2) that tells of an end; who reads it waits in the scheduler
	number  uint32   // its descriptor
	block   controlBlock
	blocks  [1]*controlBlock
	ended   writeEvent
	parts   []unix.Iovec
}

// controlBlock is struct iocb of linux/aio_abi.h, as little-endian processors have it.
type controlBlock struct {
	_        uint64
	_        uint32
	flags    uint32 // RWF_*
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
	opWriteParts = 8 // IOCB_CMD_PWRITEV
	tellsEventFD = 1 // IOCB_FLAG_RESFD
)

// idleAIOs are those that no ring has: giving one back to the kernel takes it 40 ms, which would be the end's of each journal.
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
	if err := retried(unix.SYS_IO_SETUP, 1, uintptr(unsafe.Pointer(&a.context)), 0, 0); err != nil { //nolint:gosec // the kernel fills it in
		_ = a.done.Close()
		return nil
	}
	return a
}

// giveBack lets another ring have it. Nothing is being written.
func (a *aio) giveBack() {
	idleAIOs.Lock()
	defer idleAIOs.Unlock()
	idleAIOs.all = append(idleAIOs.all, a)
}

// write writes parts to a place of a file and forces them to the disk, as fdatasync(2) after pwritev(2) does. It may write
// less.
func (a *aio) write(f *os.File, parts [][]byte, at int64) (n int, err error) {
	a.parts = a.parts[:0]
	for _, p := range parts {
		vector := unix.Iovec{Base: unsafe.SliceData(p)} //nolint:gosec // parts are kept until the kernel has read them
		vector.SetLen(len(p))
		a.parts = append(a.parts, vector)
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	if gone := raw.Control(func(fd uintptr) {
		a.block = controlBlock{
			flags: unix.RWF_DSYNC, opcode: opWriteParts, file: uint32(fd), offset: at, features: tellsEventFD, done: a.number,
			parts: unsafe.SliceData(a.parts), count: uint64(len(a.parts)), //nolint:gosec // a keeps them
		}
		n, err = a.exchange()
	}); gone != nil {
		return 0, gone
	}
	runtime.KeepAlive(parts)
	return n, err
}

// exchange hands the block to the kernel and waits until it is done with it.
func (a *aio) exchange() (int, error) {
	a.blocks[0] = &a.block
	if err := retried(unix.SYS_IO_SUBMIT, a.context, 1, uintptr(unsafe.Pointer(&a.blocks)), 0); err != nil { //nolint:gosec // a is kept, and nothing moves it
		return 0, err
	}
	var times [8]byte
	_, _ = a.done.Read(times[:])                                                                               // if this fails, the next line waits: until then the memory is the kernel's
	if err := retried(unix.SYS_IO_GETEVENTS, a.context, 1, 1, uintptr(unsafe.Pointer(&a.ended))); err != nil { //nolint:gosec // as above
		return 0, err
	}
	if a.ended.result < 0 {
		return 0, unix.Errno(-a.ended.result)
	}
	return int(a.ended.result), nil
}

// retried makes a system call until no signal interrupts it.
func retried(call, one, two, three, four uintptr) error {
	for {
		switch _, _, number := unix.Syscall6(call, one, two, three, four, 0, 0); number {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return number
		}
	}
}
