package records

import (
	"errors"

	"github.com/durward-gateway/durward/storage"
)

// editError carries an error of a caller's edit out of a transaction.
type editError struct{ error }

// Edited makes an edit's error one that Told hands on as it is; nil stays nil.
func Edited(err error) error {
	if err == nil {
		return nil
	}
	return editError{err}
}

// Told reports whether an error says in storage's words, or in a caller's own, what happened, and what to return for it. A
// driver translates all others.
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
