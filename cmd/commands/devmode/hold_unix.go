//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package devmode

import (
	"errors"
	"os"
	"syscall"
)

// errHeld says that another process holds the file.
var errHeld = errors.New("another process holds it")

// hold opens a file, makes it when there is none, and locks it until it is closed or the process ends in any way.
func hold(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return file, nil
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errHeld
	}
	return nil, errors.Join(err, file.Close())
}
