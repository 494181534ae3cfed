//go:build !unix

package segments

import "os"

const Nonblocking = 0

// Lock opens the file without a lock, where the system has none: there only one gateway may use a data directory.
func Lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, nil // the file is empty
}
