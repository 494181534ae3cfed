//go:build unix

package http1

import (
	"errors"
	"syscall"
)

// liveness returns a function that reports whether an idle connection is still open and silent. It never waits. An
// idle connection with anything to read (its end, an error, or unrequested bytes) is useless.
func liveness(sys syscall.RawConn) func() bool {
	var (
		one   [1]byte
		alive bool
	)
	probe := func(fd uintptr) bool {
		_, err := syscall.Read(int(fd), one[:])
		alive = errors.Is(err, syscall.EAGAIN)
		return true
	}
	return func() bool { return sys.Read(probe) == nil && alive }
}
