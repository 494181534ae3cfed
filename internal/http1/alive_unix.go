//go:build unix

package http1

import "syscall"

// liveness returns a function that says whether an idle connection is still open and silent. It never waits. What is
// there to be read on an idle connection, be it the end, an error or bytes nobody asked for, makes it useless.
func liveness(sys syscall.RawConn) func() bool {
	var (
		one   [1]byte
		alive bool
	)
	probe := func(fd uintptr) bool {
		for {
			_, err := syscall.Read(int(fd), one[:])
			if err == syscall.EINTR {
				continue
			}
			alive = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
			return true
		}
	}
	return func() bool { return sys.Read(probe) == nil && alive }
}
