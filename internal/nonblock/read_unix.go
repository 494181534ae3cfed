//go:build unix && (!linux || race)

package nonblock

import (
	"errors"
	"syscall"
)

// Read reads from a descriptor that never blocks, as [syscall.Read] does, and goes on when it is interrupted. p is not empty.
func Read(fd uintptr, p []byte) (int, syscall.Errno) {
	for {
		n, err := syscall.Read(int(fd), p)
		if err == nil {
			return n, 0
		}
		var errno syscall.Errno
		if errors.As(err, &errno) && errno != syscall.EINTR {
			return 0, errno
		}
	}
}
