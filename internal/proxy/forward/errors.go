package forward

import (
	"crypto/tls"
	"errors"
	"net/url"

	"github.com/durward-gateway/durward/internal/proxy/http1"
)

// Classes of [Error]; test with errors.Is.
var (
	// ErrConnect says that no connection was made, so nothing was sent. It includes addresses that the dialer refused.
	ErrConnect = errors.New("connecting to the upstream")
	// ErrTimeout says that the answer's headers did not come in time. The request may have been executed.
	ErrTimeout = errors.New("waiting for the upstream's answer")
	// ErrIdle says that the body was silent for longer than the idle limit.
	ErrIdle = errors.New("waiting for more of the upstream's answer")
	// ErrTooLarge says that a body or a single event was larger than its cap.
	ErrTooLarge = errors.New("upstream's answer is too large")
	// ErrUpstream says that the upstream broke the protocol or the connection, or that its answer is never passed on (a
	// redirect, an unrequested encoding, a header that could be injected). The request may have been executed.
	ErrUpstream = errors.New("upstream's answer is not usable")
	// ErrClientGone says that the request's context ended or that writing to the client failed. There is no client left
	// to answer.
	ErrClientGone = errors.New("client is gone")
)

// Error is a failure after the request was accepted for forwarding. Its text is for logs; clients get one text,
// whatever failed (gateway.TextUpstream).
type Error struct {
	Class error // one of the sentinels above
	// Committed reports whether status and headers were already written to the client. Then no error body can follow,
	// only an aborted connection (http.ErrAbortHandler) or, on /sse, an error event.
	Committed bool
	Cause     error // nil when the class says everything; never contains the request's URL
}

func (e *Error) Error() string {
	if e.Cause == nil {
		return e.Class.Error()
	}
	return e.Class.Error() + ": " + e.Cause.Error()
}

// Unwrap returns the class and the cause for errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Class}
	}
	return []error{e.Class, e.Cause}
}

func upstreamError(reason string) *Error {
	return &Error{Class: ErrUpstream, Cause: errors.New(reason)}
}

// dialError marks a failure before there was a connection.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// classify names the failure of a round trip that was not ended by a timer or the client.
func classify(err error) *Error {
	// A url.Error repeats the URL, and so any credential in its query.
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
