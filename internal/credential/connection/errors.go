package connection

import (
	"errors"
	"time"
)

// Errors that callers branch on.
var (
	// ErrOAuthConfiguration: no OAuth client can be obtained for the server. ConfigurationError holds the reason.
	ErrOAuthConfiguration = errors.New("no OAuth client for this server")
	// ErrReturnURL: browsers may not be sent to the return_url. ReturnURLError holds the reason.
	ErrReturnURL = errors.New("return_url is not allowed")
	// ErrState: the state of a callback is missing, unknown, used or expired.
	ErrState = errors.New("connection attempt is unknown, used or expired")
	// ErrUndo: an undo token is not ours or is too old, or its connection is no longer the one that it names.
	ErrUndo = errors.New("this connection can no longer be undone here")
	// ErrNotConnected: the user has no credential that may be sent to the server. NotConnectedError holds the reason.
	ErrNotConnected = errors.New("not connected")
	// ErrCredentialWanted: the server asks for a credential, but its directory entry says that it needs none. No user
	// can fix that.
	ErrCredentialWanted = errors.New("the server asks for a credential, and its directory entry says that it needs none")
	// ErrUnavailable: the provider cannot be asked just now, and no valid token is left. A later try helps. See
	// UnavailableError.
	ErrUnavailable = errors.New("provider unavailable")
	// ErrClosed: the broker is closed.
	ErrClosed = errors.New("broker is closed")
)

// ConfigurationError wraps the reason for which there is no OAuth client. The cause is for the log, not for users.
type ConfigurationError struct{ Cause error }

func (e *ConfigurationError) Error() string {
	return ErrOAuthConfiguration.Error() + ": " + e.Cause.Error()
}

// Is makes errors.Is(err, ErrOAuthConfiguration) hold.
func (e *ConfigurationError) Is(target error) bool { return target == ErrOAuthConfiguration }

func (e *ConfigurationError) Unwrap() error { return e.Cause }

// BadRequestError names the member of a connect request that is missing or unusable. Message never holds its value.
type BadRequestError struct{ Field, Message string }

func (e *BadRequestError) Error() string { return e.Message }

// ReturnURLError describes the mistake in a return_url, in words for the client.
type ReturnURLError struct{ Reason string }

func (e *ReturnURLError) Error() string { return ErrReturnURL.Error() + ": " + e.Reason }

// Is makes errors.Is(err, ErrReturnURL) hold.
func (e *ReturnURLError) Is(target error) bool { return target == ErrReturnURL }

// NotConnectedError gives the reason for the missing credential, in words for the user. It is "" for a user who never
// connected.
type NotConnectedError struct {
	Reason string
	// NoStep says that the page for connecting an account cannot help: Reason says what does.
	NoStep bool
}

// errAdministrator is the error in cases where connecting again would not help.
var errAdministrator = &NotConnectedError{Reason: "an administrator must look at this server first"}

// errObtained is the error for a server whose credentials are not stored: package exchange gets them.
var errObtained = errors.New("the gateway gets the server's tokens without connections")

func (e *NotConnectedError) Error() string {
	if e.Reason == "" {
		return ErrNotConnected.Error()
	}
	return ErrNotConnected.Error() + ": " + e.Reason
}

// Is makes errors.Is(err, ErrNotConnected) hold.
func (e *NotConnectedError) Is(target error) bool { return target == ErrNotConnected }

// UnavailableError gives the time after which a new try makes sense.
type UnavailableError struct {
	RetryAfter time.Duration
	Cause      error
}

func (e *UnavailableError) Error() string {
	if e.Cause == nil {
		return ErrUnavailable.Error()
	}
	return ErrUnavailable.Error() + ": " + e.Cause.Error()
}

// Is makes errors.Is(err, ErrUnavailable) hold.
func (e *UnavailableError) Is(target error) bool { return target == ErrUnavailable }

func (e *UnavailableError) Unwrap() error { return e.Cause }
