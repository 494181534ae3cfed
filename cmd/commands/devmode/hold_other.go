//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package devmode

import (
	"errors"
	"os"
)

// errHeld says that another process holds the file.
var errHeld = errors.New("another process holds it")

func hold(string) (*os.File, error) {
	return nil, errors.New("development mode needs file locks, which it does not know how to take on this system")
}
