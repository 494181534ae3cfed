package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// preparing makes openers wait while another one makes the file.
var preparing sync.Mutex

// prepareFiles makes the directory (0700) and the database file (0600) where they are missing, and removes other
// users' rights from existing files. Directories above are not made: a mistyped path must not create a tree. SQLite
// gives the log and the shared memory the mode of the database file.
func prepareFiles(path string) error {
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making the data directory: %w", err)
	}
	// An existing file is never opened here: POSIX drops all of a process's locks on a file when it closes any handle
	// of it, also those of a store that has the file open already (sqlite.org/howtocorrupt.html, 2.2).
	preparing.Lock()
	defer preparing.Unlock()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 == 0 {
			continue
		}
		if err := os.Chmod(name, 0o600); err != nil {
			return fmt.Errorf("taking other users' rights from %s: %w", name, err)
		}
	}
	return nil
}
