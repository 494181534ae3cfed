//go:build !linux

package hangup

import (
	"errors"
	"syscall"
)

// Watch always fails.
func Watch(syscall.Conn, func()) (stop func(), err error) {
	return nil, errors.ErrUnsupported
}
