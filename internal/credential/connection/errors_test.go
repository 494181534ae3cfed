package connection

import (
	"errors"
	"testing"
)

// TestErrors checks the words of errors, and that each is of its own kind alone.
func TestErrors(t *testing.T) {
	cause := errors.New("cause")
	kinds := []error{ErrOAuthConfiguration, ErrReturnURL, ErrNotConnected, ErrUnavailable, ErrState}
	for _, tc := range []struct {
		err  error
		is   error
		text string
	}{
		{&ConfigurationError{Cause: cause}, ErrOAuthConfiguration, "no OAuth client for this server: cause"},
		{&ReturnURLError{Reason: "why"}, ErrReturnURL, "return_url is not allowed: why"},
		{&NotConnectedError{Reason: "why"}, ErrNotConnected, "not connected: why"},
		{&NotConnectedError{}, ErrNotConnected, "not connected"},
		{&UnavailableError{Cause: cause}, ErrUnavailable, "provider unavailable: cause"},
		{&UnavailableError{}, ErrUnavailable, "provider unavailable"},
	} {
		if got := tc.err.Error(); got != tc.text {
			t.Errorf("%q, want %q", got, tc.text)
		}
		for _, kind := range kinds {
			if errors.Is(tc.err, kind) != (kind == tc.is) {
				t.Errorf("%q is %q: %v", tc.err, kind, kind != tc.is)
			}
		}
	}
}
