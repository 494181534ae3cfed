package token

import "errors"

// The two classes of errors. Their texts are all that a user may see: parser messages carry the sender's input.
var (
	// ErrInvalid says that the token is not acceptable, whatever is tried later: 401.
	ErrInvalid = errors.New("the access token is not valid")
	// ErrUnavailable says that the token cannot be judged now, because the issuer's keys are out of reach: 503.
	ErrUnavailable = errors.New("the identity provider's keys are not available")
)

// Error is what Verify, Issuer and every KeySource of this package return.
type Error struct {
	// Kind is ErrInvalid or ErrUnavailable.
	Kind error
	// Reason says what was wrong, for the log. It holds no part of the token's contents.
	Reason string
	// Cause is the underlying error, or nil. For the log only.
	Cause error
	// Over: it is by its time only that the token is no longer good. Clients send such tokens as a matter of course, and
	// nothing can be guessed with them.
	Over bool
}

// Error returns the generic text of the error's kind, never the reason.
func (e *Error) Error() string { return e.Kind.Error() }

// Unwrap returns the kind, so that errors.Is works. The cause is not in the chain: its text must not reach a user by way
// of a caller that prints what it unwraps.
func (e *Error) Unwrap() error { return e.Kind }

// Reason returns what the log should say about err: the reason and cause of an *Error, else err's own text.
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
