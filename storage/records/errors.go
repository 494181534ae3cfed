package records

import (
	"errors"

	"github.com/durward-gateway/durward/storage"
)

// editError carries an error of a caller's edit out of a transaction.
type editError struct{ error }

// Edited marks an edit's error, so that Told passes it on unchanged; nil stays nil.
func Edited(err error) error {
	if err == nil {
		return nil
	}
	return editError{err}
}

// Told reports whether an error is already storage's, or a caller's own, and returns the error to pass on. A driver
// translates all others.
func Told(err error) (told error, ok bool) {
	var edit editError
	var references *storage.ReferenceError
	var target *storage.TargetError
	switch {
	case errors.As(err, &edit):
		return edit.error, true
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, storage.ErrConflict), errors.As(err, &references), errors.As(err, &target),
		errors.Is(err, storage.ErrTooManyPending), errors.Is(err, storage.ErrForeignOrganization), errors.Is(err, storage.ErrUnavailable),
		errors.Is(err, storage.ErrText), errors.Is(err, storage.ErrValue):
		return err, true
	}
	return nil, false
}
