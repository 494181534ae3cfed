//go:build unix

package audit

import (
	"errors"
	"os"
	"syscall"
)

// openNonblocking is the flag with which opening a pipe does not wait for a reader of the pipe.
const openNonblocking = syscall.O_NONBLOCK

// lock locks the file, or fails with errLocked. The lock ends with the process.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // the lock's error is enough
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, err
	}
	return func() { _ = f.Close() }, nil // this releases the lock
}
