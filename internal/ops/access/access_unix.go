//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package access

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// may returns the reason why this process may not write to path, or make files in it.
func may(op, path string, directory bool) error {
	mode := uint32(unix.W_OK)
	if directory {
		mode |= unix.X_OK
	}
	if err := unix.Access(path, mode); err != nil {
		return &fs.PathError{Op: op, Path: path, Err: err}
	}
	return nil
}
