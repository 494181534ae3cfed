//go:build linux && !race

package nonblock

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"
)

// Wrap gives a TCP connection in the package's way. Everything else stays as it is.
func Wrap(c net.Conn) net.Conn {
	socket, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return c
	}
	w := &conn{TCPConn: socket, raw: raw}
	w.in.step, w.out.step = w.in.read, w.out.write
	return w
}

// conn is a connection of package net's. Its deadlines, its end and everything that is not reading and writing are that one's.
type conn struct {
	*net.TCPConn
	raw     syscall.RawConn
	in, out side
}

// side is what one direction is at. It is kept between calls so that none of them allocates.
type side struct {
	mu    sync.Mutex // one call at a time, as with package net
	p     []byte     // to be filled, or what is left to be written
	n     int        // bytes that were read or written
	errno syscall.Errno
	step  func(fd uintptr) (done bool)
}

// most is what is read or written in the package's way at most: the kernel copies it in some microseconds, in which nothing
// else runs on the processor. The scheduler is told of more, as it is likely to be worked on for long as well.
const most = 32 << 10

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 || len(p) > most {
		return c.TCPConn.Read(p)
	}
	s := &c.in
	s.mu.Lock()
	s.p, s.n, s.errno = p, 0, 0
	err := c.raw.Read(s.step)
	n, errno := s.n, s.errno
	s.p = nil
	s.mu.Unlock()
	if err != nil || errno != 0 {
		return n, c.failed("read", err, errno)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if len(p) == 0 || len(p) > most {
		return c.TCPConn.Write(p)
	}
	s := &c.out
	s.mu.Lock()
	s.p, s.n, s.errno = p, 0, 0
	err := c.raw.Write(s.step)
	n, errno := s.n, s.errno
	s.p = nil
	s.mu.Unlock()
	if err != nil || errno != 0 {
		return n, c.failed("write", err, errno)
	}
	return n, nil
}

// failed is the error that package net would give.
func (c *conn) failed(operation string, err error, errno syscall.Errno) error {
	if errno != 0 {
		return &net.OpError{Op: operation, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(operation, errno)}
	}
	if failed := (*net.OpError)(nil); errors.As(err, &failed) {
		failed.Op = operation // not "raw-read"
	}
	return err
}

func (s *side) read(fd uintptr) bool {
	n, errno := Read(fd, s.p)
	if errno == syscall.EAGAIN {
		return false
	}
	s.n, s.errno = n, errno
	return true
}

func (s *side) write(fd uintptr) bool {
	for len(s.p) > 0 {
		n, errno := call(syscall.SYS_WRITE, fd, s.p)
		if errno == syscall.EAGAIN {
			return false
		}
		if s.errno = errno; errno != 0 {
			return true
		}
		s.n, s.p = s.n+n, s.p[n:]
	}
	return true
}

// Read reads from a descriptor that never blocks, as [syscall.Read] does, and goes on when it is interrupted. p is not empty.
func Read(fd uintptr, p []byte) (int, syscall.Errno) { return call(syscall.SYS_READ, fd, p) }

// call reads or writes p, which is not empty, without waiting.
func call(number, fd uintptr, p []byte) (int, syscall.Errno) {
	for {
		n, _, errno := syscall.RawSyscall(number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p))) //nolint:gosec // the address and length of p, as package syscall takes them
		switch errno {
		case 0:
			return int(n), 0
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
