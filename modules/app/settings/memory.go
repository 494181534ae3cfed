// Package settings holds the settings of the app `durward`: their types, defaults and bounds. It opens and wires nothing.
package settings

import (
	"fmt"

	"github.com/dustin/go-humanize"
)

// These are the bounds of memory_limit. The lower one catches a unit that was forgotten.
const (
	minMemoryLimit = 1 << 20
	maxMemoryLimit = 1 << 50
)

// ParseMemoryLimit reads memory_limit from a size such as `2GiB`.
func ParseMemoryLimit(size string) (int64, error) {
	n, err := humanize.ParseBytes(size)
	if err != nil || n < minMemoryLimit || n > maxMemoryLimit {
		return 0, fmt.Errorf("memory_limit: %q is not a size between 1MiB and 1PiB", size)
	}
	return int64(n), nil
}

// CheckMemoryLimit refuses a limit that ParseMemoryLimit would refuse; 0 is the default.
func CheckMemoryLimit(n int64) error {
	if n != 0 && (n < minMemoryLimit || n > maxMemoryLimit) {
		return fmt.Errorf("memory_limit is %d, which is not between %d and %d bytes", n, minMemoryLimit, int64(maxMemoryLimit))
	}
	return nil
}
