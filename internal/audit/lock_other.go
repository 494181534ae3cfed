//go:build !unix

package audit

import "os"

const openNonblocking = 0

// lock does without a lock where there is none: only one gateway may use a data directory there.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, nil // nothing is in it
}
