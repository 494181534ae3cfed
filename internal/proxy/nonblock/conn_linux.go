//go:build !race

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

// mostBytes limits what is read or written unnoticed. The kernel copies that in some microseconds, in which nothing
// else runs on the processor.
const mostBytes = 32 << 10

// Wrap returns a TCP connection that reads and writes unnoticed by the scheduler. It returns any other connection as
// it is.
func Wrap(c net.Conn) net.Conn {
	socket, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return c
	}
	w := &conn{TCPConn: socket}
	w.in.operation, w.in.wait, w.in.step = "read", raw.Read, w.in.read
	w.out.operation, w.out.wait, w.out.step = "write", raw.Write, w.out.write
	return w
}

// conn has the deadlines, the end and everything else of package net's connection, but for reading and writing.
type conn struct {
	*net.TCPConn

	in, out side
}

// side holds the state of one direction. A connection keeps it between calls, so that no call allocates.
type side struct {
	operation string
	wait      func(step func(fd uintptr) (done bool)) error // until the socket is ready, and again until step is done
	step      func(fd uintptr) (done bool)

	mu    sync.Mutex // one call at a time, as with package net
	p     []byte     // to be filled, or what is left to be written
	n     int        // bytes that were read or written
	errno syscall.Errno
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	if len(p) == 0 || len(p) > mostBytes {
		return c.TCPConn.Read(p)
	}
	n, err := c.in.run(c, p)
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, err
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	if len(p) == 0 || len(p) > mostBytes {
		return c.TCPConn.Write(p)
	}
	return c.out.run(c, p)
}

// run takes steps with p until one of them is done or package net ends the wait for the socket. Its errors are those
// that package net would give.
func (s *side) run(c *conn, p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.p, s.n, s.errno = p, 0, 0
	err := s.wait(s.step)
	s.p = nil
	if s.errno != 0 {
		return s.n, &net.OpError{
			Op: s.operation, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError(s.operation, s.errno),
		}
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok {
		failed.Op = s.operation // not "raw-read"
	}
	return s.n, err
}

func (s *side) read(fd uintptr) bool {
	n, errno := call(syscall.SYS_READ, fd, s.p)
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

// call reads or writes p, which is not empty, and never waits.
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
