package forward

import (
	"crypto/tls"
	"errors"
	"net/url"

	"github.com/durward-gateway/durward/internal/http1"
)

// PublicText is the only thing a client is told about a failed forwarding, whatever failed. A text that told a closed
// port from a filtered one, or a refused address from a dead one, would make the gateway a port scanner (S10).
const PublicText = "The upstream server did not give a usable answer"

// The classes of [Error]; test with errors.Is.
var (
	// ErrConnect: no connection was made, so nothing was sent. Includes addresses that the dialer refused.
	ErrConnect = errors.New("connecting to the upstream")
	// ErrTimeout: the answer's headers did not come in time. The request may have been executed.
	ErrTimeout = errors.New("waiting for the upstream's answer")
	// ErrIdle: the body was silent for longer than the idle limit.
	ErrIdle = errors.New("waiting for more of the upstream's answer")
	// ErrTooLarge: a body or a single event passed its cap.
	ErrTooLarge = errors.New("upstream's answer is too large")
	// ErrUpstream: the upstream broke the protocol or the connection, or answered what is never passed on (a redirect, an
	// encoding nobody asked for, a header that could be injected). The request may have been executed.
	ErrUpstream = errors.New("upstream's answer is not usable")
	// ErrClientGone: the request's context ended or writing to the client failed. Nobody is left to answer.
	ErrClientGone = errors.New("client is gone")
)

// Error is every failure after the request was accepted for forwarding. Its text is for logs; clients get [PublicText].
type Error struct {
	Class error // one of the sentinels above
	// Committed says that status and headers were already written to the client: no error body can follow, only an
	// aborted connection (http.ErrAbortHandler) or, on /sse, an error event.
	Committed bool
	Cause     error // nil when the class says it all; never contains the request's URL
}

func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Class.Error()
	}
	return e.Class.Error() + ": " + e.Cause.Error()
}

// Unwrap gives the class and the cause to errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Class}
	}
	return []error{e.Class, e.Cause}
}

func upstreamError(reason string) *Error {
	return &Error{Class: ErrUpstream, Cause: errors.New(reason)}
}

// dialError marks what failed while no connection existed.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// classify names the failure of a round trip that neither a timer nor the client ended.
func classify(err error) *Error {
	// A url.Error repeats the URL, and with it a credential that travels in the query.
	for u := (*url.Error)(nil); errors.As(err, &u); {
		err = u.Err
	}
	var (
		dial      *dialError
		handshake *http1.HandshakeError
		cert      *tls.CertificateVerificationError
		record    tls.RecordHeaderError
	)
	if errors.As(err, &dial) || errors.As(err, &handshake) || errors.As(err, &cert) || errors.As(err, &record) {
		return &Error{Class: ErrConnect, Cause: err}
	}
	return &Error{Class: ErrUpstream, Cause: err}
}
