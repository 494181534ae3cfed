//go:build unix

package audit

import (
	"errors"
	"os"
	"syscall"
)

// openNonblocking keeps the opening of a pipe from waiting for its reader.
const openNonblocking = syscall.O_NONBLOCK

// lock takes the file's lock, which ends with the process, or fails with errLocked.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close() // the lock's error says it all
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errLocked
		}
		return nil, err
	}
	return func() { _ = f.Close() }, nil // which gives the lock back
}
