// Package statefile keeps a small value in one JSON file that a crash cannot tear: every change is written beside the
// file, synced and renamed over it before any reader sees it.
package statefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// Value is the value that a File holds. Clone returns a copy whose changes the original does not see.
type Value[T any] interface {
	Clone() T
}

// File is a value and the file that holds it. Its methods may be called at the same time.
type File[T Value[T]] struct {
	path    string
	mu      sync.Mutex // held by the writer
	current atomic.Pointer[T]
}

// Open reads the file at path, mode 0600. When there is none, the value is initial and the file is made at the first Update.
func Open[T Value[T]](path string, initial T) (*File[T], error) {
	f := &File[T]{path: path}
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("reading state: %w", err)
	default:
		if err := json.Unmarshal(b, &initial); err != nil {
			return nil, fmt.Errorf("reading state %s: %w", path, err)
		}
	}
	f.current.Store(&initial)
	return f, nil
}

// View returns the value as it is now. It must not be changed.
func (f *File[T]) View() T { return *f.current.Load() }

// Update applies change to a copy and returns once the result is on disk; only then does View return it. When change or
// the writing fails, nothing is changed.
func (f *File[T]) Update(change func(T) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.View().Clone()
	if err := change(next); err != nil {
		return err
	}
	b, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("writing state: %w", err)
	}
	if err := replace(f.path, b); err != nil {
		return fmt.Errorf("writing state: %w", err)
	}
	f.current.Store(&next)
	return nil
}

// replace puts b in the place of the file at path, whole or not at all. CreateTemp makes its file with mode 0600.
func replace(path string, b []byte) (err error) {
	dir := filepath.Dir(path)
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tmp.Close()
			_ = os.Remove(tmp.Name())
		}
	}()
	if _, err = tmp.Write(b); err != nil {
		return err
	}
	if err = tmp.Sync(); err != nil {
		return err
	}
	if err = tmp.Close(); err != nil {
		return err
	}
	if err = os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	_ = d.Close()
	return err
}
