package process

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// KeepMemoryPrivate keeps the process's memory out of core dumps, and stops other processes of its user from reading it
// with ptrace (prctl(2), PR_SET_DUMPABLE). The limit is lowered for good: child processes inherit it.
func KeepMemoryPrivate() error {
	err := errors.Join(
		unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}),
		unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0),
	)
	if err != nil {
		return fmt.Errorf("keeping the process's memory private: %w", err)
	}
	return nil
}
