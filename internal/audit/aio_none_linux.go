//go:build !amd64 && !arm64

package audit

import (
	"errors"
	"os"
)

var errNotTaken = errors.ErrUnsupported

// aio is nothing on these processors.
type aio struct{}

func takeAIO() *aio { return nil }

func (*aio) write(*os.File, [][]byte, int64) (int, error) { return 0, errNotTaken }

func (*aio) sync(*os.File) error { return errNotTaken }

func (*aio) giveBack() {}
