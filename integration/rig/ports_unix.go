//go:build unix

package rig

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
)

// claimPortRange takes a range that no other process of the user has. Others could not open the files.
func claimPortRange() (portClaim, error) {
	for _, i := range rand.Perm(portRanges) {
		path := filepath.Join(os.TempDir(), fmt.Sprintf("durward-test-ports-%d-%d", os.Getuid(), i))
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // a name of ours
		if err != nil {
			return portClaim{}, fmt.Errorf("claiming ports: %w", err)
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == nil {
			return portClaim{firstPort + i*rangeSize, f}, nil
		}
		_ = f.Close()
	}
	return portClaim{}, errors.New("claiming ports: too many tests run at one time")
}
