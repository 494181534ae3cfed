//go:build unix

package segments

import (
	"errors"
	"os"
	"syscall"
)

// Nonblocking is the flag with which opening a pipe does not wait for a reader of the pipe.
const Nonblocking = syscall.O_NONBLOCK

// Lock locks the file, or fails with ErrLocked. The lock ends with the process.
func Lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // the lock's error is enough
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, ErrLocked
		}
		return nil, err
	}
	return func() { _ = f.Close() }, nil // this releases the lock
}
