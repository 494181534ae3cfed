// Package access checks whether this process could write to a place, without writing.
package access

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Make returns the reason why a file could not be made or written at path, nil when it could. The directory may be
// missing when its parent is there: the writer of the file makes it.
func Make(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return &fs.PathError{Op: "open", Path: path, Err: errors.New("is a directory")}
	case err == nil:
		return may("open", path, false)
	case !errors.Is(err, fs.ErrNotExist):
		return &fs.PathError{Op: "open", Path: path, Err: errors.Unwrap(err)}
	}
	directory := filepath.Dir(path)
	if _, err := os.Stat(directory); err != nil {
		return MakeIn(directory)
	}
	if err := may("open", directory, true); err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: errors.Unwrap(err)}
	}
	return nil
}

// MakeIn returns the reason why files could not be made in a directory, nil when they could. A missing directory can
// be made when its parent is there.
func MakeIn(directory string) error {
	switch info, err := os.Stat(directory); {
	case err == nil && !info.IsDir():
		return &fs.PathError{Op: "mkdir", Path: directory, Err: fs.ErrExist}
	case err == nil:
		return may("open", directory, true)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(directory)
	if _, err := os.Stat(parent); err != nil {
		return &fs.PathError{Op: "mkdir", Path: directory, Err: errors.Unwrap(err)}
	}
	if err := may("mkdir", parent, true); err != nil {
		return &fs.PathError{Op: "mkdir", Path: directory, Err: errors.Unwrap(err)}
	}
	return nil
}
