//go:build unix

package http1

import (
	"syscall"

	"github.com/durward-gateway/durward/internal/nonblock"
)

// liveness returns a function that says whether an idle connection is still open and silent. It never waits. What is
// there to be read on an idle connection, be it the end, an error or bytes nobody asked for, makes it useless.
func liveness(sys syscall.RawConn) func() bool {
	var (
		one   [1]byte
		alive bool
	)
	probe := func(fd uintptr) bool {
		_, errno := nonblock.Read(fd, one[:])
		alive = errno == syscall.EAGAIN || errno == syscall.EWOULDBLOCK
		return true
	}
	return func() bool { return sys.Read(probe) == nil && alive }
}
