package token

import "errors"

// The two classes of errors. A user may see only their texts: messages of parsers carry the sender's input.
var (
	// ErrInvalid says that the token is not acceptable and never will be: 401.
	ErrInvalid = errors.New("the access token is not valid")
	// ErrUnavailable says that the token cannot be checked now, because the issuer's keys cannot be fetched: 503.
	ErrUnavailable = errors.New("the identity provider's keys are not available")
)

// Error is the error type of Verify, Issuer and every KeySource of this package.
type Error struct {
	// Kind is ErrInvalid or ErrUnavailable.
	Kind error
	// Reason says why the token was refused, for the log. It holds no part of the token's contents.
	Reason string
	// Cause is the underlying error, or nil. It is for the log only.
	Cause error
	// Over says that the token is refused only because of its times. Clients send expired tokens all the time, and
	// nobody can guess anything with them.
	Over bool
}

// Error returns the generic text of the error's kind, never the reason.
func (e *Error) Error() string { return e.Kind.Error() }

// Unwrap returns the kind, so that errors.Is works. The cause is not in the chain: its text must not reach a user
// through a caller that prints the unwrapped error.
func (e *Error) Unwrap() error { return e.Kind }

// Reason returns the text for the log about err: the reason and cause of an *Error, else err's own text.
func Reason(err error) string {
	var e *Error
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &e):
		return err.Error()
	case e.Cause != nil:
		return e.Reason + ": " + e.Cause.Error()
	default:
		return e.Reason
	}
}

// IsOver reports whether err is an *Error with Over.
func IsOver(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Over
}

func invalid(reason string) error { return &Error{Kind: ErrInvalid, Reason: reason} }

func over(reason string) error { return &Error{Kind: ErrInvalid, Reason: reason, Over: true} }

func invalidBecause(reason string, cause error) error {
	return &Error{Kind: ErrInvalid, Reason: reason, Cause: cause}
}

func unavailable(reason string, cause error) error {
	return &Error{Kind: ErrUnavailable, Reason: reason, Cause: cause}
}
