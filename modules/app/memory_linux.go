package app

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// keepMemoryPrivate keeps what the process holds out of core dumps, and other processes of its user from reading it with
// ptrace (prctl(2), PR_SET_DUMPABLE). The limit is lowered for good: what the process starts inherits it.
func keepMemoryPrivate() error {
	err := errors.Join(
		unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}),
		unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0),
	)
	if err != nil {
		return fmt.Errorf("keeping the process's memory private: %w", err)
	}
	return nil
}
